"""The keys that one script changes share a hash tag, so that a cluster stores them on one node."""

import re

from redis.crc import key_slot

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.redis.keys import CLUSTER_PARTITIONS, KeyNames, digest, session_name


def slot_of(name: str) -> int:
    return int(key_slot(name.encode()))


def test_all_redis_keys_of_a_session_are_in_one_cluster_slot() -> None:
    names = KeyNames("emceepee", CLUSTER_PARTITIONS)
    for principal in ("alice", "bob", "käse"):
        tag = names.tag_of(principal)
        found = [
            session_name(tag, "s1"),
            session_name(tag, "{x}"),
            f"{tag}:due:0:1:0",
            f"{tag}:owners",
            f"{tag}:expiry",
        ]
        found.append(f"{tag}:key:{digest(SessionKey(principal, KeyKind.NAME, '}{'))}")
        assert {slot_of(name) for name in found} == {slot_of(tag)}


def test_shared_redis_keys_are_in_one_cluster_slot_each() -> None:
    names = KeyNames("emceepee", CLUSTER_PARTITIONS)
    assert len({slot_of(name) for name in (names.registry, names.epochs, names.slot(0), names.slot(77))}) == 1
    shared = (
        names.servers("alice"),
        names.servers("bob"),
        names.logins,
        names.revision,
        names.positions,
        names.principals,
    )
    assert len({slot_of(name) for name in shared}) == 1


def test_principals_are_spread_over_a_redis_cluster_and_share_a_tag_elsewhere() -> None:
    spread, together = KeyNames("emceepee", CLUSTER_PARTITIONS), KeyNames("emceepee")
    principals = [f"principal {number}" for number in range(1000)]
    assert len({slot_of(spread.tag_of(each)) for each in principals}) == CLUSTER_PARTITIONS
    assert {together.tag_of(each) for each in principals} == {"{emceepee:0}"}


def test_a_redis_key_name_reveals_nothing_about_the_session_key() -> None:
    key = SessionKey("alice", KeyKind.HANDLE, "a-handle")
    assert re.fullmatch("[0-9a-f]{64}", digest(key))
    others = [SessionKey("alice", KeyKind.ID, "a-handle"), SessionKey("alic", KeyKind.HANDLE, "ea-handle")]
    assert len({digest(each) for each in (key, *others)}) == 3

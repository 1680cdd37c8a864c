"""Processes that share a store know each other, and a new session owns its keys."""

import pytest

from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind
from emceepee.store.store import HeldElsewhere, Lease, Store
from support.store.store_engines import Engine
from support.store.stored_sessions import (
    NOT_STORED,
    change,
    head,
    key,
    put,
    records,
    records_in,
    store_session,
    taken,
)

pytestmark = pytest.mark.parametrize("engine", ["memory", "sqlite", "redis", "cluster"], indirect=True)


def me(store: Store) -> Replica:
    assert store.replica is not None
    return store.replica


# Making a session.


async def test_a_session_is_created_with_all_its_keys(store: Store) -> None:
    of = head("s1", key("s1"), key("work", kind=KeyKind.NAME))
    lease = await store.create(change(of, e="1"))
    assert lease == Lease(1, 1)
    await put(store, change(of, lease, e="2"))
    found = await taken(store, key("work", kind=KeyKind.NAME))
    assert (found.head, found.records) == (of, records(e="2"))


async def test_a_session_is_not_created_if_one_of_its_keys_leads_to_another(store: Store, other: Store) -> None:
    await store_session(store, head("s1", key("shared")), e="1")
    assert await other.create(change(head("s2", key("own"), key("shared")), x="x")) is None
    assert await other.take(key("own")) is None
    assert await records_in(store, key("shared")) == records(e="1")
    assert await store.create(change(head("s1", key("new")), x="x")) is None, "of that id there is one"
    assert await store.take(key("new")) is None


async def test_a_released_key_is_free_for_a_new_session(store: Store, other: Store) -> None:
    lease = await store_session(store, head("s1", key("a"), key("b")))
    await put(store, change(head("s1", key("a")), lease))
    assert await other.create(change(head("s2", key("b")))) is not None
    await store.forget("s1", lease)
    assert await other.create(change(head("s3", key("a")))) is not None


# Who is there.


async def test_a_new_replica_gets_the_lowest_free_slot_and_its_own_epoch(engine: Engine) -> None:
    first, second = await engine.open("http://first"), await engine.open("http://second")
    assert [(me(each).slot, me(each).address) for each in (first, second)] == [
        (0, "http://first"),
        (1, "http://second"),
    ]
    for each in (first, second):
        assert sorted(await each.replicas(), key=lambda found: found.slot) == [me(first), me(second)]
    gone = me(first)
    await first.close()
    assert await second.replicas() == [me(second)]
    third = await engine.open("http://third")
    assert me(third).slot == gone.slot
    assert me(third).epoch not in (gone.epoch, me(second).epoch)


async def test_a_killed_replica_is_not_listed(engine: Engine, store: Store, other: Store) -> None:
    await engine.kill(store)
    assert await other.replicas() == [me(other)]


async def test_taking_a_session_of_another_replica_fails_with_its_holder(engine: Engine) -> None:
    holder, other = await engine.open("http://holder"), await engine.open()
    await store_session(holder, head("s1"))
    with pytest.raises(HeldElsewhere) as caught:
        await other.take(key("s1"))
    assert caught.value.holder == me(holder)


async def test_all_replicas_share_one_secret(engine: Engine, store: Store, other: Store) -> None:
    secret = await store.replica_secret()
    assert len(secret) >= 32
    assert await other.replica_secret() == await store.replica_secret() == secret
    await store.close()
    assert await (await engine.open()).replica_secret() == secret


async def test_one_replica_opens_data_that_another_sealed_only_in_its_place(
    engine: Engine, store: Store, other: Store
) -> None:
    sealer = await store.sealer()
    assert sealer is not None
    sealed = sealer.seal(b"hush", place=("task", "one"))
    assert b"hush" not in sealed
    await store.close()
    for process in (other, await engine.open()):
        opener = await process.sealer()
        assert opener is not None
        assert opener.open(sealed, place=("task", "one")) == b"hush"
        with pytest.raises(ValueError, match="sealed"):
            opener.open(sealed, place=("task", "two"))


# What a process holds.


async def test_a_confirmation_reports_sessions_that_another_replica_has_taken(
    engine: Engine, store: Store, other: Store
) -> None:
    mine = await store_session(store, head("s1"))
    old = await store_session(store, head("s2"))
    again = (await taken(store, key("s2"))).lease
    given = await store_session(store, head("s3"))
    await store.release({"s3": given})
    await taken(other, key("s3"))
    leases = {"s1": mine, "s2": old, "s3": given, "s4": Lease(1, 1)}
    assert sorted(await store.confirm(leases)) == ["s2", "s3", "s4"]
    assert store.is_sure
    assert await store.confirm({"s1": mine, "s2": again}) == []
    await put(store, change(head("s1"), mine, e="1"))


async def test_an_empty_confirmation_succeeds(store: Store) -> None:
    assert await store.confirm({}) == []
    assert store.is_sure


async def test_an_unknown_session_has_no_holder(store: Store) -> None:
    assert await store.confirm({"s1": NOT_STORED}) == ["s1"]

"""Committed records are found again in full, and a rejected commit changes nothing."""

import pytest

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Commit, Lease, RecordKey, Store, StoreUnavailable
from support.store.store_engines import Engine
from support.store.stored_sessions import (
    HOUR,
    NOT_STORED,
    NOW,
    change,
    head,
    key,
    put,
    records,
    records_in,
    store_session,
    taken,
)


async def test_committed_records_are_available_to_the_next_process(engine: Engine, store: Store) -> None:
    of = head("s1", key("s1"), key("work", kind=KeyKind.NAME), due_at=NOW)
    lease = await store_session(store, of, e1="one", e2="two")
    await store.close()
    found = await taken(await engine.open(), key("work", kind=KeyKind.NAME))
    assert found.head == of
    assert found.records == records(e1="one", e2="two")
    assert (found.lease.revision, found.lease.fence > lease.fence) == (lease.revision, True)


async def test_a_durable_engine_is_marked_as_durable(store: Store) -> None:
    assert store.is_durable


async def test_an_unknown_key_finds_no_session(store: Store) -> None:
    await store_session(store, head("s1"))
    assert await store.take(key("s2")) is None
    assert await store.take(key("s1", principal="bob")) is None
    assert await store.take(key("s1", kind=KeyKind.HANDLE)) is None


async def test_a_commit_changes_only_the_records_that_it_names(store: Store) -> None:
    of = head("s1")
    lease = await store_session(store, of, e1="one", e2="two", e3="three")
    await put(store, change(of, lease, "e1", "e9", e2="zwei", e4="four"))
    assert await records_in(store, key("s1")) == records(e2="zwei", e3="three", e4="four")


async def test_a_record_both_put_and_deleted_in_a_commit_is_put(store: Store) -> None:
    of = head("s1")
    lease = await store_session(store, of, e1="one")
    await put(store, change(of, lease, "e1", "e2", e1="again", e2="two"))
    assert await records_in(store, key("s1")) == records(e1="again", e2="two")


async def test_record_ids_are_separate_by_kind_and_by_session(store: Store) -> None:
    first = {RecordKey("event", "1"): b"event", RecordKey("task", "1"): b"task"}
    await store.commit(
        [
            Commit(head=head("s1"), lease=NOT_STORED, puts=first),
            Commit(head=head("s2"), lease=NOT_STORED, puts={RecordKey("event", "1"): b"other"}),
        ]
    )
    assert await records_in(store, key("s1")) == first
    assert await records_in(store, key("s2")) == {RecordKey("event", "1"): b"other"}


@pytest.mark.parametrize("data", [b"", b"\x00\xff\x00", bytes(range(256)) * 4096], ids=["empty", "binary", "1 MB"])
async def test_a_record_may_contain_any_bytes(store: Store, data: bytes) -> None:
    name = RecordKey("käse\n", "ü' --")
    await store.commit([Commit(head=head("s1"), lease=NOT_STORED, puts={name: data})])
    assert await records_in(store, key("s1")) == {name: data}


async def test_a_commit_may_contain_very_many_records(store: Store) -> None:
    many = {RecordKey("event", str(number)): b"%d" % number for number in range(3000)}
    of = head("s1")
    (lease,) = await store.commit([Commit(head=of, lease=NOT_STORED, puts=many)])
    assert lease is not None
    assert await records_in(store, key("s1")) == many
    lease = (await taken(store, key("s1"))).lease
    (lease,) = await store.commit([Commit(head=of, lease=lease, deletes=frozenset(many))])
    assert lease is not None
    assert await records_in(store, key("s1")) == {}


async def test_the_head_of_a_session_is_the_head_of_the_last_commit(store: Store) -> None:
    lease = await store_session(store, head("s1", due_at=NOW))
    later = head("s1", expires_at=NOW + 2 * HOUR)
    await put(store, change(later, lease))
    assert (await taken(store, key("s1"))).head == later


async def test_revisions_increase_by_one_and_a_lease_is_valid_for_one_commit(store: Store) -> None:
    of = head("s1")
    first = await store_session(store, of, e="1")
    second = await put(store, change(of, first, e="2"))
    assert (first.revision, second.revision, second.fence) == (1, 2, first.fence)
    assert await store.commit([change(of, first, e="3", x="x")]) == [None]
    assert await records_in(store, key("s1")) == records(e="2")


async def test_a_session_is_created_once(store: Store) -> None:
    await store_session(store, head("s1"), e="first")
    assert await store.commit([change(head("s1", key("another")), e="second", x="x")]) == [None]
    assert await store.take(key("another")) is None
    assert await records_in(store, key("s1")) == records(e="first")


async def test_a_commit_to_an_unknown_session_has_no_effect(store: Store) -> None:
    assert await store.commit([change(head("s1"), Lease(fence=1, revision=1), e="1")]) == [None]
    assert await store.take(key("s1")) is None


async def test_of_several_commits_only_those_with_a_valid_lease_are_applied(store: Store) -> None:
    stale = await store_session(store, head("s1"), e="1")
    await put(store, change(head("s1"), stale, e="2"))
    good = await store_session(store, head("s2"), e="1")
    made = await store.commit(
        [change(head("s1"), stale, "e", x="x"), change(head("s2"), good, e="2"), change(head("s3"), e="1")]
    )
    assert [each and each.revision for each in made] == [None, 2, 1]
    assert await records_in(store, key("s1")) == records(e="2")
    assert await records_in(store, key("s2")) == records(e="2")
    assert await records_in(store, key("s3")) == records(e="1")


async def test_one_session_may_be_changed_twice_in_a_batch(store: Store) -> None:
    first = change(head("s1", key("a"), key("b")), e1="1", e2="2")
    second = change(head("s1", key("b"), key("c")), Lease(fence=1, revision=1), "e1", e3="3")
    assert await store.commit([first, second]) == [Lease(1, 1), Lease(1, 2)]
    assert await store.take(key("a")) is None
    assert (await taken(store, key("c"))).head == second.head
    assert await records_in(store, key("b")) == records(e2="2", e3="3")


async def test_an_empty_commit_succeeds(store: Store) -> None:
    assert await store.commit([]) == []


# Keys.


async def test_keys_are_added_and_removed_with_the_head(store: Store) -> None:
    lease = await store_session(store, head("s1", key("a"), key("b")))
    lease = await put(store, change(head("s1", key("b"), key("c")), lease))
    assert await store.take(key("a")) is None
    assert (await taken(store, key("c"))).head.keys == {key("b"), key("c")}
    await store_session(store, head("s2", key("a")))
    assert (await taken(store, key("a"))).head.session_id == "s2"


async def test_a_key_of_another_session_stays_with_that_session(store: Store, other: Store) -> None:
    await store_session(store, head("s1", key("shared")), e="1")
    lease = await store_session(other, head("s2", key("shared"), key("own")))
    await put(other, change(head("s2", key("shared"), key("own")), lease, e="2"))
    assert (await taken(store, key("shared"))).head.session_id == "s1"
    assert (await taken(other, key("own"))).head.keys == {key("own")}


async def test_a_key_that_becomes_free_is_gained_with_the_next_commit(store: Store) -> None:
    first = await store_session(store, head("s1", key("shared")))
    second = await store_session(store, head("s2", key("shared"), key("own")))
    await store.forget("s1", first)
    assert await store.take(key("shared")) is None
    await put(store, change(head("s2", key("shared"), key("own")), second))
    assert (await taken(store, key("shared"))).head.session_id == "s2"


async def test_a_key_moves_from_one_session_to_another_in_one_batch(store: Store) -> None:
    first = await store_session(store, head("s1", key("s1"), key("name")))
    second = await store_session(store, head("s2", key("s2")))
    await store.commit([change(head("s2", key("s2"), key("name")), second), change(head("s1", key("s1")), first)])
    assert (await taken(store, key("name"))).head.session_id == "s2"


async def test_a_stale_commit_changes_no_key(store: Store) -> None:
    stale = await store_session(store, head("s1", key("a")))
    await put(store, change(head("s1", key("a")), stale))
    assert await store.commit([change(head("s1", key("b")), stale)]) == [None]
    assert await store.take(key("b")) is None
    assert (await taken(store, key("a"))).head.keys == {key("a")}


@pytest.mark.parametrize("kind", KeyKind)
async def test_every_kind_of_key_finds_its_session(store: Store, kind: KeyKind) -> None:
    by = SessionKey("alice", kind, "x")
    await store_session(store, head("s1", by))
    assert (await taken(store, by)).head.keys == {by}


# Forgetting.


async def test_a_deleted_session_is_gone_with_its_records_and_keys(store: Store) -> None:
    lease = await store_session(store, head("s1"), e="1")
    await store.forget("s1", lease)
    assert await store.take(key("s1")) is None
    await store_session(store, head("s1"), f="2")
    assert await records_in(store, key("s1")) == records(f="2")


async def test_only_a_valid_lease_deletes_a_session(store: Store, other: Store) -> None:
    old = await store_session(store, head("s1"), e="1")
    await store.release({"s1": old})
    new = (await taken(other, key("s1"))).lease
    await store.forget("s1", old)
    await store.forget("s1", new)
    await store.forget("s9", NOT_STORED)
    assert await records_in(other, key("s1")) == records(e="1")


async def test_the_holder_of_the_lease_may_delete_a_session_after_any_commit(store: Store) -> None:
    first = await store_session(store, head("s1"))
    await put(store, change(head("s1"), first))
    await store.forget("s1", first)
    assert await store.take(key("s1")) is None


# Its own life.


async def test_a_closed_store_reports_that_it_is_closed(store: Store) -> None:
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.commit([change(head("s1"))])
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.take(key("s1"))


async def test_a_store_may_be_closed_twice(store: Store) -> None:
    await store.close()
    await store.close()

"""One process at a time may change a session, and a dead process holds no lease."""

from datetime import timedelta

import pytest

from emceepee.store.store import HeldElsewhere, Store
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


async def test_a_session_of_another_living_process_cannot_be_taken(store: Store, other: Store) -> None:
    lease = await store_session(store, head("s1"), e="1")
    with pytest.raises(HeldElsewhere):
        await other.take(key("s1"))
    await put(store, change(head("s1"), lease, e="2"))


async def test_a_released_session_can_be_taken_and_its_old_lease_is_invalid(store: Store, other: Store) -> None:
    old = await store_session(store, head("s1"), e="1")
    await store.release({"s1": old})
    new = (await taken(other, key("s1"))).lease
    assert new.fence > old.fence
    assert await store.commit([change(head("s1"), old, e="late")]) == [None]
    await put(other, change(head("s1"), new, e="2"))


async def test_a_released_lease_commits_nothing(store: Store) -> None:
    lease = await store_session(store, head("s1"), e="1")
    await store.release({"s1": lease})
    assert await store.commit([change(head("s1"), lease, e="late")]) == [None]
    assert await records_in(store, key("s1")) == records(e="1")


async def test_an_old_lease_releases_nothing(store: Store, other: Store) -> None:
    old = await store_session(store, head("s1"))
    new = (await taken(store, key("s1"))).lease
    await store.release({"s1": old, "s2": NOT_STORED})
    await other.release({"s1": new})
    with pytest.raises(HeldElsewhere):
        await other.take(key("s1"))


async def test_taking_a_session_again_returns_a_new_lease(store: Store) -> None:
    old = await store_session(store, head("s1"), e="1")
    new = (await taken(store, key("s1"))).lease
    assert await store.commit([change(head("s1"), old, e="late")]) == [None]
    await put(store, change(head("s1"), new, e="2"))


async def test_the_lease_of_a_dead_process_is_taken_over_at_once(engine: Engine, store: Store, other: Store) -> None:
    await store_session(store, head("s1"), e="1")
    await engine.kill(store)
    found = await taken(other, key("s1"))
    assert found.records == records(e="1")
    await put(other, change(head("s1"), found.lease, e="2"))


async def test_closing_the_store_releases_all_leases(engine: Engine, store: Store, other: Store) -> None:
    await store_session(store, head("s1"))
    await store_session(store, head("s2"))
    await store.close()
    await taken(other, key("s1"))
    await taken(await engine.open(), key("s2"))


# Deadlines.


async def test_due_sessions_are_taken_longest_due_first_and_up_to_the_limit(store: Store) -> None:
    for number in (3, 1, 2, 4):
        lease = await store_session(store, head(f"s{number}", due_at=NOW + number * HOUR), e=str(number))
        await store.release({f"s{number}": lease})
    assert await store.next_due() == NOW + HOUR
    assert await store.take_due(NOW + HOUR - timedelta(microseconds=1), 10) == []
    due = await store.take_due(NOW + 3 * HOUR, 2)
    assert [each.head.session_id for each in due] == ["s1", "s2"]
    assert due[0].records == records(e="1")
    assert due[0].head == head("s1", due_at=NOW + HOUR)
    await put(store, change(head("s1"), due[0].lease))
    assert [each.head.session_id for each in await store.take_due(NOW + 3 * HOUR, 2)] == ["s3"]
    assert await store.next_due() == NOW + 4 * HOUR


async def test_a_due_session_with_a_living_holder_is_not_taken(engine: Engine, store: Store, other: Store) -> None:
    await store_session(store, head("s1", due_at=NOW))
    await store_session(other, head("s2", due_at=NOW))
    for each in (store, other):
        assert (await each.next_due(), await each.take_due(NOW, 10)) == (None, [])
    await engine.kill(store)
    assert await other.next_due() == NOW
    assert [each.head.session_id for each in await other.take_due(NOW, 10)] == ["s1"]


async def test_without_deadlines_no_session_is_due(store: Store) -> None:
    await store.release({"s1": await store_session(store, head("s1"))})
    assert (await store.next_due(), await store.take_due(NOW + HOUR, 10)) == (None, [])


# Expiry.


async def test_an_expired_session_is_deleted_unless_a_living_process_holds_it(
    engine: Engine, store: Store, other: Store
) -> None:
    gone = await engine.open()
    await store.release({"s1": await store_session(store, head("s1", expires_at=NOW), e="1")})
    await store.release({"s2": await store_session(store, head("s2", expires_at=NOW + HOUR))})
    await store_session(store, head("s3", expires_at=NOW))
    await store_session(other, head("s4", expires_at=NOW))
    await store_session(gone, head("s5", expires_at=NOW))
    await engine.kill(gone)
    assert await store.forget_expired(NOW, 100) == 2
    assert [await store.take(key(name)) for name in ("s1", "s5")] == [None, None]
    assert (await taken(store, key("s2"))).head.session_id == "s2"
    assert (await taken(store, key("s3"))).head.session_id == "s3"
    assert (await taken(other, key("s4"))).head.session_id == "s4"


async def test_over_the_session_limit_the_first_to_expire_are_deleted(store: Store, other: Store) -> None:
    for number in (3, 1, 4, 2):
        of = head(f"s{number}", expires_at=NOW + number * HOUR)
        await store.release({of.session_id: await store_session(store, of, e="1")})
    await store_session(other, head("s0", expires_at=NOW + timedelta(minutes=1)))
    assert await store.forget_expired(NOW, 5) == 0
    assert await store.forget_expired(NOW, 3) == 2
    found = [name for name in ("s1", "s2", "s3", "s4") if await store.take(key(name)) is not None]
    assert found == ["s3", "s4"]
    assert (await taken(other, key("s0"))).head.session_id == "s0"


async def test_a_held_session_is_not_deleted_even_over_the_session_limit(store: Store) -> None:
    await store_session(store, head("s1"))
    await store_session(store, head("s2"))
    assert await store.forget_expired(NOW, 1) == 0

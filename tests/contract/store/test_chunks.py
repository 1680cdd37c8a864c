"""Large parts of sessions are stored in chunks, read one by one, and deleted with their session."""

from datetime import timedelta

import pytest

from emceepee.store.store import Store
from support.fakes.clock import FakeClock
from support.store.store_engines import Engine
from support.store.stored_sessions import head, key, store_session


async def test_the_store_reads_chunks_as_they_were_written(store: Store) -> None:
    await store_session(store, head("a"), x="1")
    assert await store.put_chunks("a", "big", 0, [b"one", b"\x00\xff" * 1000])
    assert await store.put_chunks("a", "big", 2, [b"three"])
    assert await store.put_chunks("a", "other", 0, [b"x"])
    assert await store.read_chunks("a", "big", 0, 10) == [b"one", b"\x00\xff" * 1000, b"three"]
    assert await store.read_chunks("a", "big", 1, 1) == [b"\x00\xff" * 1000]
    assert await store.read_chunks("a", "big", 3, 5) == []
    assert await store.read_chunks("b", "big", 0, 5) == []


async def test_a_read_of_chunks_stops_at_the_first_missing_one(store: Store) -> None:
    await store_session(store, head("a"), x="1")
    assert await store.put_chunks("a", "big", 0, [b"one", b"two"])
    assert await store.put_chunks("a", "big", 3, [b"four"])
    assert await store.read_chunks("a", "big", 0, 10) == [b"one", b"two"]
    assert await store.read_chunks("a", "big", 1, 3) == [b"two"]
    assert await store.read_chunks("a", "big", 2, 2) == []
    assert await store.read_chunks("a", "big", 3, 2) == [b"four"]


async def test_the_next_holder_of_a_session_finds_its_chunks_without_reading_them_all(
    store: Store, engine: Engine
) -> None:
    await store_session(store, head("a"), x="1")
    await store.put_chunks("a", "big", 0, [b"one"])
    await store.close()
    again = await engine.open()
    stored = await again.take(key("a"))
    assert stored is not None
    assert len(stored.records) == 1
    assert await again.read_chunks("a", "big", 0, 1) == [b"one"]


async def test_the_store_keeps_no_chunks_of_an_unknown_session(store: Store) -> None:
    assert not await store.put_chunks("a", "big", 0, [b"one"])
    await store_session(store, head("a"), x="1")
    assert await store.read_chunks("a", "big", 0, 1) == []


async def test_chunks_are_deleted_by_name(store: Store) -> None:
    await store_session(store, head("a"), x="1")
    await store.put_chunks("a", "big", 0, [b"one", b"two"])
    await store.put_chunks("a", "other", 0, [b"x"])
    await store.drop_chunks("a", "big", 2)
    assert await store.read_chunks("a", "big", 0, 2) == []
    assert await store.read_chunks("a", "other", 0, 1) == [b"x"]


@pytest.mark.parametrize("expires", [False, True])
async def test_chunks_are_deleted_with_their_session(store: Store, clock: FakeClock, expires: bool) -> None:
    lease = await store_session(store, head("a"), x="1")
    await store.put_chunks("a", "big", 0, [b"one"])
    if expires:
        await store.release({"a": lease})
        assert await store.forget_expired(head("a").expires_at + timedelta(seconds=1), 100) == 1
    else:
        await store.forget("a", lease)
    await store_session(store, head("a"), x="1")
    assert await store.read_chunks("a", "big", 0, 1) == []

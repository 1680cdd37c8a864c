"""Secrets of principals that only a writer with the last revision can change, and locks that expire soon."""

import asyncio
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import NoKey, Store, StoreUnavailable
from support.fakes.clock import FakeClock
from support.store.store_engines import Engine
from support.system.redis_server import RedisServer
from support.waiting import eventually


def now() -> datetime:
    return datetime.now(UTC)


async def held(store: Store, principal: str, name: str) -> bytes | None:
    found = await store.secret(principal, name)
    return None if found is None else found.data


async def test_a_secret_is_available_to_every_process_and_survives_kills(
    engine: Engine, store: Store, other: Store
) -> None:
    revision = await store.put_secret("alice", "b/ü\n", b"\x00secret\xff", revision=0)
    assert revision is not None
    await other.put_secret("alice", "a", b"", revision=0)
    await other.put_secret("bob", "a", b"bob's", revision=0)
    found = await other.secrets_of("alice")
    assert [(each.name, each.data) for each in found] == [("a", b""), ("b/ü\n", b"\x00secret\xff")]
    assert found[1].revision == revision
    assert await held(store, "bob", "a") == b"bob's"
    assert await store.secrets_of("carol") == []
    assert await store.secret("carol", "a") is None
    for each in (store, other):
        await engine.kill(each)
    assert await held(await engine.open(), "alice", "b/ü\n") == b"\x00secret\xff"


async def test_a_secret_is_changed_only_with_its_last_revision(store: Store, other: Store) -> None:
    first = await store.put_secret("alice", "a", b"1", revision=0)
    assert first is not None
    assert await other.put_secret("alice", "a", b"x", revision=0) is None
    second = await other.put_secret("alice", "a", b"2", revision=first)
    assert second is not None
    assert second > first
    assert await store.put_secret("alice", "a", b"x", revision=first) is None
    assert not await store.drop_secret("alice", "a", revision=first)
    assert await held(store, "alice", "a") == b"2"
    assert await store.drop_secret("alice", "a", revision=second)
    assert not await store.drop_secret("alice", "a", revision=second)
    assert await held(other, "alice", "a") is None


async def test_a_revision_of_a_secret_is_never_reused(store: Store) -> None:
    """Otherwise a reader of a dropped secret would mistake its successor for it."""
    first = await store.put_secret("alice", "a", b"1", revision=0)
    assert first is not None
    await store.drop_secret("alice", "a", revision=first)
    again = await store.put_secret("alice", "a", b"2", revision=0)
    assert again is not None
    assert again != first
    assert await store.put_secret("alice", "a", b"x", revision=first) is None


async def test_of_many_concurrent_changes_of_a_secret_one_succeeds(store: Store, other: Store) -> None:
    revision = await store.put_secret("alice", "a", b"0", revision=0)
    for number in range(10):
        assert revision is not None
        asked = [
            each.put_secret("alice", "a", b"%d" % number, revision=revision) for each in (store, other, store, other)
        ]
        done = [new for new in await asyncio.gather(*asked) if new is not None]
        assert len(done) == 1
        (revision,) = done


async def test_changing_a_secret_does_not_change_the_shared_revision(store: Store, other: Store) -> None:
    before = await other.shared_revision()
    await store.put_secret("alice", "a", b"1", revision=0)
    assert await other.shared_revision() == before


async def test_a_lock_has_one_holder_until_its_release(store: Store, other: Store) -> None:
    start = now()
    until = start + timedelta(hours=1)
    assert await store.lock("x", "one", now=start, until=until)
    assert await store.lock("x", "one", now=start, until=until)
    assert not await other.lock("x", "two", now=start, until=until)
    assert await other.lock("y", "two", now=start, until=until)
    await other.unlock("x", "two")
    assert not await other.lock("x", "two", now=start, until=until)
    await store.unlock("x", "one")
    assert await other.lock("x", "two", now=start, until=until)


async def test_an_expired_lock_is_free(store: Store, other: Store) -> None:
    assert await store.lock("x", "one", now=now(), until=now() + timedelta(seconds=0.2))

    async def take() -> bool:
        return await other.lock("x", "two", now=now(), until=now() + timedelta(hours=1))

    await eventually(take)


@pytest.mark.parametrize("how", ["kill", "close"])
async def test_the_lock_of_a_dead_process_is_free(how: str, engine: Engine, store: Store, other: Store) -> None:
    until = now() + timedelta(hours=1)
    assert await store.lock("x", "one", now=now(), until=until)
    await (engine.kill(store) if how == "kill" else store.close())
    third = await engine.open()
    taken = [await each.lock("x", name, now=now(), until=until) for each, name in ((other, "two"), (third, "three"))]
    assert taken == [True, False]
    await third.unlock("x", "one")
    assert not await third.lock("x", "three", now=now(), until=until)


async def test_of_many_concurrent_requests_for_a_lock_one_succeeds(store: Store, other: Store) -> None:
    start = now()
    for number in range(10):
        asked = [
            each.lock(f"x{number}", f"{index}", now=start, until=start + timedelta(hours=1))
            for index, each in enumerate((store, other, store, other))
        ]
        assert sorted(await asyncio.gather(*asked)) == [False, False, False, True]


async def test_an_expired_lock_is_eventually_deleted(sqlite_store: SqliteStore, path: Path) -> None:
    await sqlite_store.lock("x", "one", now=now(), until=now())
    await sqlite_store.forget_expired(now(), 10)
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM locks").fetchone()
    assert count == 0


async def test_a_stored_secret_is_unreadable_on_disk_and_in_any_other_place(
    sqlite_store: SqliteStore, path: Path
) -> None:
    await sqlite_store.put_secret("alice", "a", b"the canary sings", revision=0)
    await sqlite_store.put_secret("alice", "b", b"another", revision=0)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT data FROM secrets").fetchall()
        assert all(b"canary" not in data for (data,) in rows)
        connection.execute("UPDATE secrets SET data = (SELECT data FROM secrets WHERE name = 'a') WHERE name = 'b'")
    assert await held(sqlite_store, "alice", "a") == b"the canary sings"
    with pytest.raises(StoreUnavailable, match="damaged"):
        await sqlite_store.secret("alice", "b")


async def test_redis_stores_no_secret_without_a_key(redis: RedisServer) -> None:
    store = await RedisStore.open(parse_address(redis.url()), FakeClock())
    try:
        with pytest.raises(NoKey, match="EMCEEPEE_STATE_KEY"):
            await store.put_secret("alice", "a", b"1", revision=0)
        assert await store.secrets_of("alice") == []
    finally:
        await store.close()

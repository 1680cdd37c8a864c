"""Secrets of principals, which only a writer with the last revision can change; and locks that expire soon."""

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


async def test_a_secret_is_there_for_every_process_and_after_all_are_killed(
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


async def test_only_who_knows_the_last_revision_changes_it(store: Store, other: Store) -> None:
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


async def test_a_revision_never_comes_again(store: Store) -> None:
    """Otherwise a reader of a dropped secret would mistake its successor for it."""
    first = await store.put_secret("alice", "a", b"1", revision=0)
    assert first is not None
    await store.drop_secret("alice", "a", revision=first)
    again = await store.put_secret("alice", "a", b"2", revision=0)
    assert again is not None
    assert again != first
    assert await store.put_secret("alice", "a", b"x", revision=first) is None


async def test_of_many_that_change_it_at_the_same_time_one_does(store: Store, other: Store) -> None:
    revision = await store.put_secret("alice", "a", b"0", revision=0)
    for number in range(10):
        assert revision is not None
        asked = [
            each.put_secret("alice", "a", b"%d" % number, revision=revision) for each in (store, other, store, other)
        ]
        done = [new for new in await asyncio.gather(*asked) if new is not None]
        assert len(done) == 1
        (revision,) = done


async def test_a_change_of_a_secret_is_no_change_of_what_is_shared(store: Store, other: Store) -> None:
    before = await other.shared_revision()
    await store.put_secret("alice", "a", b"1", revision=0)
    assert await other.shared_revision() == before


async def test_a_lock_has_one_holder_until_it_is_let_go(store: Store, other: Store) -> None:
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


async def test_a_lock_is_anybodys_after_its_time(store: Store, other: Store) -> None:
    assert await store.lock("x", "one", now=now(), until=now() + timedelta(seconds=0.2))

    async def take() -> bool:
        return await other.lock("x", "two", now=now(), until=now() + timedelta(hours=1))

    await eventually(take)


@pytest.mark.parametrize("how", ["kill", "close"])
async def test_a_lock_of_a_process_that_is_gone_is_anybodys(
    how: str, engine: Engine, store: Store, other: Store
) -> None:
    until = now() + timedelta(hours=1)
    assert await store.lock("x", "one", now=now(), until=until)
    await (engine.kill(store) if how == "kill" else store.close())
    third = await engine.open()
    taken = [await each.lock("x", name, now=now(), until=until) for each, name in ((other, "two"), (third, "three"))]
    assert taken == [True, False]
    await third.unlock("x", "one")
    assert not await third.lock("x", "three", now=now(), until=until)


async def test_of_many_that_want_a_lock_one_has_it(store: Store, other: Store) -> None:
    start = now()
    for number in range(10):
        asked = [
            each.lock(f"x{number}", f"{index}", now=start, until=start + timedelta(hours=1))
            for index, each in enumerate((store, other, store, other))
        ]
        assert sorted(await asyncio.gather(*asked)) == [False, False, False, True]


async def test_an_expired_lock_is_not_kept_forever(sqlite_store: SqliteStore, path: Path) -> None:
    await sqlite_store.lock("x", "one", now=now(), until=now())
    await sqlite_store.forget_expired(now(), 10)
    with closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM locks").fetchone()
    assert count == 0


async def test_what_is_on_the_disk_tells_nothing_and_opens_nowhere_else(sqlite_store: SqliteStore, path: Path) -> None:
    await sqlite_store.put_secret("alice", "a", b"the canary sings", revision=0)
    await sqlite_store.put_secret("alice", "b", b"another", revision=0)
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT data FROM secrets").fetchall()
        assert all(b"canary" not in data for (data,) in rows)
        connection.execute("UPDATE secrets SET data = (SELECT data FROM secrets WHERE name = 'a') WHERE name = 'b'")
    assert await held(sqlite_store, "alice", "a") == b"the canary sings"
    with pytest.raises(StoreUnavailable, match="damaged"):
        await sqlite_store.secret("alice", "b")


async def test_redis_keeps_no_secret_without_a_key(redis: RedisServer) -> None:
    store = await RedisStore.open(parse_address(redis.url()), FakeClock())
    try:
        with pytest.raises(NoKey, match="EMCEEPEE_STATE_KEY"):
            await store.put_secret("alice", "a", b"1", revision=0)
        assert await store.secrets_of("alice") == []
    finally:
        await store.close()

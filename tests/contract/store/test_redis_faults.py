"""A Redis that is killed, paused, or disconnected: confirmed data is stored, and work resumes with Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from emceepee.clock import SystemClock
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.connection.redis_connection import COMMAND_SECONDS
from emceepee.store.redis.connection.redis_link import RedisLink
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.store import Commit, Lease, SessionHead, StoreUnavailable
from support.figures import record_figure
from support.store.report_log import ReportLog
from support.store.store_engines import STATE_KEY
from support.store.stored_sessions import NOT_STORED, change, head, key, put, records, records_in, store_session, taken
from support.system.redis_server import RedisServer, redis_server
from support.waiting import WITHIN, eventually

LEASE_SECONDS = 600.0  # none lapses here
KILLS = 5


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One of their own for the tests that harm it. It writes each change to its disk before it answers."""
    with redis_server(appendonly=True) as running:
        yield running


@pytest.fixture
async def store(server: RedisServer) -> AsyncIterator[RedisStore]:
    async with asyncio.timeout(WITHIN):
        store = await open_store(server.url())
    yield store
    if not server.is_running:
        server.start()
    await store.close()


async def open_store(url: str, lease_seconds: float = LEASE_SECONDS) -> RedisStore:
    return await RedisStore.open(
        parse_address(url), SystemClock(), key=STATE_KEY, lease_seconds=lease_seconds, patience=WITHIN
    )


async def commit_until_it_is_there(store: RedisStore, commit: Commit) -> Lease:
    """As a saver does: the same again, while nothing can be saved."""
    made: list[Lease | None] = []

    async def is_there() -> bool:
        try:
            made[:] = await store.commit([commit])
        except StoreUnavailable:
            return False
        return True

    await eventually(is_there, what="it can be saved")
    assert made[0] is not None, "its lease is still good"
    return made[0]


def of() -> SessionHead:
    return head("s1", expires_at=SystemClock().now().replace(year=2100))


async def cut(store: RedisStore) -> None:
    """The connection breaks; Redis has what was sent before."""
    assert isinstance(store._commands, RedisLink)
    store._commands._connection.close("it was cut")


async def test_confirmed_commits_survive_a_kill_of_redis(server: RedisServer, store: RedisStore) -> None:
    lease = await store_session(store, of(), e="0")
    for number in range(1, KILLS + 1):
        for step in range(20):
            lease = await put(store, change(of(), lease, e=f"{number}.{step}"))
        server.kill()
        with pytest.raises(StoreUnavailable, match=f"127.0.0.1:{server.port}"):
            await store.commit([change(of(), lease, e="away")])
        server.start()
        lease = await commit_until_it_is_there(store, change(of(), lease, e=str(number)))
        assert await records_in(store, key("s1")) == records(e=str(number))
        lease = (await taken(store, key("s1"))).lease
    record_figure(f"{KILLS} kills of Redis, revision {lease.revision}")


async def test_the_store_waits_for_a_short_pause_of_redis(server: RedisServer, store: RedisStore) -> None:
    lease = await store_session(store, of(), e="1")
    server.pause()
    committing = asyncio.ensure_future(store.commit([change(of(), lease, e="2")]))
    asyncio.get_running_loop().call_later(COMMAND_SECONDS / 4, server.resume)
    try:
        (made,) = await committing
        assert made is not None
    except StoreUnavailable:  # on a machine that is too busy to be quick
        await commit_until_it_is_there(store, change(of(), lease, e="2"))
    assert await records_in(store, key("s1")) == records(e="2")


async def test_a_long_pause_of_redis_blocks_no_caller_and_loses_nothing(server: RedisServer, store: RedisStore) -> None:
    lease = await store_session(store, of(), e="1")
    server.pause()
    try:
        async with asyncio.timeout(WITHIN):
            with pytest.raises(StoreUnavailable, match="did not answer within 2 s"):
                await store.commit([change(of(), lease, e="2", x="x")])
            with pytest.raises(StoreUnavailable):
                await store.take(key("s1"))
    finally:
        server.resume()
    await commit_until_it_is_there(store, change(of(), lease, e="3"))
    assert await records_in(store, key("s1")) == records(e="3"), "what was put and is not any more is gone"


async def test_an_unconfirmed_commit_that_succeeded_does_not_block_the_next_one(
    server: RedisServer, store: RedisStore
) -> None:
    lease = await store_session(store, of(), e="1", kept="k")
    server.pause()
    unheard = asyncio.ensure_future(store.commit([change(of(), lease, e="2", forgotten="f")]))
    await asyncio.sleep(0)
    await cut(store)
    with pytest.raises(StoreUnavailable, match="it was cut"):
        await unheard
    server.resume()
    name = f"{store._names.tags[0]}:session:s1"
    await eventually(lambda: server.command("HGET", name, "r") == b"$1\r\n2\r\n", what="Redis has made it")
    again = await commit_until_it_is_there(store, change(of(), lease, e="3"))
    assert again == Lease(lease.fence, 3)
    assert await records_in(store, key("s1")) == records(e="3", kept="k")


async def test_an_unconfirmed_session_creation_that_succeeded_does_not_block_the_next_commit(
    server: RedisServer, store: RedisStore
) -> None:
    server.pause()
    unheard = asyncio.ensure_future(store.commit([change(of(), NOT_STORED, e="1", forgotten="f")]))
    await asyncio.sleep(0)
    await cut(store)
    with pytest.raises(StoreUnavailable):
        await unheard
    server.resume()
    name = f"{store._names.tags[0]}:session:s1"
    await eventually(lambda: server.command("HGET", name, "r") == b"$1\r\n1\r\n", what="Redis has made it")
    lease = await commit_until_it_is_there(store, change(of(), NOT_STORED, e="2"))
    assert lease == Lease(1, 2)
    assert await records_in(store, key("s1")) == records(e="2")


async def test_a_delayed_commit_has_no_effect_after_its_successor(store: RedisStore) -> None:
    """It waited in a buffer while its successor ran."""
    lease = await store_session(store, of(), e="1")
    committing, late = store._committing, change(of(), lease, e="late", x="x")
    committing._unconfirmed_commits.add(late)
    call = committing._call(store._names.tags[0], [(0, late)], SystemClock().now(), is_strict=False)
    await put(store, change(of(), lease, e="2"))
    assert await store._commands.run_all([call]) == [[0]]
    assert await records_in(store, key("s1")) == records(e="2")


async def test_a_canceled_wait_takes_no_answer_from_others(store: RedisStore) -> None:
    for number in range(20):
        await store_session(store, head(f"s{number}"), e=str(number))
    for number in range(1, 20):
        given_up = asyncio.ensure_future(store.take(key(f"s{number - 1}")))
        await asyncio.sleep(0)
        following = asyncio.ensure_future(store.take(key(f"s{number}")))
        given_up.cancel()
        found = await following
        assert found is not None
        assert found.records == records(e=str(number))


async def test_a_commit_without_a_waiting_caller_does_not_block_the_next_one(store: RedisStore) -> None:
    lease = await store_session(store, of(), e="1")
    given_up = asyncio.ensure_future(store.commit([change(of(), lease, e="2", x="x")]))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    await put(store, change(of(), lease, e="3"))
    assert await records_in(store, key("s1")) == records(e="3")


async def test_changes_by_other_processes_during_a_disconnect_are_noticed_afterwards(
    server: RedisServer, store: RedisStore
) -> None:
    heard: list[str] = []
    store.listen(ReportLog("store", heard))
    assert store._listener._connection is not None
    store._listener._connection.close("it was cut")
    await eventually(lambda: bool(heard), what="it looks after what it may have missed")


async def test_a_failed_writer_soon_notices_that_redis_is_back(server: RedisServer) -> None:
    store = await open_store(server.url(), lease_seconds=0.5)
    log = ReportLog("store", [])
    store.listen(log)
    server.kill()
    try:
        await eventually(lambda: store._lease._is_failing, what="it knows that Redis is away")
    finally:
        server.start()
    await eventually(lambda: bool(log.returns), what="it says that Redis is back")
    assert log.returns == 1
    await store.close()


async def test_scripts_that_redis_has_forgotten_are_loaded_again(server: RedisServer, store: RedisStore) -> None:
    lease = await store_session(store, of(), e="1")
    server.command("SCRIPT", "FLUSH")
    await put(store, change(of(), lease, e="2"))
    assert await records_in(store, key("s1")) == records(e="2")


async def test_a_redis_out_of_memory_rejects_commits_and_loses_nothing(server: RedisServer, store: RedisStore) -> None:
    lease = await store_session(store, of(), e="1")
    server.command("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable, match="has no memory left"):
            await store.commit([change(of(), lease, e="2")])
    finally:
        server.command("CONFIG", "SET", "maxmemory", "0")
    await put(store, change(of(), lease, e="3"))


async def test_closing_the_store_ends_while_redis_is_away(server: RedisServer) -> None:
    store = await open_store(server.url())
    await store_session(store, of())
    server.kill()
    try:
        async with asyncio.timeout(WITHIN):
            await store.close()
    finally:
        server.start()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.take(key("s1"))

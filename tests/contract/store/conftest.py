"""Every store engine, and processes that use it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

import pytest

from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Store
from support.fakes.clock import FakeClock
from support.store.store_engines import Engine, MemoryEngine, RedisEngine, SqliteEngine
from support.system import event_loops
from support.system.redis_server import RedisServer, redis_server
from support.waiting import wait_until


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Code with its own socket is tested on both loops."""
    loops = event_loops.pytest_asyncio_loop_factories(config, item)
    return loops if item.path.name == "test_redis_faults.py" else {"asyncio": loops["asyncio"]}


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[RedisServer]:
    """One node that has all of it."""
    with redis_server("--cluster-enabled", "yes") as running:
        running.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        wait_until(lambda: b"cluster_state:ok" in running.command("CLUSTER", "INFO"), what="the cluster is up")
        yield running


@pytest.fixture(params=["memory", "sqlite", "redis", "cluster"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine: Engine
    match request.param:
        case "memory":
            engine = MemoryEngine()
        case "sqlite":
            engine = SqliteEngine(tmp_path / "state.db")
        case "cluster":
            cluster: RedisServer = request.getfixturevalue("redis_cluster")
            engine = RedisEngine(cluster, cluster.url().replace("redis:", "redis+cluster:").replace("/0?", "?"))
        case _:
            engine = RedisEngine(request.getfixturevalue("redis"))
    yield engine
    await engine.close()


@pytest.fixture
async def store(engine: Engine) -> Store:
    """One process."""
    return await engine.open()


@pytest.fixture
async def other(engine: Engine) -> Store:
    """Another one at the same time."""
    return await engine.open()


# One file, for the tests of what only files have.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def sqlite_store(path: Path, clock: FakeClock) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, clock)
    yield store
    await store.close()

"""Every engine, and processes that use it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from emceepee.store.sqlite import SqliteStore
from emceepee.store.store import Store
from support.fakes.clock import FakeClock
from support.store.store_engines import Engine, MemoryEngine, RedisEngine, SqliteEngine


@pytest.fixture(params=["memory", "sqlite", "redis"])
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    engine: Engine
    match request.param:
        case "memory":
            engine = MemoryEngine()
        case "sqlite":
            engine = SqliteEngine(tmp_path / "state.db")
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

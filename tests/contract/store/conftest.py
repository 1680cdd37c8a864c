"""Every engine, and processes that use it."""

from collections.abc import AsyncIterator

import pytest

from emceepee.store.store import Store
from support.store.store_engines import Engine, MemoryEngine


@pytest.fixture(params=["memory"])
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[Engine]:
    engine: Engine = MemoryEngine()
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

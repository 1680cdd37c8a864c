"""Every test in this folder runs on the event loop of emceepee and on its fallback."""

from collections.abc import AsyncIterator

import pytest

from support.in_process.hops import Replicas, two_replicas
from support.system.event_loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with two_replicas() as running:
        yield running

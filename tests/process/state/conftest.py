"""Servers with their own state, and a backend that counts calls."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from support.backends.counting_http import CountingBackend
from support.callers.restartable_process import RestartableProcess, restartable_process


@pytest_asyncio.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[RestartableProcess]:
    async with restartable_process(tmp_path) as running:
        yield running


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[CountingBackend]:
    running = CountingBackend()
    running.tools += ["hold", "notify"]
    await running.start()
    yield running
    await running.stop()

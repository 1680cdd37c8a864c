"""One server per module. Each test uses its own session."""

from collections.abc import AsyncIterator

import pytest_asyncio

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.http_process import HttpCaller, HttpProcess, http_process


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    async with http_process("--log-level", "warn") as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def caller(endpoint: HttpProcess, backend: WebBackend) -> AsyncIterator[HttpCaller]:
    """A caller of the handshake era with the server "web", which is removed again at the end."""
    caller = await endpoint.caller()
    await caller.value("add_server", name="web", url=backend.url)
    yield caller
    cleaner = await endpoint.caller()
    await cleaner.value("remove_server", name="web")
    await cleaner.end()
    await caller.end()

"""One browser for all tests, one emceepee per module, and a monitor of every page."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.http_process import HttpCaller
from support.console.chromium import Watch, a_browser
from support.console.running_console import Console, a_console, open_page, puppet


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with a_browser() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        yield running


@pytest.fixture(scope="module")
def web_and_puppet(backend: WebBackend, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two servers that do what a test says, over HTTP and over stdio."""
    return {"web": {"url": backend.url}, "puppet": puppet(tmp_path_factory.mktemp("puppet"))}


@pytest.fixture(scope="module")
def servers() -> dict[str, Any]:
    """The servers behind the module's emceepee; a module that wants some says which."""
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def console(browser: Browser, servers: dict[str, Any]) -> AsyncIterator[Console]:
    async with a_console(browser, servers) as running:
        yield running


@pytest.fixture(scope="module")
def profile_options() -> dict[str, Any]:
    """The special settings of the module's browser profile."""
    return {}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def watched_profile(
    browser: Browser, console: Console, profile_options: dict[str, Any]
) -> AsyncIterator[tuple[BrowserContext, Watch]]:
    watch = Watch()
    async with console.profile(browser, watch, **profile_options) as context:
        yield context, watch


@pytest_asyncio.fixture(loop_scope="package")
async def callers() -> AsyncIterator[list[HttpCaller]]:
    """A console whose sessions end after its tabs are closed, because a tab must not query a stopped console."""
    callers: list[HttpCaller] = []
    yield callers
    for caller in callers:
        await caller.end()


@pytest_asyncio.fixture(loop_scope="package")
async def context(
    watched_profile: tuple[BrowserContext, Watch], callers: list[HttpCaller]
) -> AsyncIterator[BrowserContext]:
    """The browser of a logged-in person. One for all tests of a module, so that later tests use its cache. Any error in
    any tab fails the test."""
    context, watch = watched_profile
    before = set(context.pages)
    yield context
    for tab in set(context.pages) - before:
        await tab.close()
    found = watch.found()
    watch.begin_anew()
    assert found == []


@pytest.fixture
def watch(watched_profile: tuple[BrowserContext, Watch]) -> Watch:
    return watched_profile[1]


@pytest_asyncio.fixture(loop_scope="package")
async def page(context: BrowserContext, console: Console) -> Page:
    """The waterfall, live, in a tab of its own."""
    return await open_page(context, console.origin)


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def same_tab(watched_profile: tuple[BrowserContext, Watch], console: Console) -> Page:
    """For tests that leave nothing behind: one tab for all of a module."""
    return await open_page(watched_profile[0], console.origin)


@pytest_asyncio.fixture(loop_scope="package")
async def caller(console: Console, callers: list[HttpCaller]) -> HttpCaller:
    """A caller with a session of its own."""
    callers.append(await console.endpoint.caller())
    return callers[-1]

"""A running emceepee and its console: who is logged in, and what the page shows."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, BrowserContext, Locator, Page, StorageState, ViewportSize, expect

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpProcess, http_process, until
from support.console.chromium import Watch
from support.console.http_browser import links

PUPPET = Path(__file__).parents[1] / "server_programs" / "puppet.py"
DESKTOP = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)
VIEWS = ("Waterfall", "Overview", "Questions", "Servers", "Sessions", "Tasks", "Timers", "Events", "Logs")


class LoginLinks:
    """The one-time links that emceepee prints: one at its start, and another whenever one was used."""

    def __init__(self, log: list[str]) -> None:
        self._log, self._taken = log, 0

    async def next(self) -> str:
        """One that nobody used, as soon as it is there."""
        await until(lambda: len(self._printed()) > self._taken, "a login link is printed")
        self._taken += 1
        return self._printed()[self._taken - 1]

    def _printed(self) -> list[str]:
        return links(self._log)


class Console:
    """The console of one emceepee, seen at `origin`, and the cookie of a person who has logged in there."""

    def __init__(self, endpoint: HttpProcess, origin: str | None = None, *, links: LoginLinks | None = None) -> None:
        self.endpoint, self.origin = endpoint, origin or endpoint.origin
        self.links = links or LoginLinks(endpoint.log)
        self._login: StorageState | None = None

    async def login_link(self) -> str:
        link = await self.links.next()
        return f"{self.origin}/{link.split('/', 3)[3]}"

    async def log_in(self, browser: Browser) -> None:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(await self.login_link())
        self._login = await context.storage_state()
        await context.close()

    @asynccontextmanager
    async def profile(self, browser: Browser, watch: Watch, **options: Any) -> AsyncIterator[BrowserContext]:
        """Return that person's browser. A problem in any of its pages fails the test."""
        context = await browser.new_context(**{"storage_state": self._login, "viewport": DESKTOP, **options})
        await watch.over(context)
        try:
            yield context
        finally:
            watch.end(context)
            await context.close()
        assert watch.found() == []


async def open_page(context: BrowserContext, origin: str, view: str = "waterfall") -> Page:
    """The page in a new tab, with all that the feed tells at first."""
    page = await context.new_page()
    await page.goto(f"{origin}/#{view}")
    await live(page)
    return page


async def live(page: Page) -> None:
    await expect(page.locator("body")).to_have_attribute("data-feed", "live")


async def show(page: Page, view: str) -> None:
    """By the navigation, as a person would."""
    await page.get_by_role("navigation").get_by_role("link", name=re.compile(f"^{view}")).click()


async def begin_call(page: Page, server: str, tool: str) -> Locator:
    """Call a tool without arguments; the row of that call."""
    form = await open_tool(page, server, tool)
    calls = page.get_by_test_id("call-row")
    before = await calls.count()
    await form.get_by_role("button", name="Call").click()
    await expect(calls).to_have_count(before + 1)
    return calls.first


async def open_tool(page: Page, server: str, tool: str) -> Locator:
    """Its form."""
    await show(page, "Servers")
    card = page.locator(f'[data-testid="server-card"][data-name="{server}"]')
    await card.get_by_role("button", name="Show tools").click()
    chosen = card.locator(f'[data-testid="tool"][data-name="{tool}"]')
    await chosen.locator("summary").first.click()
    return chosen.get_by_test_id("tool-form")


def row(page: Page, name: str) -> Locator:
    """The row of the waterfall with this name."""
    return page.get_by_test_id("waterfall-row").filter(has=page.get_by_text(name, exact=True))


def bars(row: Locator, kind: str) -> Locator:
    return row.locator(f'[data-testid="waterfall-bar"][data-kind="{kind}"]')


def puppet(folder: Path, offer: dict[str, Any] | None = None, *words: str) -> dict[str, Any]:
    """Return the entry of a server whose messages the test dictates; see server_programs/puppet.py."""
    file = folder / "offer.json"
    tool = {"name": "speak", "description": "Says its text", "inputSchema": {"type": "object"}}
    file.write_text(json.dumps({"tools/list": {"tools": [tool]}} | (offer or {})))
    return {"command": sys.executable, "args": ["-S", "-E", str(PUPPET), str(file), *words]}


@asynccontextmanager
async def a_console(
    browser: Browser, servers: dict[str, Any] | None = None, *arguments: str, **limits: float
) -> AsyncIterator[Console]:
    """`emceepee serve` with these servers, and someone logged in with its link."""
    async with http_process("--log-level", "warn", *arguments, env=configured(servers or {}, **limits)) as endpoint:
        console = Console(endpoint)
        await console.log_in(browser)
        yield console

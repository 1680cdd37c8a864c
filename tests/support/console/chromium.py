"""A real browser, and a watch over what its pages may not do."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Request,
    Response,
    WebError,
    async_playwright,
    expect,
)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 20_000  # for anything a page is waited for, on a busy machine
LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
ARGUMENTS = [
    "--no-sandbox",  # which needs rights that a test machine may not have; the pages are our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]
# The page's console reports some violations as well, but not every kind.
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
"""


@asynccontextmanager
async def a_browser() -> AsyncIterator[Browser]:
    """The system's own Chromium or Chrome, without a window."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path is not None, "there is no browser: run `make browser`"
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield browser
        finally:
            await browser.close()


class Watch:
    """A list of everything that a page of the console must never do, one line per finding."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._allowed: list[re.Pattern[str]] = []

    async def over(self, context: BrowserContext) -> None:
        context.set_default_timeout(PATIENCE_MS)
        await context.add_init_script(REPORT_VIOLATIONS)
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("dialog", self._dialog)
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        context.on("response", self._response)

    def end(self, context: BrowserContext) -> None:
        """Ignore failures from now on: the test is over, and its pages close."""
        context.remove_listener("console", self._console)
        context.remove_listener("requestfailed", self._failed)

    def allow(self, pattern: str) -> None:
        """This test makes the page meet what the pattern says."""
        self._allowed.append(re.compile(pattern))

    def begin_anew(self) -> None:
        self.problems.clear()
        self._allowed.clear()

    def found(self) -> list[str]:
        return [line for line in self.problems if not any(allowed.search(line) for allowed in self._allowed)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.problems.append(f"console: {message.text} ({message.location.get('url')})")

    def _error(self, error: WebError) -> None:
        self.problems.append(f"error: {error.error}")

    async def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob", "about") and address.hostname not in LOOPBACK:
            self.problems.append(f"elsewhere: {request.method} {request.url}")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # what a page gives up itself, or by being left
            self.problems.append(f"failed: {request.method} {urlsplit(request.url).path} {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            path = urlsplit(response.url).path
            self.problems.append(f"status: {response.status} {response.request.method} {path}")

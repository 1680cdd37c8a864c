"""The callback of a login: the page that the browser shows, and a listener for processes without an HTTP endpoint."""

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TypeAlias
from urllib.parse import urlsplit

CALLBACK_PATH = "/oauth/callback"
CLIENT_PATH = "/oauth/client.json"
_CALLBACK = re.compile(rf"{CALLBACK_PATH}(/[0-9a-f]{{32}})?")  # shared, or per issuer, by its digest
_DOCUMENT = re.compile(r"/oauth/client(?:/([0-9a-f]{32}))?\.json")
HOST = "127.0.0.1"
LARGEST_HEAD = 32 << 10
READ_SECONDS = 10.0  # for one request, which a browser on this machine sends at once
HTML = (b"content-type", b"text/html; charset=utf-8")
PAGE_HEADERS = (
    HTML,
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)

CLOSE_SECONDS = 2.0  # for pages in transit when emceepee stops


@dataclass(frozen=True, slots=True)
class CallbackOutcome:
    """The outcome of a login, as its callback page shows it."""

    status: int
    title: str
    words: str


UNFINISHED = CallbackOutcome(
    202,
    "Login not finished",
    "emceepee has your answer, but the authorization server has not confirmed the login yet. The program in which you"
    " began the login shows the outcome.",
)
OTHER_BROWSER = CallbackOutcome(
    403,
    "Begun in another browser",
    "This login was not begun in this browser, so emceepee did not use it. If you asked for it, open the link that you"
    " were given, and log in from there.",
)
STORED = CallbackOutcome(
    202,
    "Login not finished",
    "emceepee has stored your answer, and finishes the login when the server is used next.",
)
Receive: TypeAlias = Callable[[str], Awaitable[CallbackOutcome]]


def not_awaited(problem: str) -> CallbackOutcome:
    """Return the outcome for a browser that no login waits for."""
    return CallbackOutcome(400, "No login is waiting for this page", f"{problem}.")


def ended_login(server: str, reason: str | None) -> CallbackOutcome:
    """Return the outcome of a login that is over; `reason` is why it failed, if it did."""
    if reason is None:
        return CallbackOutcome(200, "Logged in", f"emceepee is logged in to {server}. You can close this page.")
    return CallbackOutcome(400, "Not logged in", f"emceepee is not logged in to {server}. {reason}.")


def is_callback(path: str) -> bool:
    """Return whether browsers are redirected to this path after a login."""
    return _CALLBACK.fullmatch(path) is not None


def is_login_path(path: str) -> bool:
    """Return whether the path belongs to server logins: a callback, or a client document."""
    return is_callback(path) or document_digest(path) is not None


def document_digest(path: str) -> str | None:
    """Return the digest in the path of a client document, empty for the shared one; None if it is no such path."""
    found = _DOCUMENT.fullmatch(path)
    return None if found is None else found.group(1) or ""


def callback_page(outcome: CallbackOutcome) -> bytes:
    """Return the page for the person."""
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{outcome.title}</title>'
        f"<h1>{outcome.title}</h1><p>{html.escape(outcome.words)}</p></html>"
    ).encode()


class LoopbackCallback:
    """Listens on this machine from the first login on. Its creator must close it.

    Browsers are sent to the `chosen` address, if there is one. If it cannot be bound here, the emceepee process that
    listens there forwards them, or a person copies the address.
    """

    def __init__(self, receive: Receive, chosen: str | None = None) -> None:
        self._receive = receive
        self.advice = ""
        self._chosen = chosen
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()
        self._serving: set[asyncio.Task[None]] = set()

    async def address(self, preferred: str | None = None) -> str:
        """Raises: OSError."""
        async with self._opening:
            if self._server is None:
                self._server = await self._listen(_loopback_port(self._chosen or preferred))
        if self._chosen is not None:
            return self._chosen
        return f"http://{HOST}:{self._port}{CALLBACK_PATH}"

    @property
    def _port(self) -> int:
        assert self._server is not None  # the caller has opened it
        return int(self._server.sockets[0].getsockname()[1])

    async def _listen(self, port: int) -> asyncio.Server:
        with suppress(OSError):
            return await asyncio.start_server(self._serve, HOST, port, limit=LARGEST_HEAD)
        return await asyncio.start_server(self._serve, HOST, 0, limit=LARGEST_HEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._serving:  # a page with the outcome of a login may be in transit
            await asyncio.wait(self._serving, timeout=CLOSE_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None  # this coroutine runs in a task
        self._serving.add(serving)
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, body = await self._answer(head.decode("latin-1"))
            lines = [b"HTTP/1.1 " + status, b"connection: close", b"content-length: %d" % len(body)]
            lines += [name + b": " + value for name, value in PAGE_HEADERS]
            async with asyncio.timeout(READ_SECONDS):
                writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # no browser needs a response
        finally:
            self._serving.discard(serving)
            writer.close()

    async def _answer(self, head: str) -> tuple[bytes, bytes]:
        line, *fields = head.split("\r\n")
        method, target, *_ = [*line.split(" "), "", ""]
        hosts = [
            value.strip() for name, _, value in (field.partition(":") for field in fields) if name.lower() == "host"
        ]
        if hosts not in ([f"{HOST}:{self._port}"], [f"localhost:{self._port}"]):
            return b"421 Misdirected Request", b""
        if method != "GET" or not is_callback(target.partition("?")[0]):
            return b"404 Not Found", b""
        outcome = await self._receive(target)
        return f"{outcome.status} {HTTPStatus(outcome.status).phrase}".encode(), callback_page(outcome)


def _loopback_port(url: str | None) -> int:
    parts = urlsplit(url or "")
    with suppress(ValueError):
        return parts.port or 0 if parts.hostname == HOST else 0
    return 0

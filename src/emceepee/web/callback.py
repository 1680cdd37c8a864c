"""Where a browser comes back to after a login: the page it is shown, and a listener where no HTTP is served."""

import asyncio
import html
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias
from urllib.parse import urlsplit

CALLBACK_PATH = "/oauth/callback"
CLIENT_PATH = "/oauth/client.json"
HOST = "127.0.0.1"
LARGEST_HEAD = 32 << 10
READ_SECONDS = 10.0  # for one request: a browser on this machine sends it at once
HTML = (b"content-type", b"text/html; charset=utf-8")
PAGE_HEADERS = (
    HTML,
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
)

Receive: TypeAlias = Callable[[str], Awaitable[str | None]]


def callback_page(problem: str | None) -> bytes:
    """What the person is shown: `problem` is why nothing came of it."""
    title = "Logged in" if problem is None else "Not logged in"
    words = "emceepee has what it needs. You can close this page." if problem is None else f"{problem}."
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<h1>{title}</h1><p>{html.escape(words)}</p></html>"
    ).encode()


class LoopbackCallback:
    """Listens on this machine from the first login on. Whoever made it closes it.

    Browsers are sent to the `chosen` address, if there is one: where it cannot be listened to, another emceepee that is
    there passes them on, or a person does.
    """

    def __init__(self, chosen: str | None = None) -> None:
        self.receive: Receive | None = None
        self._chosen = chosen
        self._server: asyncio.Server | None = None
        self._opening = asyncio.Lock()

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
        assert self._server is not None  # whoever asks has opened it
        return int(self._server.sockets[0].getsockname()[1])

    async def _listen(self, port: int) -> asyncio.Server:
        with suppress(OSError):
            return await asyncio.start_server(self._serve, HOST, port, limit=LARGEST_HEAD)
        return await asyncio.start_server(self._serve, HOST, 0, limit=LARGEST_HEAD)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, body = await self._answer(head.decode("latin-1"))
                lines = [b"HTTP/1.1 " + status, b"connection: close", b"content-length: %d" % len(body)]
                lines += [name + b": " + value for name, value in PAGE_HEADERS]
                writer.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # nobody who matters
        finally:
            writer.close()

    async def _answer(self, head: str) -> tuple[bytes, bytes]:
        line, *fields = head.split("\r\n")
        method, target, *_ = [*line.split(" "), "", ""]
        hosts = [
            value.strip() for name, _, value in (field.partition(":") for field in fields) if name.lower() == "host"
        ]
        if hosts not in ([f"{HOST}:{self._port}"], [f"localhost:{self._port}"]):
            return b"421 Misdirected Request", b""
        if method != "GET" or target.partition("?")[0] != CALLBACK_PATH or self.receive is None:
            return b"404 Not Found", b""
        problem = await self.receive(target)
        return (b"200 OK" if problem is None else b"400 Bad Request"), callback_page(problem)


def _loopback_port(url: str | None) -> int:
    parts = urlsplit(url or "")
    with suppress(ValueError):
        return parts.port or 0 if parts.hostname == HOST else 0
    return 0

"""Opens a tunnel through a proxy with CONNECT, and checks the proxy's answer."""

import asyncio
import re
from typing import cast

from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.origin import authority
from emceepee.backends.http1.proxies import Proxy

HEAD_BYTES = 64 << 10  # maximum size of a proxy's answer
SHOWN_CHARS = 80  # maximum length of a proxy's status text in messages
LOGIN_WANTED, LOGIN_REFUSED, FORBIDDEN = 407, 401, 403  # some proxies reject a wrong password with 401, as servers do
_END = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.[01] (?P<status>\d{3})(?: (?P<words>[^\r\n]*))?\r\n").match


class TunnelRefused(NotConnected):
    """The proxy refused the tunnel. `status` is the HTTP status of its answer."""

    def __init__(self, proxy: Proxy, status: int, words: str) -> None:
        super().__init__(words)
        self.proxy, self.status = proxy, status


class TunnelRequest(asyncio.Protocol):
    """Requests a tunnel on a new connection to a proxy. The caller then replaces this protocol with its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._head: asyncio.Future[bytes] = loop.create_future()
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._head.done() and (_END in self._received or len(self._received) > HEAD_BYTES):
            self._head.set_result(self._received)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._head.done():
            self._head.set_result(self._received)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    async def ask(self, proxy: Proxy, host: str, port: int) -> asyncio.Transport:
        """Request a tunnel to the host, and return its transport. Raises: NotConnected."""
        assert self._transport is not None
        self._transport.write(_request(proxy, authority(host, port)))
        check_answer(await self._head, proxy, authority(host, port))
        if self._transport.is_closing():
            raise NotConnected(f"the proxy {proxy} ended the connection at once")
        return self._transport


def check_answer(head: bytes, proxy: Proxy, place: str) -> None:
    """Check the proxy's answer to CONNECT. Raises: NotConnected if there is no tunnel."""
    if not head:
        raise NotConnected(f"the proxy {proxy} ended the connection without an answer")
    found, end = _STATUS(head), head.find(_END)
    # The server waits for our first bytes, so any bytes after the head come from the proxy and are invalid.
    is_whole = end >= 0 and (end + len(_END) == len(head) or found is None or not found["status"].startswith(b"2"))
    if found is None or not is_whole:
        raise NotConnected(f"the proxy {proxy} sent an answer that is not HTTP; {_look_at(proxy)}")
    status = int(found["status"])
    if not 200 <= status < 300:
        raise TunnelRefused(proxy, status, refusal_words(proxy, status, _shown(found["words"] or b""), place))


def refusal_words(proxy: Proxy, status: int, said: str, place: str) -> str:
    answer = f"HTTP {status} {said}".rstrip()
    if status in (LOGIN_WANTED, LOGIN_REFUSED):
        what = "does not accept the password in" if proxy.credentials is not None else "wants a password, in"
        return f"the proxy {proxy} {what} {proxy.variable} ({answer}); write http://USER:PASSWORD@HOST:PORT there"
    if status == FORBIDDEN:
        return (
            f"the proxy {proxy} does not allow connections to {place} ({answer}); ask its operator, or name the host "
            "in NO_PROXY if it can be reached directly"
        )
    return f"the proxy {proxy} cannot connect to {place} ({answer})"


def _look_at(proxy: Proxy) -> str:
    return f"{proxy.variable} must name an HTTP proxy"


def _request(proxy: Proxy, place: str) -> bytes:
    login = f"proxy-authorization: {proxy.credentials}\r\n" if proxy.credentials is not None else ""
    return f"CONNECT {place} HTTP/1.1\r\nhost: {place}\r\n{login}\r\n".encode("ascii")


def _shown(words: bytes) -> str:
    text = words[:SHOWN_CHARS].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()

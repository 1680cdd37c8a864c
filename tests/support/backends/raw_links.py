"""Links over Streamable HTTP whose server is the test itself, byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.backends.dialer import Dialer
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.link import Link, LinkError
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock
from emceepee.state.limits import Limits
from support.backends.raw_server import Peer, RawRequest, RawServer
from support.backends.scripted_listener import ScriptedListener
from support.waiting import eventually

LARGEST = 10_000
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
JSON = "content-type: application/json"
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


class WatchedDialer(Dialer):
    """A dialer whose open connections a test can see."""

    def __init__(self, pool: ConnectionPool, *arguments: Any, **options: Any) -> None:
        super().__init__(pool, *arguments, **options)
        self.pool = pool


@asynccontextmanager
async def a_dialer(clock: Clock) -> AsyncIterator[WatchedDialer]:
    async with WatchedDialer.running(clock, Limits(line_bytes=LARGEST)) as running:
        assert isinstance(running, WatchedDialer)
        yield running
    assert running.pool.open == set()


def number_of(request: RawRequest) -> int:
    return int(json.loads(request.body)["id"])


def result_for(request: RawRequest, **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number_of(request), "result": result}).encode()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(data: bytes) -> bytes:
    return chunk(b"data: " + data + b"\n\n")


def dialing(
    dialer: Dialer,
    url: str,
    *,
    headers: dict[str, str] | None = None,
    mode: str = "legacy",
    listener: ScriptedListener | None = None,
) -> Any:
    target = HttpTarget(url=url, headers=headers or {}, kind="http")
    spec = BackendSpec(name="x", target=target, mode=mode)  # type: ignore[arg-type]  # given in words
    return asyncio.ensure_future(dialer.dial(spec, listener or ScriptedListener()))


async def idle_again(dialer: WatchedDialer) -> None:
    """The connection has heard the end of what the server last sent."""
    await eventually(lambda: all(connection.good_until for connection in dialer.pool.open))


@asynccontextmanager
async def a_link(
    dialer: WatchedDialer,
    server: RawServer,
    *hello_headers: str,
    pushes: bool = False,
    listener: ScriptedListener | None = None,
) -> AsyncIterator[tuple[Link, Peer]]:
    """A link of the handshake era, and the connection that it will use next. With `pushes`, one that waits for them."""
    opening = dialing(dialer, server.url, listener=listener)
    peer = await server.peer()
    request = await peer.request()
    peer.answer(result_for(request, **HELLO), JSON, *hello_headers)
    assert json.loads((await peer.request()).body)["method"] == "notifications/initialized"
    peer.answer(status="202 Accepted")
    link: Link = await opening
    if not pushes:
        assert (await peer.request()).line.startswith("GET ")
        peer.answer(status="405 Method Not Allowed")
        await idle_again(dialer)
    try:
        yield link, peer
    finally:
        async with asyncio.timeout(10):
            await link.close()


def asking(link: Link) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.ensure_future(link.request("tools/call", {"name": "echo"}))


async def failure_of(work: "asyncio.Future[Any]") -> LinkError:
    async with asyncio.timeout(10):
        with pytest.raises(LinkError) as raised:
            await work
    return raised.value

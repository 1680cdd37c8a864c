"""The least that a proxy in Python can do: decode a request, pass it on, decode the answer, encode it, return it.

`python -m bench.relay ERA FRONT BACK`. FRONT is a port, or `-` for standard input and output. BACK is a URL, or a
command as a JSON list. It knows no sessions, no tools, no deadlines: it is the floor that a real proxy stands on.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, cast

import aiohttp
import uvicorn
import uvloop
from orjson import dumps as encode
from orjson import loads as decode

from bench.load.http_client import SESSION_HEADER, routing
from bench.work import HELLO, INITIALIZED, Era, Json

Forward = Callable[[Json], Awaitable[Json]]
Message = MutableMapping[str, Any]


class HttpBack:
    """Passes messages on over HTTP."""

    def __init__(self, http: aiohttp.ClientSession, url: str, era: Era) -> None:
        self._http, self._url, self._era = http, url, era
        self._headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": str(era),
        }

    async def open(self) -> None:
        if self._era is Era.HANDSHAKE:
            body = encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
            async with self._http.post(self._url, data=body, headers=self._headers) as response:
                self._headers[SESSION_HEADER] = response.headers[SESSION_HEADER]
                await response.read()
            async with self._http.post(self._url, data=INITIALIZED, headers=self._headers) as response:
                await response.read()

    async def forward(self, message: Json) -> Json:
        headers = self._headers
        if self._era is Era.MODERN:
            headers = headers | routing(self._era, message["method"], message.get("params") or {})
        async with self._http.post(self._url, data=encode(message), headers=headers) as response:
            return dict(decode(await response.read()))


class StdioBack(asyncio.SubprocessProtocol):
    """Passes messages on to a child."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._parts: list[bytes] = []
        self.stdin: asyncio.WriteTransport | None = None

    async def open(self, era: Era) -> None:
        if era is Era.HANDSHAKE:
            await self.forward({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
            assert self.stdin is not None
            self.stdin.write(INITIALIZED + b"\n")

    async def forward(self, message: Json) -> Json:
        assert self.stdin is not None
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[message["id"]] = future
        self.stdin.write(encode(message) + b"\n")
        return await future

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        for line in _lines(self._parts, data):
            answer = decode(line)
            self._waiting.pop(answer["id"]).set_result(answer)


def _lines(parts: list[bytes], data: bytes) -> list[bytes]:
    """The lines that are whole now; `parts` keeps the beginning of the next."""
    if b"\n" not in data:
        parts.append(data)
        return []
    *lines, rest = b"".join([*parts, data]).split(b"\n")
    parts[:] = [rest] if rest else []
    return lines


class Relay:
    """Gives each request a number of its own on the way there, and its own back on the way home."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._numbers = itertools.count(1)

    async def answer(self, message: Json) -> bytes:
        number = message["id"]
        answer = await self._forward({**message, "id": next(self._numbers)})
        answer["id"] = number
        return encode(answer)

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """The ASGI application."""
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message = decode(body) if body else {}
        status, reply = (200, await self.answer(message)) if "id" in message else (202, b"")
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(reply))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": reply})


class StdioFront(asyncio.Protocol):
    """Takes requests from standard input."""

    def __init__(self, relay: Relay, output: asyncio.WriteTransport) -> None:
        self._relay, self._output = relay, output
        self._parts: list[bytes] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.ended = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        for line in _lines(self._parts, data):
            message = decode(line)
            if "id" in message:
                task = asyncio.create_task(self._serve(message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)

    async def _serve(self, message: Json) -> None:
        self._output.write(await self._relay.answer(message) + b"\n")


async def _serve_stdio(relay: Relay) -> None:
    loop = asyncio.get_running_loop()
    output, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    _, front = await loop.connect_read_pipe(lambda: StdioFront(relay, output), sys.stdin)
    await front.ended


async def _serve_http(relay: Relay, port: int) -> None:
    config = uvicorn.Config(
        relay,
        host="127.0.0.1",
        port=port,
        lifespan="off",
        log_config=None,
        access_log=False,
        http="httptools",
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        backlog=2048,
    )
    await uvicorn.Server(config).serve()


async def _serve(relay: Relay, front: str) -> None:
    await (_serve_stdio(relay) if front == "-" else _serve_http(relay, int(front)))


async def main(era: Era, front: str, back: str) -> None:
    if back.startswith("http"):
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            over_http = HttpBack(http, back, era)
            await over_http.open()
            await _serve(Relay(over_http.forward), front)
        return
    loop = asyncio.get_running_loop()
    child, over_stdio = await loop.subprocess_exec(StdioBack, *json.loads(back), stderr=None)
    over_stdio.stdin = cast(asyncio.WriteTransport, child.get_pipe_transport(0))
    await over_stdio.open(era)
    await _serve(Relay(over_stdio.forward), front)


if __name__ == "__main__":
    uvloop.run(main(Era(sys.argv[1]), sys.argv[2], sys.argv[3]))

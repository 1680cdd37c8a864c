"""The backend over Streamable HTTP, as a raw protocol: `python -m bench.backend.http ERA` prints its port.

It does just as much of HTTP as the contestants use.
"""

import asyncio
import itertools
import json
import re
import sys
from typing import cast

import msgspec
import uvloop

from bench.backend.answers import Answers, head
from bench.work import Era, Json

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_ENDED = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_NO_STREAM = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"


class HttpBackend:
    """Also usable inside another program: then it counts, and can push."""

    def __init__(self, era: Era) -> None:
        self.answers = Answers(era)
        self.has_pushes = era is Era.HANDSHAKE
        self.numbers = itertools.count(1)
        self.streams: set[asyncio.WriteTransport] = set()
        self.has_listener = asyncio.Event()
        self.ready = 0  # how many clients have finished their handshake
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Line(self), "127.0.0.1", 0, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for stream in list(self.streams):
            stream.abort()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def push(self, message: Json) -> None:
        """Say something unasked to everyone who listens."""
        event = b"data: " + json.dumps(message).encode() + b"\n\n"
        chunk = b"%x\r\n%s\r\n" % (len(event), event)
        for stream in self.streams:
            stream.write(chunk)


class _Line(asyncio.Protocol):
    """One connection."""

    def __init__(self, backend: HttpBackend) -> None:
        self._backend = backend
        self._unread = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's own says nothing of its kind

    def connection_lost(self, exc: Exception | None) -> None:
        if self._transport is not None:
            self._backend.streams.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while (end := self._unread.find(b"\r\n\r\n")) >= 0:
            length = _LENGTH.search(self._unread, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._unread) < whole:
                return
            verb, body = self._unread[:4], self._unread[end + 4 : whole]
            self._unread = self._unread[whole:]
            self._serve(verb, body)

    def _serve(self, verb: bytes, body: bytes) -> None:
        transport, backend = self._transport, self._backend
        assert transport is not None
        if verb == b"POST":
            self._answer(transport, msgspec.json.decode(body))
        elif verb != b"GET ":
            transport.write(_ENDED)
        elif backend.has_pushes:
            transport.write(_STREAM)
            backend.streams.add(transport)
            backend.has_listener.set()
        else:
            transport.write(_NO_STREAM)

    def _answer(self, transport: asyncio.WriteTransport, message: Json) -> None:
        method = message.get("method", "")
        if "id" not in message:
            self._backend.ready += method == "notifications/initialized"
            transport.write(_ACCEPTED)
            return
        before = head(message["id"])
        after = self._backend.answers.tail(method, message.get("params") or {})
        extra = b""
        if method == "initialize":
            extra = b"mcp-session-id: %d\r\n" % next(self._backend.numbers)
        elif method == "server/discover":
            self._backend.ready += 1
        length = len(before) + len(after)
        transport.writelines([_JSON, extra, b"content-length: %d\r\n\r\n" % length, before, after])


async def _serve(era: Era) -> None:
    backend = HttpBackend(era)
    await backend.start()
    print(backend.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(Era(sys.argv[1])))

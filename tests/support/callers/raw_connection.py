"""A caller that is nothing but a socket: it can leave at any moment, with or without having read."""

import json
import socket
from typing import Any
from urllib.parse import urlsplit

from support.callers.http_process import HttpCaller
from support.waiting import eventually

Json = dict[str, Any]


class RawConnection:
    """One connection."""

    def __init__(self, origin: str) -> None:
        place = urlsplit(origin)
        self.host = place.netloc
        self.socket = socket.create_connection((place.hostname or "", place.port or 80))
        self.socket.setblocking(False)
        self.received = b""
        self.headers: dict[str, str] = {}  # besides those of the caller

    def send(self, data: bytes) -> None:
        """All of it must fit into the socket's buffer."""
        assert self.socket.send(data) == len(data)

    def post(self, caller: HttpCaller, method: str, params: Json, *, path: str = "/mcp") -> None:
        message = caller.message(method, params)
        body = json.dumps(message).encode()
        given = caller.sent_headers(message) | {"host": self.host, "content-type": "application/json"} | self.headers
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {text}" for name, text in given.items())]
        self.send("\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body)

    def call(self, caller: HttpCaller, tool: str, /, *, token: str | None = None, **arguments: Any) -> None:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        self.post(caller, "tools/call", {"name": tool, "arguments": arguments, **meta})

    def has_data(self) -> bool:
        """Whether something, or the end, waits to be read."""
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        return True

    async def until_data(self) -> None:
        await eventually(self.has_data, what="something arrives")

    def read_some(self) -> bool:
        """Take what has come; False once the other side has closed."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self.received += data
        return bool(data)

    async def until_closed(self, *, within: float = 20.0) -> bytes:
        """Return the bytes that arrive until the other side closes."""
        await eventually(lambda: not self.read_some(), what="the connection is closed", within=within)
        self.cut()
        return self.received

    async def answer(self) -> Json:
        """The message that is the answer: plain JSON, or the last one of a stream."""
        await eventually(self._is_whole, what="a whole answer arrives")
        head, _, body = self.received.partition(b"\r\n\r\n")
        if b"text/event-stream" in head:
            body = [line[6:] for line in body.splitlines() if line.startswith(b"data: {")][-1]
        return dict(json.loads(body))

    def _is_whole(self) -> bool:
        self.read_some()
        head, _, body = self.received.partition(b"\r\n\r\n")
        if b"text/event-stream" in head:
            return body.endswith(b"0\r\n\r\n")
        lengths = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        return bool(lengths) and len(body) >= int(lengths[0])

    def cut(self) -> None:
        self.socket.close()

"""A plain HTTP client for what is not the measured loop: opening sessions, asking once, closing."""

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import Any

from bench.load.sample import WrongAnswer
from bench.work import HELLO, INITIALIZED, Era, Json, request

BOUND = 60.0  # seconds that any one answer may take; a contestant that needs longer has failed
SESSION_HEADER = "mcp-session-id"


@dataclass(frozen=True, slots=True)
class Response:
    """A whole one."""

    status: int
    headers: dict[str, str]
    body: bytes

    def message(self) -> Json:
        """The JSON-RPC message, also if it came as the last event of a stream."""
        if not self.headers.get("content-type", "").startswith("text/event-stream"):
            return dict(json.loads(self.body))
        data = [line for line in self.body.splitlines() if line.startswith(b"data:") and len(line) > len("data: ")]
        return dict(json.loads(data[-1].removeprefix(b"data:")))


class HttpLine:
    """One keep-alive connection."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def ask(self, data: bytes) -> Response:
        async with asyncio.timeout(BOUND):
            if self._writer is None:
                self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=1 << 26)
            assert self._reader is not None
            self._writer.write(data)
            return await _response(self._reader)

    def leave_to(self, protocol: asyncio.Protocol) -> None:
        """From now on, the protocol receives the data of the open connection. It lasts as long as this object."""
        assert self._writer is not None
        self._writer.transport.set_protocol(protocol)
        protocol.connection_made(self._writer.transport)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


async def _response(reader: asyncio.StreamReader) -> Response:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while length := int(await reader.readline(), 16):
            body += await reader.readexactly(length)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Response(int(first.split()[1]), headers, body)


def http_bytes(verb: str, port: int, headers: dict[str, str], body: bytes = b"") -> bytes:
    """One request to `/mcp` on this machine."""
    fields = {"host": f"127.0.0.1:{port}", "accept": "application/json, text/event-stream"} | headers
    if verb == "POST":
        fields |= {"content-type": "application/json", "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{verb} /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


class HttpSession:
    """One caller. In the handshake era it has a session; in that of 2026-07-28 it gives itself a name."""

    def __init__(self, port: int, era: Era, name: str = "bench", line: HttpLine | None = None) -> None:
        self.port, self.era = port, era
        self.line = line or HttpLine("127.0.0.1", port)
        self.headers = {"mcp-protocol-version": str(era)}
        if era is Era.MODERN:
            self.headers["emceepee-session"] = name  # only emceepee looks at it
        self._numbers = itertools.count(1)

    async def open(self) -> None:
        if self.era is Era.MODERN:
            await self.ask("server/discover", {})
            return
        response = await self._post(request(next(self._numbers), "initialize", HELLO, self.era), {})
        if "result" not in response.message():
            raise WrongAnswer(f"initialize: HTTP {response.status} {response.body[:300]!r}")
        if SESSION_HEADER in response.headers:
            self.headers[SESSION_HEADER] = response.headers[SESSION_HEADER]
        response = await self._post(INITIALIZED, {})
        if response.status != 202:
            raise WrongAnswer(f"notifications/initialized: HTTP {response.status} {response.body[:300]!r}")

    async def ask(self, method: str, params: Json) -> Json:
        """The result. Raises: WrongAnswer."""
        body = request(next(self._numbers), method, params, self.era)
        response = await self._post(body, routing(self.era, method, params))
        message = response.message()
        if response.status != 200 or "result" not in message:
            raise WrongAnswer(f"{method}: HTTP {response.status} {response.body[:300]!r}")
        return dict(message["result"])

    async def value(self, tool: str, **arguments: Any) -> Json:
        """Return the result of one of emceepee's tools."""
        result = await self.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise WrongAnswer(f"{tool}: {result}")
        return dict(result["structuredContent"])

    async def close(self, *, keep_line: bool = False) -> None:
        if SESSION_HEADER in self.headers:
            await self.line.ask(http_bytes("DELETE", self.port, self.headers))
        if not keep_line:
            self.line.close()

    def call_bytes(self, name: str, arguments: Json) -> bytes:
        """The whole request of one tool call, to be sent many times."""
        params = {"name": name, "arguments": arguments}
        headers = self.headers | routing(self.era, "tools/call", params)
        return http_bytes("POST", self.port, headers, request(1, "tools/call", params, self.era))

    async def _post(self, body: bytes, headers: dict[str, str]) -> Response:
        return await self.line.ask(http_bytes("POST", self.port, self.headers | headers, body))


def routing(era: Era, method: str, params: Json) -> dict[str, str]:
    """The 2026-07-28 era repeats in headers what a request is about."""
    if era is Era.HANDSHAKE:
        return {}
    named = {"mcp-name": params["name"]} if "name" in params else {}
    return {"mcp-method": method} | named

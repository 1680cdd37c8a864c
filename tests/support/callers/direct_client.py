"""A plain MCP client that says what emceepee says to a backend, and keeps the raw JSON of what comes back.

It is the yardstick for losslessness, so it shares no transport code with emceepee: only the words with which emceepee
introduces itself, for backends choose what they offer by them.
"""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import aiohttp

from emceepee.backends.negotiation import CLIENT_CAPABILITIES, CLIENT_INFO, envelope
from emceepee.backends.process.child import child_environment

Message = dict[str, Any]
MODERN = "2026-07-28"
BOUND = 30.0  # seconds an answer may take
LONGEST_LINE = 1 << 28


class DirectClient:
    """`send` is the transport's; what comes back is handed to `receive`."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.hello: Message = {}
        self.send: Callable[[Message], Awaitable[None]]
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Message]] = {}

    async def open(self) -> None:
        if self.version == MODERN:
            self.hello = await self.result("server/discover")
            return
        hello = {"protocolVersion": self.version, "capabilities": CLIENT_CAPABILITIES, "clientInfo": CLIENT_INFO}
        self.hello = await self.result("initialize", hello)
        assert self.hello["protocolVersion"] == self.version
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def request(self, method: str, params: Message | None = None) -> Message:
        """The whole response message."""
        key = next(self._ids)
        answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        params = dict(params or {})
        if self.version == MODERN:
            params["_meta"] = envelope(MODERN, CLIENT_CAPABILITIES)
        async with asyncio.timeout(BOUND):
            await self.send({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
            return dict(await answer)

    async def result(self, method: str, params: Message | None = None) -> Message:
        """The result of a request that must succeed."""
        answer = await self.request(method, params)
        assert "result" in answer, answer
        return dict(answer["result"])

    async def listed(self, method: str, key: str) -> list[Message]:
        """A list to its last page."""
        entries: list[Message] = []
        cursor: Message = {}
        while True:
            page = await self.result(method, cursor)
            entries += page[key]
            if page.get("nextCursor") is None:
                return entries
            cursor = {"cursor": page["nextCursor"]}

    async def receive(self, message: Message) -> None:
        if "method" not in message:
            self._waiting.pop(int(message["id"])).set_result(message)
        elif "id" in message:
            refusal = {"code": -32601, "message": "this client answers nothing"}
            body: Message = {"result": {}} if message["method"] == "ping" else {"error": refusal}
            await self.send({"jsonrpc": "2.0", "id": message["id"], **body})


@asynccontextmanager
async def direct_stdio(
    command: str, args: list[str], *, version: str, env: dict[str, str] | None = None
) -> AsyncIterator[DirectClient]:
    """With a child that knows as much of our environment as emceepee's does."""
    client = DirectClient(version)
    child = await asyncio.create_subprocess_exec(
        command,
        *args,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=child_environment(env or {}, os.environ),
        limit=LONGEST_LINE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    stdin, stdout = child.stdin, child.stdout

    async def send(message: Message) -> None:
        stdin.write(json.dumps(message).encode() + b"\n")
        await stdin.drain()

    async def listen() -> None:
        while line := await stdout.readline():
            await client.receive(json.loads(line))

    client.send = send
    listening = asyncio.create_task(listen())
    try:
        await client.open()
        yield client
    finally:
        stdin.close()
        try:
            await asyncio.wait_for(child.wait(), 5)
        except TimeoutError:
            child.kill()
            await child.wait()
        await listening


@asynccontextmanager
async def direct_http(url: str, *, version: str) -> AsyncIterator[DirectClient]:
    """Streamable HTTP of the handshake era; every POST is read to its end."""
    client = DirectClient(version)
    headers = {"accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession() as http:

        async def send(message: Message) -> None:
            async with http.post(url, json=message, headers=headers) as response:
                response.raise_for_status()
                if session_id := response.headers.get("mcp-session-id"):
                    headers.update({"mcp-session-id": session_id, "mcp-protocol-version": version})
                if response.content_type == "text/event-stream":
                    async for _, data in _events(response):
                        await client.receive(json.loads(data))
                elif body := await response.read():
                    await client.receive(json.loads(body))

        client.send = send
        await client.open()
        yield client
        async with http.delete(url, headers=headers):
            pass


@asynccontextmanager
async def direct_sse(url: str, *, version: str) -> AsyncIterator[DirectClient]:
    """The older transport: one stream for all answers, an address for all requests."""
    client = DirectClient(version)
    endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    async with aiohttp.ClientSession() as http, http.get(url, headers={"accept": "text/event-stream"}) as response:

        async def send(message: Message) -> None:
            async with http.post(urljoin(url, await endpoint), json=message) as accepted:
                accepted.raise_for_status()

        async def listen() -> None:
            async for name, data in _events(response):
                if name == "endpoint":
                    endpoint.set_result(data.decode())
                else:
                    await client.receive(json.loads(data))

        client.send = send
        listening = asyncio.create_task(listen())
        try:
            await client.open()
            yield client
        finally:
            listening.cancel()
            await asyncio.wait({listening})


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[tuple[str, bytes]]:
    """The name and data of each event with data."""
    name, data, unfinished = "message", b"", b""
    async for chunk in response.content.iter_any():
        *lines, unfinished = (unfinished + chunk).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b": ")
            if field == b"event":
                name = value.decode()
            elif field == b"data":
                data = value
            elif not field and data:
                yield name, data
                name, data = "message", b""

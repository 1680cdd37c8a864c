"""A real emceepee process on pipes, spoken to in raw JSON-RPC."""

import asyncio
import itertools
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.sessions.replies import own_part

BOUND = 60.0  # seconds any single answer may take on a busy machine
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class EmceepeeProcess:
    """`request` matches answers by id; everything else the process says is in `heard`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.heard: list[Any] = []
        self._ids = itertools.count(1)
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._unclaimed: asyncio.Queue[Any] = asyncio.Queue()
        self.stdout_garbage: list[bytes] = []
        self.last_line = b""  # the newest, as it came
        self._reader = asyncio.create_task(self._read())
        self.meta: dict[str, Any] | None = None
        self.hello: dict[str, Any] = {}  # the answer to `initialize` or `server/discover`

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self.last_line = line
            try:
                message = json.loads(line)
            except ValueError:
                self.stdout_garbage.append(line)
                continue
            key = message.get("id") if isinstance(message, dict) else None
            if key in self._waiting:
                self._waiting.pop(key).set_result(message)
            else:
                self.heard.append(message)
                self._unclaimed.put_nowait(message)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError("emceepee closed its output without an answer"))

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    async def next_heard(self) -> Any:
        """The next message that answers none of our requests (errors without id, notifications, batches)."""
        return await asyncio.wait_for(self._unclaimed.get(), BOUND)

    async def request(self, method: str, params: dict[str, Any] | None = None, *, key: Any = None) -> dict[str, Any]:
        """The whole response message."""
        key = next(self._ids) if key is None else key
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        if self.meta is not None:
            params = {**(params or {}), "_meta": {**self.meta, **(params or {}).get("_meta", {})}}
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": key, "method": method}
        if params is not None:
            message["params"] = params
        self.send_line(json.dumps(message).encode())
        return dict(await asyncio.wait_for(future, BOUND))

    async def initialize(self, version: str = "2025-11-25", **capabilities: Any) -> dict[str, Any]:
        """Open in the handshake era, or, for 2026-07-28, begin to stamp every request."""
        if version == "2026-07-28":
            self.meta = MODERN_META
            self.hello = await self.request("server/discover", {})
            return self.hello
        hello = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "tests", "version": "1"},
        }
        self.hello = await self.request("initialize", hello)
        self.send_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return self.hello

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The result of one tools/call."""
        answer = await self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        return dict(answer["result"])

    async def value(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured content of a call that must succeed."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        structured = dict(result["structuredContent"])
        return structured if tool == "await_activity" else own_part(structured)

    async def error(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        return dict(result["structuredContent"]["error"])

    async def end(self) -> int:
        """Close standard input and wait for the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await asyncio.wait_for(self.process.wait(), BOUND)


def configured(servers: dict[str, dict[str, Any]], **limits: float) -> dict[str, str]:
    """The environment of an emceepee with these servers and limits."""
    return {"EMCEEPEE_CONFIG": json.dumps({"mcpServers": servers, "limits": limits})}


@asynccontextmanager
async def emceepee(
    *arguments: str,
    env: dict[str, str] | None = None,
    stderr: int | None = None,
    entry: tuple[str, ...] = ("-m", "emceepee"),
    command: tuple[str, ...] = (),
    cwd: Path | None = None,
) -> AsyncIterator[EmceepeeProcess]:
    """A running `emceepee`, by way of `command` if one is given; it is ended if the test has not ended it."""
    process = await asyncio.create_subprocess_exec(
        *(*command, sys.executable, *entry, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=stderr,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        limit=1 << 28,
    )
    running = EmceepeeProcess(process)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), BOUND)
        await asyncio.wait_for(running._reader, BOUND)

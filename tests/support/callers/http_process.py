"""A real `emceepee serve` process, and callers that speak to it in raw HTTP."""

import asyncio
import itertools
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp

from emceepee.cli.serve.process_setup import TRACEABLE_VARIABLE
from support.callers.emceepee_process import MODERN_META
from support.sessions.replies import own_part
from support.waiting import eventually

BOUND = 60.0  # seconds any single answer may take on a busy machine
BOTH = "application/json, text/event-stream"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"  # not from mcp_types, which loads for long in every program
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One server-sent event; `message` is None for the empty one that only carries an id."""

    event_id: str | None
    message: Json | None


class EventReader:
    """The events of one response, one by one."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> SentEvent | None:
        """None when the stream has ended. Comments are passed over."""
        async with asyncio.timeout(BOUND):
            while True:
                fields: dict[str, str] = {}
                while (line := await self.response.content.readline()).strip():
                    name, _, text = line.decode().rstrip("\n").partition(": ")
                    fields[name] = text
                if fields.get("data") is not None:
                    data = fields["data"].strip()
                    return SentEvent(fields.get("id"), json.loads(data) if data else None)
                if not line:
                    return None

    async def some(self, count: int) -> list[SentEvent]:
        found = [await self.next() for _ in range(count)]
        return [event for event in found if event is not None]

    async def rest(self) -> list[SentEvent]:
        """All until the stream ends."""
        found = []
        while (event := await self.next()) is not None:
            found.append(event)
        return found

    def cut(self) -> None:
        """Drop the line, as a closed laptop would."""
        self.response.close()


class HttpProcess:
    """The running server."""

    def __init__(self, process: asyncio.subprocess.Process | None, url: str, http: aiohttp.ClientSession) -> None:
        self._process, self.url, self.http = process, url, http
        self.log: list[str] = []

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None, "it is another's"
        return self._process

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    async def caller(self, version: str = "2025-11-25", *, client: str = "tests", **headers: str) -> "HttpCaller":
        """A new session of the handshake era."""
        caller = HttpCaller(self, headers)
        hello = HELLO | {"protocolVersion": version, "clientInfo": {"name": client, "version": "1"}}
        async with caller.post("initialize", hello) as response:
            answer = await _answer_in(response)
            assert "result" in answer, answer
            caller.headers["mcp-session-id"] = response.headers["mcp-session-id"]
            caller.headers["mcp-protocol-version"] = answer["result"]["protocolVersion"]
        await caller.notify("notifications/initialized")
        return caller

    def modern(self, *, client: object = "tests", **headers: str) -> "ModernCaller":
        """A caller of 2026-07-28; `client` is the name that it gives, None if it gives none."""
        return ModernCaller(self, headers, client)

    async def resident_kb(self) -> int:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:  # noqa: ASYNC230 - no disk behind it
            return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


class HttpCaller:
    """A caller of the handshake era. Header names are written with underscores."""

    def __init__(self, endpoint: HttpProcess, headers: dict[str, str]) -> None:
        self.endpoint = endpoint
        self.headers = {"accept": BOTH} | {name.replace("_", "-"): text for name, text in headers.items()}
        self._ids = itertools.count(1)

    def message(self, method: str, params: Json | None, key: Any = None) -> Json:
        key = next(self._ids) if key is None else key
        return {"jsonrpc": "2.0", "id": key, "method": method, **({} if params is None else {"params": params})}

    def sent_headers(self, message: Json) -> dict[str, str]:
        return self.headers

    @asynccontextmanager
    async def post(
        self, method: str, params: Json | None = None, *, key: Any = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        message = self.message(method, params, key)
        async with (
            asyncio.timeout(BOUND),
            self.endpoint.http.post(self.endpoint.url, json=message, headers=self.sent_headers(message)) as response,
        ):
            yield response

    @asynccontextmanager
    async def stream(
        self, tool: str, /, *, key: Any = None, token: str | int | None = "t", **arguments: Any
    ) -> AsyncIterator[EventReader]:
        """A tool call whose answer comes as a stream."""
        async with self.post("tools/call", _call(tool, arguments, token), key=key) as response:
            assert response.content_type == "text/event-stream", await response.text()
            yield EventReader(response)

    @asynccontextmanager
    async def get(self, last_event_id: str | None = None) -> AsyncIterator[EventReader]:
        headers = self.headers | ({} if last_event_id is None else {"last-event-id": last_event_id})
        async with asyncio.timeout(BOUND), self.endpoint.http.get(self.endpoint.url, headers=headers) as response:
            assert response.status == 200, await response.text()
            yield EventReader(response)

    async def notify(self, method: str, params: Json | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        async with self.endpoint.http.post(
            self.endpoint.url, json=message, headers=self.sent_headers(message)
        ) as response:
            assert response.status == 202, await response.text()

    async def request(self, method: str, params: Json | None = None, *, key: Any = None) -> Json:
        """The whole response message."""
        async with self.post(method, params, key=key) as response:
            if response.content_type == "text/event-stream":
                last = (await EventReader(response).rest())[-1].message
                assert last is not None
                return last
            return dict(await response.json())

    async def call(self, tool: str, /, **arguments: Any) -> Json:
        answer = await self.request("tools/call", _call(tool, arguments, None))
        assert "result" in answer, answer
        return dict(answer["result"])

    async def value(self, tool: str, /, **arguments: Any) -> Json:
        """The structured content of a call that must succeed."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        structured = dict(result["structuredContent"])
        return structured if tool == "await_activity" else own_part(structured)

    async def error(self, tool: str, /, **arguments: Any) -> Json:
        """The error of a call that must fail."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        return dict(result["structuredContent"]["error"])

    async def end(self) -> int:
        async with (
            asyncio.timeout(BOUND),
            self.endpoint.http.delete(self.endpoint.url, headers=self.headers) as response,
        ):
            return response.status


class ModernCaller(HttpCaller):
    """A caller of 2026-07-28."""

    def __init__(self, endpoint: HttpProcess, headers: dict[str, str], client: object = "tests") -> None:
        super().__init__(endpoint, headers)
        self._meta = MODERN_META | {CLIENT_INFO: {"name": client, "version": "1"}}
        if client is None:
            del self._meta[CLIENT_INFO]

    def message(self, method: str, params: Json | None, key: Any = None) -> Json:
        stamped = {**(params or {}), "_meta": {**self._meta, **(params or {}).get("_meta", {})}}
        return super().message(method, stamped, key)

    def sent_headers(self, message: Json) -> dict[str, str]:
        routing = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
        if isinstance(name := message.get("params", {}).get("name"), str):
            routing["mcp-name"] = name
        return self.headers | routing


async def _answer_in(response: aiohttp.ClientResponse) -> Json:
    """As JSON, or at the end of a stream, which a slow one becomes."""
    if response.content_type != "text/event-stream":
        return dict(await response.json())
    messages = [event.message for event in await EventReader(response).rest() if event.message is not None]
    return messages[-1] if messages else {}


def _call(tool: str, arguments: Json, token: str | int | None) -> Json:
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return {"name": tool, "arguments": arguments, **meta}


async def launch(
    *arguments: str,
    env: dict[str, str] | None = None,
    module: str = "emceepee",
    command: tuple[str, ...] = ("serve",),
    state: Path | None = None,
) -> asyncio.subprocess.Process:
    """The process of a server that is being started."""
    environment = {name: text for name, text in os.environ.items() if name != "PORT"} | (env or {})
    environment["XDG_STATE_HOME"] = str(state or Path(environment["XDG_STATE_HOME"]) / uuid4().hex)
    environment.setdefault(TRACEABLE_VARIABLE, "1")  # some tests count its descriptors
    if module.startswith("support."):
        places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    port = () if "PORT" in environment else ("--port", "0")
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *command, *port, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        limit=1 << 24,
    )


async def address_of(process: asyncio.subprocess.Process, log: list[str]) -> str:
    """Where it serves MCP, as soon as it says so."""
    assert process.stderr is not None
    async with asyncio.timeout(BOUND):
        while not (line := (await process.stderr.readline()).decode()).startswith("emceepee "):
            assert line, f"it ended without serving: {log}"
            log.append(line)
    found = re.search(r"serves MCP at (\S+)", line)
    assert found, line
    return found[1].replace("0.0.0.0", "127.0.0.1")


@asynccontextmanager
async def http_process(
    *arguments: str,
    env: dict[str, str] | None = None,
    module: str = "emceepee",
    command: tuple[str, ...] = ("serve",),
    state: Path | None = None,
) -> AsyncIterator[HttpProcess]:
    """`emceepee serve` on a free port. At the end it must stop by itself, and its log must hold no traceback.

    It has a state of its own, unless `state` names the directory of one.
    """
    process = await launch(*arguments, env=env, module=module, command=command, state=state)
    assert process.stderr is not None
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        endpoint = HttpProcess(process, "", http)
        try:
            endpoint.url = await address_of(process, endpoint.log)
            reading = asyncio.create_task(read_log(process.stderr, endpoint.log))
            yield endpoint
        finally:
            await http.close()
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(BOUND):
                code = await process.wait()
    await reading
    assert code == 0, endpoint.log
    assert not [line for line in endpoint.log if "Traceback" in line or " error " in line], "".join(endpoint.log)


async def read_log(stream: asyncio.StreamReader, log: list[str]) -> None:
    while line := await stream.readline():
        log.append(line.decode())


async def until(condition: Callable[[], Awaitable[bool]] | Callable[[], bool], what: str) -> None:
    """Wait, bounded, until it holds."""
    await eventually(condition, what=what, within=BOUND)

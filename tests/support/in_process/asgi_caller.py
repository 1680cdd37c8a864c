"""Requests to the HTTP endpoint without a socket: a caller can hang up at any moment, and the clock is the test's."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.policy import AddServerPolicy
from emceepee.server.http.handshake_connection import HandshakeConnection
from emceepee.server.http.http_endpoint import HttpEndpoint, HttpParts
from emceepee.server.http.uvicorn_server import DrainingApp
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.sessions.session import Session
from emceepee.state.client_line import ClientLine
from emceepee.web.asgi import CONNECTION
from emceepee.wire.json_types import JsonObject
from support.callers.http_process import HELLO, HttpCaller, ModernCaller, SentEvent
from support.fakes.clock import settle
from support.in_process.asgi_messages import Answered, raw_headers
from support.sessions.installation import Installation, an_installation
from support.sessions.request_contexts import ALL_TOOLS


class AsgiRequest:
    """One request and its response while it is served. Also stands for the connection of the request."""

    def __init__(
        self,
        endpoint: DrainingApp,
        method: str,
        headers: dict[str, str],
        body: bytes,
        path: str = "/mcp",
        line: ClientLine | None = None,
    ) -> None:
        self.answered = Answered()
        self.line = ClientLine() if line is None else line
        self._body: bytes | None = body
        self.reads = 0  # how many wait for what the caller sends next, which is that it hangs up
        self._gone = asyncio.Event()
        self._unread: list[Callable[[], None]] = []
        given = list(raw_headers({"host": "localhost", "content_type": "application/json", **headers}).items())
        scope: JsonObject = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": given,
            "client": ("127.0.0.1", 5),
        }
        scope["extensions"] = {CONNECTION: self}
        self._serving = asyncio.create_task(endpoint(scope, self._receive, self._send))

    async def _receive(self) -> JsonObject:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body}
        self.reads += 1
        try:
            await self._gone.wait()
        finally:
            self.reads -= 1
        return {"type": "http.disconnect"}

    async def _send(self, message: JsonObject) -> None:
        if not self._gone.is_set():
            await self.answered.send(message)

    def is_gone(self) -> bool:
        return self._gone.is_set()

    def give_up_response(self) -> None:
        assert self._gone.is_set(), "a connected caller gets a response"

    def abort_response(self) -> None:
        self.hang_up()

    def hold(self, size: int) -> None: ...

    def if_unread(self, report: Callable[[], None], *, if_read: Callable[[], None] | None = None) -> None:
        self._unread.append(report)

    def when_written(self, report: Callable[[], None]) -> None:
        report()

    def hang_up(self) -> None:
        self._gone.set()

    def lose(self) -> None:
        """The caller's machine says that it did not read the response, though it was written."""
        self.hang_up()
        for tell in self._unread:
            tell()

    @property
    def is_served(self) -> bool:
        """Whether nothing more is done for it."""
        return self._serving.done()

    async def served(self) -> "AsgiRequest":
        """Once nothing more is done for it. A time-out that cancels would not tell: a cancelled one ends in order."""
        await asyncio.wait({self._serving}, timeout=5)
        assert self.is_served, f"it is still being served: {self.answered}"
        await self._serving
        return self

    @property
    def events(self) -> list[SentEvent]:
        """Return the events of the stream so far."""
        assert self.answered.headers["content-type"] == "text/event-stream"
        found = []
        for frame in self.answered.body.decode().split("\n\n"):
            fields = dict(line.partition(": ")[::2] for line in frame.splitlines())
            if "data" in fields:
                found.append(SentEvent(fields.get("id"), json.loads(fields["data"] or "null")))
        return found

    @property
    def message(self) -> JsonObject:
        """The answer, plain or at the end of a stream."""
        if self.answered.headers["content-type"] == "application/json":
            return dict(json.loads(self.answered.body))
        return self.events[-1].message or {}


class AsgiCaller:
    """A caller of either era."""

    def __init__(
        self,
        installation: Installation,
        endpoint: HttpEndpoint,
        *,
        is_modern: bool,
        capabilities: JsonObject,
        session_name: str | None = "s",
        line: ClientLine | None = None,
    ) -> None:
        """`session_name` is that of a caller of 2026-07-28; one of the handshake era has a session of its own.

        All of its requests come by the `line`, or each by a line of its own.
        """
        self.line = line
        self._capabilities, self._number = capabilities, len(installation.directory.sessions_of("local"))
        self.installation, self.clock, self.backend = installation, installation.clock, installation.backend
        self._endpoint, self.is_modern = endpoint, is_modern
        no_process: Any = None  # it only makes messages and headers for us
        self._words = (ModernCaller if is_modern else HttpCaller)(
            no_process, {"emceepee_session": session_name} if is_modern and session_name else {}
        )

    async def open(self) -> None:
        if not self.is_modern:
            hello = await self.post("initialize", HELLO | {"capabilities": self._capabilities}).served()
            self._words.headers["mcp-session-id"] = hello.answered.headers["mcp-session-id"]
            self._words.headers["mcp-protocol-version"] = str(HELLO["protocolVersion"])
            await self.tell("notifications/initialized")
        await self.call("list_tools")  # connects the backend
        await settle()
        await self.call("list_timers")  # takes what happened so far

    def moved_to(self, installation: Installation, endpoint: HttpEndpoint) -> "AsgiCaller":
        """Return this caller with a connection to another process."""
        moved = AsgiCaller(installation, endpoint, is_modern=self.is_modern, capabilities=self._capabilities)
        moved._words, moved._number = self._words, 0
        return moved

    def connections(self) -> list[HandshakeConnection]:
        """All that the endpoint has."""
        return list(self._endpoint._connections)

    @property
    def session(self) -> Session:
        return self.installation.directory.sessions_of("local")[self._number]

    def post(self, method: str, params: JsonObject, *, key: Any = None, **headers: str) -> AsgiRequest:
        if self.is_modern and self._capabilities:
            declared = {"io.modelcontextprotocol/clientCapabilities": self._capabilities}
            params = params | {"_meta": params.get("_meta", {}) | declared}
        return self.send(self._words.message(method, params, key), **headers)

    def send(self, message: JsonObject, **headers: str) -> AsgiRequest:
        sent = self._words.sent_headers(message) | headers
        return AsgiRequest(self._endpoint, "POST", sent, json.dumps(message).encode(), line=self.line)

    async def answer(self, key: Any, **result: Any) -> None:
        """To something that emceepee asked."""
        line = await self.send({"jsonrpc": "2.0", "id": key, "result": result}).served()
        assert line.answered.status == 202

    def listen(self) -> AsgiRequest:
        """Read what belongs to no request."""
        return AsgiRequest(self._endpoint, "GET", self._words.headers, b"")

    def start(self, tool: str, /, *, key: Any = None, token: Any = None, **arguments: Any) -> AsgiRequest:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.post("tools/call", {"name": tool, "arguments": arguments, **meta}, key=key)

    async def call(self, tool: str, /, **arguments: Any) -> JsonObject:
        """The result of one tool call."""
        return dict((await self.start(tool, **arguments).served()).message["result"])

    async def tell(self, method: str, **params: Any) -> None:
        line = self.send({"jsonrpc": "2.0", "method": method, "params": params})
        assert (await line.served()).answered.status == 202

    def come_back(self, last_event_id: str | None) -> AsgiRequest:
        """Resume a stream."""
        headers = self._words.headers | {"last-event-id": str(last_event_id)}
        return AsgiRequest(self._endpoint, "GET", headers, b"")


@asynccontextmanager
async def an_asgi_caller(*, is_modern: bool = False, **capabilities: Any) -> AsyncIterator[AsgiCaller]:
    """One caller of an HTTP endpoint behind which is the scripted backend "one"; nothing is new to it."""
    async with an_asgi_endpoint() as (installation, endpoint):
        caller = AsgiCaller(installation, endpoint, is_modern=is_modern, capabilities=capabilities)
        await caller.open()
        yield caller


@asynccontextmanager
async def an_asgi_endpoint() -> AsyncIterator[tuple[Installation, HttpEndpoint]]:
    async with an_installation() as installation:
        parts = HttpParts(
            methods=ProtocolMethods(),
            tools=ALL_TOOLS,
            directory=installation.directory,
            gate=AccessControl(AccessRules()),
            policy=AddServerPolicy(remote_commands=False, urls=()),
        )
        endpoint = HttpEndpoint(parts)
        try:
            yield installation, endpoint
        finally:
            await endpoint.close()

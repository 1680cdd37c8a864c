"""The HTTP endpoint without a socket: requests as ASGI messages, and a clock that only the test moves."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.policy import AddServerPolicy
from emceepee.server.http.http_endpoint import FallbackApp, HttpEndpoint, HttpParts
from emceepee.server.http.request_forwarder import RequestForwarder
from emceepee.server.http.request_router import ReplicaParts
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.sessions.session import Session
from emceepee.state.client_line import ClientLine
from emceepee.web.asgi import CONNECTION
from support.callers.emceepee_process import MODERN_META
from support.callers.http_process import HELLO
from support.fakes.clock import settle
from support.in_process.asgi_messages import Answered, raw_headers
from support.sessions.installation import Installation, an_installation
from support.sessions.request_contexts import ALL_TOOLS

Json = dict[str, Any]


async def ended(*requests: "asyncio.Task[None]") -> bool:
    """Whether they end soon by themselves. A time-out that cancels would not tell: a cancelled one ends in order."""
    _, pending = await asyncio.wait(requests, timeout=5)
    return not pending


class OpenConnection:
    """The connection of a caller that stays and reads."""

    def __init__(self) -> None:
        self.line = ClientLine()

    def is_gone(self) -> bool:
        return False

    def give_up_response(self) -> None:
        raise AssertionError("a connected caller gets a response")

    def abort_response(self) -> None: ...

    def hold(self, size: int) -> None: ...

    def if_unread(self, report: Callable[[], None], *, if_read: Callable[[], None] | None = None) -> None: ...

    def when_written(self, report: Callable[[], None]) -> None:
        report()


class EndpointClient:
    """Ask it as a server below it would."""

    def __init__(self, endpoint: HttpEndpoint, installation: Installation) -> None:
        self.endpoint, self.installation, self.clock = endpoint, installation, installation.clock
        self._ids = itertools.count(1)

    async def ask(
        self, method: str, path: str = "/mcp", body: object = None, *, query: str = "", **headers: str
    ) -> Answered:
        answered = Answered()
        await self._served(answered, method, path, body, query, headers)
        return answered

    async def start(self, method: str, body: object = None, **headers: str) -> tuple[Answered, "asyncio.Task[None]"]:
        """A request at /mcp that is not waited for, and how far its answer has come."""
        answered = Answered()
        task = asyncio.create_task(self._served(answered, method, "/mcp", body, "", headers))
        await settle()
        return answered, task

    async def join(self, name: str = "", *, query: str = "", **headers: str) -> str:
        """Initialize under a name; the Mcp-Session-Id."""
        if name:
            headers["emceepee_session"] = name
        answered = await self.ask("POST", body=self.message("initialize", HELLO), query=query, **headers)
        assert answered.status == 200, answered.body
        return answered.headers["mcp-session-id"]

    def message(self, method: str, params: object = None) -> Json:
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params or {}}

    def call(self, tool: str, /, **arguments: Any) -> Json:
        return self.message("tools/call", {"name": tool, "arguments": arguments})

    async def start_modern(self, method: str, params: Json, **headers: str) -> tuple[Answered, "asyncio.Task[None]"]:
        """A request of 2026-07-28 that is not waited for."""
        routing = {"mcp_protocol_version": "2026-07-28", "mcp_method": method}
        if "name" in params:
            routing["mcp_name"] = params["name"]
        return await self.start("POST", self.message(method, params | {"_meta": MODERN_META}), **routing, **headers)

    async def value(self, connection: str, tool: str, /, **arguments: Any) -> Json:
        """The structured content of a call that must succeed."""
        answered = await self.ask("POST", body=self.call(tool, **arguments), mcp_session_id=connection)
        assert answered.status == 200, answered.body
        return dict(json.loads(answered.body)["result"]["structuredContent"])

    async def status(self, connection: str, **headers: str) -> int:
        """Of a ping on that connection."""
        return (await self.ask("POST", body=self.message("ping"), mcp_session_id=connection, **headers)).status

    def sessions(self) -> list[Session]:
        return self.endpoint.directory.sessions_of("local")

    async def _served(
        self, answered: Answered, method: str, path: str, body: object, query: str, headers: dict[str, str]
    ) -> None:
        parts = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive() -> Json:
            return parts.pop() if parts else await asyncio.get_running_loop().create_future()

        given = list(raw_headers({"host": "localhost", "content_type": "application/json", **headers}).items())
        scope: Json = {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": given}
        scope |= {"client": ("127.0.0.1", 5), "extensions": {CONNECTION: OpenConnection()}}
        await self.endpoint(scope, receive, answered.send)


@asynccontextmanager
async def an_endpoint_client(
    fallback: FallbackApp | None = None, *, tokens: dict[str, str] | None = None, **settings: Any
) -> AsyncIterator[EndpointClient]:
    async with an_installation(**settings) as installation, an_endpoint_of(installation, fallback, tokens) as client:
        yield client


@asynccontextmanager
async def an_endpoint_of(
    installation: Installation,
    fallback: FallbackApp | None = None,
    tokens: dict[str, str] | None = None,
    forwarder: RequestForwarder | None = None,
) -> AsyncIterator[EndpointClient]:
    """With a `forwarder`, it is one of several replicas."""
    replicas = None
    if forwarder is not None and installation.placement is not None:
        replicas = ReplicaParts(forwarder=forwarder, placement=installation.placement, lease_seconds=5)
    parts = HttpParts(
        methods=ProtocolMethods(),
        tools=ALL_TOOLS,
        directory=installation.directory,
        gate=AccessControl(AccessRules(tokens=tokens or {})),
        policy=AddServerPolicy(remote_commands=False, urls=()),
        fallback=fallback,
        replicas=replicas,
    )
    endpoint = HttpEndpoint(parts)
    yield EndpointClient(endpoint, installation)
    await endpoint.close()

"""The HTTP endpoint: serves many callers at one address, and routes each path to the part that serves it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from emceepee.guard.access_control import AccessControl
from emceepee.guard.policy import AddServerPolicy
from emceepee.server.dispatch import Tools
from emceepee.server.http.cors import PREFLIGHT, with_cors_headers
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.handshake_connections import HandshakeConnections
from emceepee.server.http.http_shutdown import HttpShutdown, ShutdownStage
from emceepee.server.http.login_pages import ServerLoginPages, is_page
from emceepee.server.http.mcp_endpoint import McpEndpoint
from emceepee.server.http.request_reader import MCP_PATH, find_misdirection, send_rejection
from emceepee.server.http.request_router import ReplicaParts
from emceepee.server.http.stateless import StatelessEndpoint
from emceepee.server.metrics import METRICS_PATH
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stop_signals import FINISH_SECONDS
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.web.asgi import Headers, Receive, Scope, Send, respond, respond_json
from emceepee.wire.protocol import RESOURCE_PATH

if TYPE_CHECKING:
    from emceepee.guard.oauth import OAuthCheck


class FallbackApp(Protocol):
    """Serves the paths that are not ours, behind the same checks of Host and Origin."""

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> bool:
        """Return False if the path is unknown here as well."""
        ...

    def drain(self) -> None: ...

    async def close(self) -> None: ...


class MetricsRoute(Protocol):
    """Serves the metrics of this process to authorized callers."""

    async def serve(self, scope: Scope, headers: Headers, send: Send) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpParts:
    """The parts and settings of the endpoint."""

    methods: ProtocolMethods
    tools: Tools
    directory: SessionDirectory
    gate: AccessControl
    policy: AddServerPolicy
    oauth: "OAuthCheck | None" = None
    requires_session: bool = False
    body_bytes: int = 4 << 20
    fallback: FallbackApp | None = None
    finish_seconds: float = FINISH_SECONDS
    replicas: ReplicaParts | None = None
    logins: ServerLogins | None = None  # to servers, whose login pages redirect browsers to us
    metrics: MetricsRoute | None = None


class HttpEndpoint:
    """An ASGI application."""

    def __init__(self, parts: HttpParts) -> None:
        self._parts = parts
        services = parts.methods, parts.tools, parts.directory, parts.policy
        self._connections = HandshakeConnections(*services)
        self._stateless = StatelessEndpoint(*services, requires_session=parts.requires_session)
        self._login_pages = None if parts.logins is None else ServerLoginPages(parts.logins, parts.gate)
        stage = ShutdownStage()
        self._shutdown = HttpShutdown(
            stage,
            parts.directory,
            self._connections,
            self._stateless,
            finish_seconds=parts.finish_seconds,
            forwarder=None if parts.replicas is None else parts.replicas.forwarder,
            neighbor=parts.fallback,
        )
        self._mcp = McpEndpoint(
            parts.tools,
            parts.directory,
            parts.gate,
            self._connections,
            self._stateless,
            stage,
            body_bytes=parts.body_bytes,
            replicas=parts.replicas,
        )

    def __repr__(self) -> str:
        state = "over" if self.is_over else "draining" if self.is_draining else "open"
        return f"<HttpEndpoint {state} connections={len(self._connections)} {self._stateless!r}>"

    @property
    def directory(self) -> SessionDirectory:
        return self._parts.directory

    @property
    def is_draining(self) -> bool:
        return self._shutdown.is_draining

    @property
    def is_over(self) -> bool:
        return self._shutdown.is_over

    def drain(self) -> None:
        self._shutdown.drain()

    async def close(self) -> None:
        """Close the endpoint. Connections and streams of a session end when the directory closes the session."""
        await self._connections.close()
        await self._stateless.close()
        if self._parts.fallback is not None:
            await self._parts.fallback.close()

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        """Serve a request that another replica forwarded. If its session is not here, do nothing and return False."""
        return await self._mcp.serve_hop(request, body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path in ("/healthz", "/readyz"):
            await self._health(path, send)
            return
        headers = dict(scope["headers"])
        if (misdirected := find_misdirection(scope["headers"], headers, self._parts.gate)) is not None:
            await send_rejection(send, misdirected)
        elif path == MCP_PATH:
            if (origin := headers.get(b"origin")) is not None:
                send = with_cors_headers(origin, send)
            if scope["method"] == "OPTIONS" and origin is not None:  # a preflight request
                await respond(send, 204, b"", *PREFLIGHT)
            else:
                await self._mcp.serve(scope, headers, receive, send)
        elif (pages := self._login_pages) is not None and is_page(path):
            if not await pages.serve(scope, headers, receive, send):
                await respond_json(send, 405, {"error": "This page does not support this method."})
        elif path in (RESOURCE_PATH, RESOURCE_PATH + MCP_PATH) and self._parts.oauth is not None:
            await respond_json(send, 200, self._parts.oauth.metadata())
        elif path == METRICS_PATH and self._parts.metrics is not None:
            await self._parts.metrics.serve(scope, headers, send)
        elif (fallback := self._parts.fallback) is None or not await fallback.serve(scope, headers, receive, send):
            await respond_json(send, 404, {"error": f"Not found. MCP is served at {MCP_PATH}."})

    async def _health(self, path: str, send: Send) -> None:
        is_ready = path == "/healthz" or not self.is_draining
        body = {"status": "ok" if is_ready else "shutting down"}
        if path == "/readyz" and self.directory.storage.unsaved_problem is not None:  # callers are still served
            body["state"] = "not saved"
        if path == "/readyz" and self.directory.has_configuration_problem:
            body["configuration"] = "the file has a mistake; see the log"
        await respond_json(send, 200 if is_ready else 503, body)

"""The HTTP endpoint: serves many callers, of both eras, at one address."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.guard.policy import AddServerPolicy
from emceepee.server.dispatch import Tools
from emceepee.server.http.cors import PREFLIGHT, with_cors_headers
from emceepee.server.http.exchange import HttpRequest, send_rpc_error
from emceepee.server.http.handshake_connection import HandshakeConnection, handshake_refusal
from emceepee.server.http.handshake_connections import HandshakeConnections
from emceepee.server.http.login_pages import ServerLoginPages, is_page
from emceepee.server.http.request_reader import MCP_PATH, RequestBody, find_misdirection, read_message, send_rejection
from emceepee.server.http.request_router import ReplicaParts, RequestRouter
from emceepee.server.http.stateless import StatelessEndpoint
from emceepee.server.metrics import METRICS_PATH
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import observe_refusal
from emceepee.server.session_keys import SURFACE_HEADER, NameTooLong, pinned_name, pinned_surface
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS, PASSED_ON_SECONDS
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.open_sessions import TooManySessions
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.store.store import RecordKey
from emceepee.surface import UnknownSurface, use_surface
from emceepee.telemetry.logs import EventLog
from emceepee.tools.request_context import RequestContext
from emceepee.web.asgi import STREAM, Header, Headers, Receive, Scope, Send, accepts, respond, respond_json
from emceepee.wire.json_rpc import Request, classify, client_label, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_REQUEST, RESOURCE_PATH

if TYPE_CHECKING:
    from emceepee.guard.oauth import OAuthCheck

log = EventLog("http")
CONNECT_HEADER = b"emceepee-connect"  # `on-use`: the new session connects a server only when a call needs it


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
        self._connections = HandshakeConnections(parts.directory, partial(HandshakeConnection, *services))
        self._stateless = StatelessEndpoint(*services, requires_session=parts.requires_session)
        self._login_pages = None if parts.logins is None else ServerLoginPages(parts.logins, parts.gate)
        self._is_finished = False  # with its own requests
        self._router = RequestRouter(parts.directory, self._serve, parts.replicas)
        parts.directory.attach(self)

    def __repr__(self) -> str:
        state = "over" if self.is_over else "draining" if self.is_draining else "open"
        return f"<HttpEndpoint {state} connections={len(self._connections)} {self._stateless!r}>"

    @property
    def directory(self) -> SessionDirectory:
        return self._parts.directory

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
                await self._mcp(scope, headers, receive, send)
        elif (pages := self._login_pages) is not None and is_page(path):
            if not await pages.serve(scope, headers, receive, send):
                await respond_json(send, 405, {"error": "This page is not used in this way."})
        elif path in (RESOURCE_PATH, RESOURCE_PATH + MCP_PATH) and self._parts.oauth is not None:
            await respond_json(send, 200, self._parts.oauth.metadata())
        elif path == METRICS_PATH and self._parts.metrics is not None:
            await self._parts.metrics.serve(scope, headers, send)
        elif (fallback := self._parts.fallback) is None or not await fallback.serve(scope, headers, receive, send):
            await respond_json(send, 404, {"error": f"There is nothing here. MCP is served at {MCP_PATH}."})

    # Shutting down.

    @property
    def is_draining(self) -> bool:
        return self._router.is_draining

    @property
    def is_over(self) -> bool:
        """Whether shutdown no longer waits for any request."""
        return self._router.is_over or (self._is_finished and not self._is_passing)

    @property
    def _is_passing(self) -> bool:
        return self._parts.replicas is not None and self._parts.replicas.forwarder.is_passing

    def drain(self) -> None:
        """Accept nothing new, end streams that belong to no call, and give calls time to finish."""
        if self.is_draining:
            return
        self._router.is_draining = True
        for connection in self._connections:
            connection.end_pushes()
        self._stateless.end_listens()
        if self._parts.replicas is not None:
            self._parts.replicas.forwarder.end_streams()
        if self._parts.fallback is not None:
            self._parts.fallback.drain()
        self._parts.directory.begin_stop()
        self._parts.directory.clock.call_later(self._parts.finish_seconds, self._stop_calls)

    def _stop_calls(self) -> None:
        """Fail calls to backends, with the reason in their replies, and cancel everything else shortly afterwards."""
        self._router.is_refusing = True
        self._parts.directory.stop_calls()
        self._parts.directory.clock.call_later(LET_GO_SECONDS, self._cancel_requests)

    def _cancel_requests(self) -> None:
        for connection in self._connections:
            connection.cancel_requests()
        self._stateless.cancel_requests()
        self._is_finished = True
        if self._is_passing:
            self._parts.directory.clock.call_later(PASSED_ON_SECONDS, self._break_off)
        else:
            self._break_off()

    def _break_off(self) -> None:
        """Stop waiting for other replicas. The calls that they serve continue there."""
        self._router.is_over = True
        if self._parts.replicas is not None:
            self._parts.replicas.forwarder.break_off()

    async def close(self) -> None:
        """Close the endpoint. Connections and streams of a session end when the directory closes the session."""
        await self._connections.close()
        await self._stateless.close()
        if self._parts.fallback is not None:
            await self._parts.fallback.close()

    # Connections of sessions (`SessionConnections`).

    def write_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        return self._connections.write_record(kind, record_id)

    async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        await self._connections.restore(session, stored)

    async def close_all_of(self, session: Session) -> None:
        """Close the connections and streams of an ended session."""
        self._stateless.end_listens_of(session)
        await self._connections.close_all_of(session)

    # One request.

    async def _mcp(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        identity = await self._parts.gate.admit(headers, peer[0] if peer else None, method=scope["method"])
        if isinstance(identity, Rejection):
            await send_rejection(send, identity)
            return
        query: bytes = scope.get("query_string", b"")
        try:  # most requests name none
            asks = SURFACE_HEADER in headers or b"surface=" in query
            surface = pinned_surface(headers, query) if asks else None
            if surface is not None:
                self._parts.tools.check_surface(surface)
        except UnknownSurface as error:
            await send_rpc_error(send, 400, INVALID_REQUEST, f"Bad request: {error}")
            return
        use_surface(surface or self._parts.tools.surface)  # also for messages sent before the request is served
        http = HttpRequest(scope, headers, receive, send, identity, surface=surface)
        if (message := await read_message(http, self._parts.body_bytes)) is not None:
            await self._router.route(http, message)

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        """Serve a request that another replica forwarded. False, without effect, if its session is not here."""
        with suppress(UnknownSurface):  # a replica of another version may support it
            request = replace(request, surface=pinned_surface(request.headers, request.query))
        message = await read_message(request, self._parts.body_bytes, body)
        return message is None or await self._router.route_hop(request, message)

    async def _serve(self, http: HttpRequest, message: RequestBody) -> None:
        """Raises: SessionElsewhere, before anything is answered."""
        method = http.scope["method"]
        if method == "POST":
            await self._post(http, message.value)
        elif (connection := await self._find_connection(http)) is not None:
            if method == "DELETE":
                await self._connections.end(connection)
                await respond(http.send, 200, b"")
            elif not accepts(http.headers, STREAM):
                await send_rpc_error(http.send, 406, INVALID_REQUEST, "A GET is answered with text/event-stream")
            else:
                last = http.headers.get(b"last-event-id")
                await connection.get(None if last is None else last.decode("latin-1"), http)

    async def _post(self, http: HttpRequest, value: object) -> None:
        if http.is_modern:
            await self._stateless.post(value, http)
        elif b"mcp-session-id" in http.headers:
            if (connection := await self._find_connection(http, value)) is not None:
                await connection.post(value, http)
        elif (connection := await self._open_connection(value, http)) is not None:
            await connection.post(value, http)
            if not connection.is_open:
                await self._connections.end(connection)

    async def _open_connection(self, value: object, http: HttpRequest) -> HandshakeConnection | None:
        """Open a connection for an `initialize` request. Refuse any other request and return None."""
        message = classify(value)
        if not (isinstance(message, Request) and message.method == "initialize"):
            words = "Bad request: begin with initialize, then send the Mcp-Session-Id that it returns."
            await self._refuse(http, value, 400, words)
            return None
        if (refusal := await handshake_refusal(message, self._parts.methods)) is not None:
            self._observe_refusal(http, message, refusal)
            await respond_json(http.send, 200, refusal)
            return None
        try:
            is_tab = http.headers.get(CONNECT_HEADER, b"").strip().lower() == b"on-use"
            return await self._connections.open(
                http.identity.principal,
                pinned_name(http.headers, http.query),
                label=client_label(message.params),
                connects_on_use=is_tab or http.identity.is_remote,
                is_tab=is_tab,
                may_guess=http.may_guess,
            )
        except SessionsUnavailable as error:
            await self._refuse(http, value, 503, str(error), (b"retry-after", b"5"))
        except TooManySessions as error:
            await self._refuse(http, value, 503, str(error), (b"retry-after", b"60"))
        except NameTooLong as error:
            await self._refuse(http, value, 400, str(error))
        return None

    async def _find_connection(self, http: HttpRequest, value: object = None) -> HandshakeConnection | None:
        """Return the connection that a request names, or refuse the request. `value` is its decoded body."""
        given = http.headers.get(b"mcp-session-id", b"").decode("latin-1")
        if not given:
            await self._refuse(http, value, 400, "Bad request: the Mcp-Session-Id header is missing")
            return None
        try:
            connection = await self._connections.find(given, http.identity.principal, may_guess=http.may_guess)
        except (SessionsUnavailable, TooManySessions) as error:
            await self._refuse(http, value, 503, str(error), (b"retry-after", b"5"))
            return None
        if connection is not None:
            connection.session.touch()
            return connection
        await self._refuse(http, value, 404, "Session not found: it has ended. Begin again with initialize.")
        return None

    async def _refuse(self, http: HttpRequest, value: object, status: int, words: str, *headers: Header) -> None:
        """Respond to a request that no connection can serve."""
        reply = error_message(None, INVALID_REQUEST, words)
        if isinstance(request := classify(value), Request):
            self._observe_refusal(http, request, reply)
        await respond_json(http.send, status, reply, *headers)

    def _observe_refusal(self, http: HttpRequest, request: Request, reply: JsonObject) -> None:
        context = RequestContext(
            request, principal=http.identity.principal, directory=self.directory, headers=http.headers
        )
        observe_refusal(self._parts.tools, context, reply)

    async def _health(self, path: str, send: Send) -> None:
        is_ready = path == "/healthz" or not self.is_draining
        body = {"status": "ok" if is_ready else "shutting down"}
        if path == "/readyz" and self.directory.storage.unsaved_problem is not None:  # callers are still served
            body["state"] = "not saved"
        if path == "/readyz" and self.directory.has_configuration_problem:
            body["configuration"] = "the file has a mistake, which the log names"
        await respond_json(send, 200 if is_ready else 503, body)

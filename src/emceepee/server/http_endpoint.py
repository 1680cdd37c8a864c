"""The HTTP door: many callers, both eras, at one address."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from mcp.server.lowlevel import Server
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.codec import Unreadable, decode
from emceepee.guard.gate import Gate
from emceepee.guard.oauth import RESOURCE_PATH, OAuthCheck
from emceepee.guard.policy import AddServerPolicy
from emceepee.guard.visitor import TurnedAway, Visitor
from emceepee.server.callers import Guest, Office, client_label
from emceepee.server.cross_origin import PREFLIGHT, readable_by
from emceepee.server.dispatch import Tools
from emceepee.server.exchange import Taste
from emceepee.server.handshake_connections import HandshakeConnections
from emceepee.server.handshake_http import HandshakeCaller
from emceepee.server.kernel import CallerState
from emceepee.server.messages import INVALID_REQUEST, PARSE_ERROR, SHUTTING_DOWN, Request, classify
from emceepee.server.modern_http import ModernDoor
from emceepee.server.peers import refusal_of_handshake
from emceepee.server.refusal import refuse
from emceepee.server.session_keys import SESSION_HEADER, NameTooLong, pinned_name
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS
from emceepee.sessions.directory import SessionDirectory, TooManySessions
from emceepee.sessions.session import Session
from emceepee.telemetry.logs import EventLog
from emceepee.web.asgi import (
    JSON,
    STREAM,
    BodyTooLarge,
    CallerLeft,
    Headers,
    Receive,
    Scope,
    Send,
    accepts,
    connection_of,
    is_json,
    read_body,
    respond,
    respond_json,
)

log = EventLog("http")
MCP_PATH = "/mcp"
SINGLE_HEADERS = (
    *(b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site"),
    *(b"content-type", b"mcp-session-id", b"last-event-id", SESSION_HEADER),
)
CONNECT_HEADER = b"emceepee-connect"  # `on-use`: the new session connects no server before a call needs it


class Neighbor(Protocol):
    """Whoever serves the paths that are not ours, behind the same checks of Host and Origin."""

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> bool:
        """False if the path is not theirs either."""
        ...

    def drain(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpParts:
    """What the door is made of."""

    kernel: Server[CallerState]
    directory: SessionDirectory
    gate: Gate
    policy: AddServerPolicy
    tools: Tools = field(default_factory=Tools)
    oauth: OAuthCheck | None = None
    requires_session: bool = False
    body_bytes: int = 4 << 20
    neighbor: Neighbor | None = None
    finish_seconds: float = FINISH_SECONDS


def _said_twice(pairs: list[tuple[bytes, bytes]]) -> str | None:
    """A header that must not leave open which of two values counts."""
    names = [name for name, _ in pairs]
    return next((name.decode() for name in SINGLE_HEADERS if names.count(name) > 1), None)


def _params(value: object) -> object:
    return value.get("params") if isinstance(value, dict) else None


class HttpEndpoint:
    """An ASGI application."""

    def __init__(self, parts: HttpParts) -> None:
        self._parts = parts
        self._connections = HandshakeConnections(parts.directory, partial(HandshakeCaller, parts.kernel, parts.tools))
        self._modern = ModernDoor(parts.kernel, parts.tools, parts.directory, requires_session=parts.requires_session)
        self.is_draining = False
        self.is_over = False  # nobody is waited for any more
        parts.directory.on_end = self._session_ended

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
        if len(headers) < len(scope["headers"]) and (twice := _said_twice(scope["headers"])):
            await refuse(send, 400, INVALID_REQUEST, f"Bad request: the header {twice} appears more than once")
        elif (misplaced := self._parts.gate.knows_place(headers)) is not None:
            await self._turn_away(send, misplaced)
        elif path == MCP_PATH:
            if (origin := headers.get(b"origin")) is not None:
                send = readable_by(origin, send)
            if scope["method"] == "OPTIONS" and origin is not None:  # a browser asks before it sends what matters
                await respond(send, 204, b"", *PREFLIGHT)
            else:
                await self._mcp(scope, headers, receive, send)
        elif path in (RESOURCE_PATH, RESOURCE_PATH + MCP_PATH) and self._parts.oauth is not None:
            await respond_json(send, 200, self._parts.oauth.metadata())
        elif (neighbor := self._parts.neighbor) is None or not await neighbor.serve(scope, headers, receive, send):
            await respond_json(send, 404, {"error": f"There is nothing here. MCP is served at {MCP_PATH}."})

    # Shutting down.

    def drain(self) -> None:
        """Nothing new begins; streams that belong to no call end now, and calls have a moment to finish."""
        if self.is_draining:
            return
        self.is_draining = True
        for caller in self._connections:
            caller.end_pushes()
        self._modern.end_listens()
        if self._parts.neighbor is not None:
            self._parts.neighbor.drain()
        self._parts.directory.clock.call_later(self._parts.finish_seconds, self._hurry)

    def _hurry(self) -> None:
        """Whoever still waits on a backend is told that we stop; whoever waits for anything else is let go."""
        self._parts.directory.stop_calls()
        self._parts.directory.clock.call_later(LET_GO_SECONDS, self._let_go)

    def _let_go(self) -> None:
        for caller in self._connections:
            caller.cancel_requests()
        self._modern.cancel_requests()
        self.is_over = True

    async def close(self) -> None:
        """What stands on the wire for a session ends with it, when the directory closes it."""
        await self._connections.close()
        await self._modern.close()
        if self._parts.neighbor is not None:
            await self._parts.neighbor.close()

    async def _session_ended(self, session: Session) -> None:
        """What stands on the wire for a session goes with it."""
        self._modern.session_ended(session)
        await self._connections.session_ended(session)

    # One request.

    async def _mcp(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        visitor = await self._parts.gate.admit(headers, peer[0] if peer else None, method=scope["method"])
        if isinstance(visitor, TurnedAway):
            await self._turn_away(send, visitor)
            return
        if self.is_draining:
            await refuse(send, 503, INVALID_REQUEST, SHUTTING_DOWN, (b"retry-after", b"1"))
            return
        version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        is_modern = bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS
        method = scope["method"]
        if method == "POST":
            await self._post(scope, headers, receive, send, visitor, is_modern=is_modern)
        elif is_modern or method not in ("GET", "DELETE"):
            allowed = b"POST" if is_modern else b"GET, POST, DELETE"
            await refuse(send, 405, INVALID_REQUEST, "Method not allowed", (b"allow", allowed))
        elif (caller := await self._known(headers, visitor, send)) is not None:
            if method == "DELETE":
                await self._connections.end(caller)
                await respond(send, 200, b"")
            elif not accepts(headers, STREAM):
                await refuse(send, 406, INVALID_REQUEST, "A GET is answered with text/event-stream")
            else:
                last = headers.get(b"last-event-id")
                await caller.get(None if last is None else last.decode("latin-1"), send, receive)

    async def _post(
        self,
        scope: Scope,
        headers: Mapping[bytes, bytes],
        receive: Receive,
        send: Send,
        visitor: Visitor,
        *,
        is_modern: bool,
    ) -> None:
        if not is_json(headers):
            await refuse(send, 415, INVALID_REQUEST, "Send application/json")
            return
        taste = Taste(json=accepts(headers, JSON), streams=accepts(headers, STREAM))
        if not (taste.json or taste.streams):
            await refuse(send, 406, INVALID_REQUEST, "A POST is answered with application/json or text/event-stream")
            return
        try:
            value = decode(await read_body(receive, self._parts.body_bytes))
        except ValueError as error:
            what = error if isinstance(error, Unreadable) else "not JSON"
            await refuse(send, 400, PARSE_ERROR, f"Parse error: the body is {what}")
            return
        except BodyTooLarge:
            words = f"The request body is larger than {self._parts.body_bytes} bytes."
            await refuse(send, 413, INVALID_REQUEST, words, (b"connection", b"close"))
            return
        except CallerLeft:
            return
        office = Office(self._parts.directory, visitor.principal, _params(value))
        guest = Guest(visitor, office, self._may_add(visitor), connection_of(scope, receive))
        if is_modern:
            await self._modern.post(value, scope, headers, send, receive, guest=guest)
        elif b"mcp-session-id" in headers:
            if (caller := await self._known(headers, visitor, send)) is not None:
                await caller.post(value, send, receive, guest=guest, taste=taste)
        elif (caller := await self._opened(value, scope, headers, visitor, send)) is not None:
            await caller.post(value, send, receive, guest=guest, taste=taste)
            if not caller.is_open:
                await self._connections.end(caller)

    async def _opened(
        self, value: object, scope: Scope, headers: Headers, visitor: Visitor, send: Send
    ) -> HandshakeCaller | None:
        """A new connection, if this is how one begins."""
        message = classify(value)
        if not (isinstance(message, Request) and message.method == "initialize"):
            words = "Bad request: begin with initialize, then send the Mcp-Session-Id that it returns."
            await refuse(send, 400, INVALID_REQUEST, words)
            return None
        if (refusal := await refusal_of_handshake(message, self._parts.kernel)) is not None:
            await respond_json(send, 200, refusal)
            return None
        try:
            is_tab = headers.get(CONNECT_HEADER, b"").strip().lower() == b"on-use"
            return await self._connections.open(
                visitor.principal,
                pinned_name(headers, scope.get("query_string", b"")),
                label=client_label(message.params),
                connects_on_use=is_tab or visitor.is_remote,
                is_tab=is_tab,
            )
        except TooManySessions as error:
            await refuse(send, 503, INVALID_REQUEST, str(error), (b"retry-after", b"60"))
        except NameTooLong as error:
            await refuse(send, 400, INVALID_REQUEST, str(error))
        return None

    async def _known(self, headers: Mapping[bytes, bytes], visitor: Visitor, send: Send) -> HandshakeCaller | None:
        given = headers.get(b"mcp-session-id", b"").decode("latin-1")
        if not given:
            await refuse(send, 400, INVALID_REQUEST, "Bad request: the Mcp-Session-Id header is missing")
            return None
        caller = self._connections.find(given, visitor.principal)
        if caller is not None:
            caller.session.touch()
            return caller
        await refuse(send, 404, INVALID_REQUEST, "Session not found: it has ended. Begin anew with initialize.")
        return None

    def _may_add(self, visitor: Visitor) -> Callable[[ServerEntry], Awaitable[BackendSpec]]:
        async def admit(entry: ServerEntry) -> BackendSpec:
            return await self._parts.policy.admit(entry, is_remote=visitor.is_remote)

        return admit

    async def _turn_away(self, send: Send, why: TurnedAway) -> None:
        await refuse(send, why.status, INVALID_REQUEST, why.message, *why.headers)

    async def _health(self, path: str, send: Send) -> None:
        is_ready = path == "/healthz" or not self.is_draining
        await respond_json(send, 200 if is_ready else 503, {"status": "ok" if is_ready else "shutting down"})

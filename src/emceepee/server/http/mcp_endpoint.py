"""MCP at one address: admits a request, reads it, and carries out what the router decides about it.

serve ─▶ the guard admits it ─▶ body ─▶ RequestRouter.decide ─┬─▶ HandshakeConnection.post, get, or its end
                                                             ├─▶ StatelessEndpoint.serve
                                                             ├─▶ DirectResponse.send
                                                             └─▶ Forward: to the replica that holds the session
"""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from emceepee.errors import EmceepeeError
from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.server.dispatch import Tools
from emceepee.server.eras import modern_result
from emceepee.server.http.exchange import DirectResponse, HttpRequest, send_rpc_error
from emceepee.server.http.handshake_connection import HandshakeConnection
from emceepee.server.http.handshake_connections import HandshakeConnections
from emceepee.server.http.http_shutdown import ShutdownStage
from emceepee.server.http.request_forwarder import ForwardOutcome, RequestForwarder
from emceepee.server.http.request_reader import RequestBody, read_message, send_rejection
from emceepee.server.http.request_router import Forward, ReplicaParts, RequestRouter
from emceepee.server.http.stateless import StatelessCall, StatelessEndpoint
from emceepee.server.listen_requests import LISTEN, listen_result
from emceepee.server.session_keys import SURFACE_HEADER, pinned_surface
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.session_storage import SessionElsewhere
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.replica import Replica
from emceepee.store.store import RecordKey
from emceepee.surface import UnknownSurface, use_surface
from emceepee.telemetry.logs import EventLog
from emceepee.tools.replies.replies import error_reply
from emceepee.web.asgi import STREAM, Receive, Scope, Send, accepts, respond, respond_json
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import Request, classify, error_message, result_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR, INVALID_REQUEST

log = EventLog("replicas")
Target = HandshakeConnection | StatelessCall


@dataclass(frozen=True, slots=True)
class SessionFinder:
    """Finds the session of a request in the era of that request."""

    connections: HandshakeConnections
    stateless: StatelessEndpoint

    def find(self, http: HttpRequest, message: RequestBody) -> Awaitable[Target | DirectResponse]:
        """Raises: SessionElsewhere."""
        if http.is_modern:
            return self.stateless.find(message.value, http)
        return self.connections.find_for(http, message.value)


class McpEndpoint:
    """Serves requests of both eras. For the directory, it is the connections of all sessions (`SessionConnections`)."""

    def __init__(
        self,
        tools: Tools,
        directory: SessionDirectory,
        gate: AccessControl,
        connections: HandshakeConnections,
        stateless: StatelessEndpoint,
        stage: ShutdownStage,
        *,
        body_bytes: int,
        replicas: ReplicaParts | None = None,
    ) -> None:
        self._tools, self._gate, self._stage, self._body_bytes = tools, gate, stage, body_bytes
        self._connections, self._stateless = connections, stateless
        self._forwarder: RequestForwarder | None = None if replicas is None else replicas.forwarder
        finder = SessionFinder(connections, stateless)
        self._router = RequestRouter[Target](directory, finder, stage, replicas)
        directory.attach(self)

    async def serve(self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send) -> None:
        """Serve a request whose Host and Origin were checked."""
        peer = scope.get("client")
        identity = await self._gate.admit(headers, peer[0] if peer else None, method=scope["method"])
        if isinstance(identity, Rejection):
            await send_rejection(send, identity)
            return
        query: bytes = scope.get("query_string", b"")
        try:  # most requests name none
            asks = SURFACE_HEADER in headers or b"surface=" in query
            surface = pinned_surface(headers, query) if asks else None
            if surface is not None:
                self._tools.check_surface(surface)
        except UnknownSurface as error:
            await send_rpc_error(send, 400, INVALID_REQUEST, f"Bad request: {error}")
            return
        use_surface(surface or self._tools.surface)  # also for messages sent before the request is served
        http = HttpRequest(scope, headers, receive, send, identity, surface=surface)
        if (message := await read_message(http, self._body_bytes)) is not None:
            try:
                await self._route(http, message)
            except asyncio.CancelledError:  # the process stops without waiting
                http.connection.give_up_response()

    async def _route(self, http: HttpRequest, message: RequestBody) -> None:
        """Serve the request here, or forward it."""
        decision: Target | Forward | DirectResponse | None = await self._router.decide(http, message)
        while True:
            if isinstance(decision, Forward):
                if await self._forward(decision.holder, http, message):
                    return
                decision = await self._router.decide_again(decision, http, message)
                continue
            try:
                await self._carry_out(decision, http, message)
                return
            except SessionElsewhere as elsewhere:  # race: another replica took over a session that was just found here
                decision = self._router.forward(elsewhere)

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        """Serve a request that another replica forwarded. If its session is not here, do nothing and return False."""
        with suppress(UnknownSurface):  # a replica of another version may support it
            request = replace(request, surface=pinned_surface(request.headers, request.query))
        message = await read_message(request, self._body_bytes, body)
        if message is None:
            return True  # it was rejected
        decision = await self._router.decide_hop(request, message)
        if decision is None:
            return False
        try:
            await self._carry_out(decision, request, message)
        except SessionElsewhere:
            return False
        return True

    async def _carry_out(
        self, decision: Target | DirectResponse | None, http: HttpRequest, message: RequestBody
    ) -> None:
        """Raises: SessionElsewhere, before anything is answered."""
        if isinstance(decision, HandshakeConnection):
            if http.scope["method"] != "POST":
                await self._read_or_end(decision, http)
                return
            await decision.post(message.value, http)
            if not decision.is_open and b"mcp-session-id" not in http.headers:  # it was opened for this request
                await self._connections.end(decision)
        elif isinstance(decision, StatelessCall):
            await self._stateless.serve(decision, http)
        elif decision is not None:
            await decision.send(http.send)
        else:
            http.connection.give_up_response()

    async def _read_or_end(self, connection: HandshakeConnection, http: HttpRequest) -> None:
        """Serve a GET or a DELETE. Raises: SessionElsewhere, before anything is answered."""
        if http.scope["method"] == "DELETE":
            await self._connections.end(connection)
            await respond(http.send, 200, b"")
        elif not accepts(http.headers, STREAM):
            await send_rpc_error(http.send, 406, INVALID_REQUEST, "A GET is answered with text/event-stream")
        else:
            last = http.headers.get(b"last-event-id")
            await connection.get(None if last is None else last.decode("latin-1"), http)

    async def _forward(self, holder: Replica, http: HttpRequest, message: RequestBody) -> bool:
        """Forward the request. Return whether the caller needs no further attempt."""
        assert self._forwarder is not None  # otherwise the router knows no other replica
        outcome = await self._forwarder.forward(
            holder, http, message.body, lost_reply=lambda: _encoded(_lost_reply(http, message, self._loss))
        )
        if outcome is ForwardOutcome.LOST:
            if not self._stage.is_over:
                log.warning("replica_lost_with_request", slot=holder.slot)
            reply = _lost_reply(http, message, self._loss)
            await (_send_lost(http, self._loss) if reply is None else respond_json(http.send, 200, reply))
        return outcome in (ForwardOutcome.ANSWERED, ForwardOutcome.LOST)

    @property
    def _loss(self) -> "_Loss":
        """Return the messages for the reason why a forwarded request gets no answer."""
        return _STOPPED if self._stage.is_over else _LOST

    # Connections of sessions.

    def write_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        return self._connections.write_record(kind, record_id)

    async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        await self._connections.restore(session, stored)

    async def close_all_of(self, session: Session) -> None:
        """Close the connections and streams of an ended session."""
        self._stateless.end_listens_of(session)
        await self._connections.close_all_of(session)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loss:
    """Messages for a caller whose forwarded request gets no answer."""

    of_a_request: str
    """A format string for the request's method."""
    of_anything_else: str


_LOST = _Loss(
    of_a_request="The replica of emceepee that served this {0} was lost, and the {0} may have run in part. The "
    "session continues on another replica: check whether it took effect before you call again.",
    of_anything_else="The replica that served this request was lost with it.",
)
_STOPPED = _Loss(
    of_a_request="This replica of emceepee stopped before another one had answered this {}. A call goes on there as a "
    "task of the session: list the tasks before you call again.",
    of_anything_else="This replica stopped before another one had answered this request.",
)


async def _send_lost(http: HttpRequest, loss: _Loss) -> None:
    """Send 502, not 503: 503 means that nothing ran, so a load balancer may send such a request again."""
    await send_rpc_error(http.send, 502, INTERNAL_ERROR, loss.of_anything_else)


def _encoded(reply: JsonObject | None) -> bytes | None:
    return None if reply is None else encode(reply)


def _lost_reply(http: HttpRequest, message: RequestBody, loss: _Loss) -> JsonObject | None:
    """Return the reply to a request that another replica has not answered; None if it is not a request."""
    request = classify(message.value) if message.body else None
    if not isinstance(request, Request):
        return None
    if request.method == LISTEN:  # a listen loses no result, and its caller listens again
        return result_message(request.request_id, modern_result(listen_result(request.request_id)))
    error = EmceepeeError(
        loss.of_a_request.format(request.method),
        details={"reason": "replica", "mayHaveRun": True},
    )
    if request.method == "tools/call":
        result = error_reply(error)
        return result_message(request.request_id, modern_result(result) if http.is_modern else result)
    return error_message(request.request_id, INTERNAL_ERROR, str(error), error.reply_body())

"""The ASGI application behind the hop listener. It serves only requests that a replica has signed."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Protocol

from emceepee.clock import Clock, epoch_milliseconds
from emceepee.replicas.hop_messages import (
    LEAVING_STATUS,
    LINE_HEADER,
    NOT_HELD_STATUS,
    SETTLE_PATH,
    parse_settlement,
    request_target,
    signed,
)
from emceepee.replicas.inbound_hops import HopExchange, InboundHops
from emceepee.replicas.proven_response import ProvenAnswer
from emceepee.replicas.signature import HOP_HEADER, Hop, SignedMessage, Verifier
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_reader import MCP_PATH
from emceepee.server.http.server_connection import ServerConnection
from emceepee.state.client_line import ClientLine
from emceepee.state.replica import Replica
from emceepee.web.asgi import CONNECTION, BodyTooLarge, CallerLeft, Receive, Scope, Send, read_body

_INTERNAL_HEADERS = frozenset({HOP_HEADER, LINE_HEADER})


class HopTarget(Protocol):
    """Serves requests that other replicas forward because this one holds the session."""

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        """Return False, without any effect, if the session is not held here or nothing new may begin."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HopParts:
    """The parts that serve hops."""

    clock: Clock
    key: bytes
    """The secret that all replicas share."""
    own: Callable[[], Replica]
    """Returns the replica that this process currently is."""
    endpoint: HopTarget
    console: HopTarget | None = None
    """Serves all paths except the path of MCP."""
    body_bytes: int


class HopConnection(ServerConnection):
    """Records its sender after the first signed request."""

    def __init__(self, *args: Any, hops: InboundHops, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hops = hops
        self._instance: bytes | None = None

    def join(self, hop: Hop) -> None:
        if self._instance is None:
            self._instance = hop.instance
            self._hops.join(hop)

    def refusal(self, status: HTTPStatus) -> bytes:
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

    def shutdown(self) -> None:
        """Shut down. Refuse a request that may be in flight, because it will not be processed."""
        if self._serving is None and self._instance is not None:
            head = b"HTTP/1.1 %d Leaving\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % LEAVING_STATUS
            self.transport.write(head)
            self.transport.close()
        else:
            super().shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._instance is not None:
            self._hops.leave(self._instance)


class HopApp:
    def __init__(self, parts: HopParts, hops: InboundHops) -> None:
        self._parts, self._hops = parts, hops
        self._verifier = Verifier(parts.key)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value for name, value in scope["headers"] if name == HOP_HEADER]
        body = await self._read(receive) if len(given) == 1 else None
        hop = None if body is None else self._verify(given[0], scope, body)
        if hop is None or body is None:
            await _respond(send, 404, (b"connection", b"close"))
            return
        connection: HopConnection = scope["extensions"][CONNECTION]
        connection.join(hop)
        if scope.get("raw_path") == SETTLE_PATH:
            news, is_farewell = parse_settlement(body)
            self._hops.settle(hop, news, is_farewell=is_farewell)
            await _respond(self._answer(hop, scope, send).send, 200)
            return
        exchange = self._hops.begin(hop, connection)
        try:
            await self._serve(hop, exchange, HttpRequest(scope, {}, receive, send, hop.identity), body)
        finally:
            self._hops.finish(hop, exchange)

    async def _serve(self, hop: Hop, exchange: HopExchange, request: HttpRequest, body: bytes) -> None:
        scope, send = request.scope, request.send
        answer = self._answer(hop, scope, send, exchange)
        line = next((value for name, value in scope["headers"] if name == LINE_HEADER), b"")
        exchange.line = ClientLine.from_bytes(line) or exchange.line
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in _INTERNAL_HEADERS]
        scope["extensions"] = {CONNECTION: exchange}
        rebuilt = HttpRequest(scope, dict(scope["headers"]), request.receive, answer.send, hop.identity)
        target = self._parts.endpoint if scope["path"] == MCP_PATH else self._parts.console
        try:
            is_held = target is not None and await target.serve_hop(rebuilt, body)
        except Exception:  # the server below logs it
            if not answer.is_begun:
                await _respond(answer.send, 500)
            raise
        if not is_held:
            await _respond(answer.send, NOT_HELD_STATUS)

    def _answer(self, hop: Hop, scope: Scope, send: Send, exchange: HopExchange | None = None) -> ProvenAnswer:
        return ProvenAnswer(send, self._verifier.proof(hop), exchange, has_body=scope["method"] != "HEAD")

    async def _read(self, receive: Receive) -> bytes | None:
        try:
            return await read_body(receive, self._parts.body_bytes)
        except (BodyTooLarge, CallerLeft):
            return None

    def _verify(self, value: bytes, scope: Scope, body: bytes) -> Hop | None:
        message = SignedMessage(scope["method"].encode("ascii"), request_target(scope), signed(scope["headers"]), body)
        now = epoch_milliseconds(self._parts.clock.now()) / 1000
        return self._verifier.verify(value, message, own=self._parts.own(), now=now)


async def _respond(send: Send, status: int, *headers: tuple[bytes, bytes]) -> None:
    """Respond without a body, and without revealing anything about this server."""
    start = {"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": b""})

"""Routes a request to the replica that serves it: this one, or the holder of its session.

    request ─▶ serve ──────────────────────────────────▶ response
                 └ SessionElsewhere ─▶ pass on ────────▶ response
                     ▲                  ├ not held there, or unreachable: ask the store for the holder, and retry
                     └──────────────────┘
                                        └ lost after it was sent: the response says that it may have run

A forwarded request is served here or not at all: it is never forwarded again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from emceepee.errors import EmceepeeError
from emceepee.server.eras import modern_result
from emceepee.server.http.exchange import HttpRequest, send_rpc_error
from emceepee.server.http.request_forwarder import ForwardOutcome, RequestForwarder
from emceepee.server.http.request_reader import RequestBody
from emceepee.server.listen_requests import LISTEN, listen_result
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.directory.session_storage import SessionElsewhere
from emceepee.state.replica import Replica
from emceepee.telemetry.logs import EventLog
from emceepee.tools.replies.replies import error_reply
from emceepee.web.asgi import respond_json
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import SHUTTING_DOWN, Request, classify, error_message, result_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR, INVALID_REQUEST

log = EventLog("replicas")
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25  # seconds between two attempts to find a session's holder
SLACK_SECONDS = 3.0  # beyond two leases: by then the holder can be asked, or its session was taken over
AWAY = "The replica of emceepee that has this session cannot be reached just now. Try again."
Serve = Callable[[HttpRequest, RequestBody], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaParts:
    """The parts that exist only with several replicas."""

    forwarder: RequestForwarder
    placement: Placement
    lease_seconds: float


class RequestRouter:
    """Routes requests. `serve` answers a request, or raises SessionElsewhere before it has begun to."""

    def __init__(self, directory: SessionDirectory, serve: Serve, replicas: ReplicaParts | None) -> None:
        self._storage, self._clock = directory.storage, directory.clock
        self._serve, self._replicas = serve, replicas
        self.is_draining = False  # new requests are for other replicas
        self.is_refusing = False  # nothing is forwarded any more
        self.is_over = False  # shutdown waits for no more requests

    async def route(self, http: HttpRequest, message: RequestBody) -> None:
        """Serve the request here, or forward it."""
        if self.is_refusing:
            await _send_stopping(http)
            return
        if not self._storage.is_sure and not await self._confirm():
            await _send_away(http)
            return
        try:
            if self.is_draining:
                await self._hand_over(http, message)
            else:
                await self._serve_or_pass_on(http, message)
        except asyncio.CancelledError:  # the process stops without waiting
            http.connection.give_up_response()

    async def _serve_or_pass_on(self, http: HttpRequest, message: RequestBody) -> None:
        try:
            await self._serve(http, message)
        except SessionElsewhere as elsewhere:
            await self._pass_on(elsewhere, http, message)

    async def route_hop(self, http: HttpRequest, message: RequestBody) -> bool:
        """Serve a request that another replica forwarded. False, without effect, if it is misdirected or too late."""
        if not self._storage.is_sure and not await self._confirm():
            return False
        if self.is_draining:
            return False
        try:
            await self._serve(replace(http, may_guess=False), message)
        except SessionElsewhere:
            return False
        return True

    async def _confirm(self) -> bool:
        """Return whether this replica may still serve its sessions."""
        await self._storage.confirm()
        return not self._storage.is_in_doubt

    async def _pass_on(self, elsewhere: SessionElsewhere, http: HttpRequest, message: RequestBody) -> None:
        assert self._replicas is not None  # otherwise no placement could have raised SessionElsewhere
        give_up_at = self._clock.monotonic() + 2 * self._replicas.lease_seconds + SLACK_SECONDS
        pause = 0.0
        while True:
            if await self._forward(elsewhere.holder, http, message):
                return
            if self.is_refusing or self._clock.monotonic() >= give_up_at:
                log.warning("session_unreachable", slot=elsewhere.holder.slot)
                await _send_away(http)
                return
            if pause:
                await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE) if pause else FIRST_PAUSE
            self._storage.forget_guess(elsewhere.key)
            if http.connection.is_gone():
                http.connection.give_up_response()
                return
            try:
                await self._serve(replace(http, may_guess=False), message)
                return
            except SessionElsewhere as again:
                elsewhere = again

    async def _forward(self, holder: Replica, http: HttpRequest, message: RequestBody) -> bool:
        """Forward the request. Return whether the caller needs no further attempt."""
        assert self._replicas is not None
        outcome = await self._replicas.forwarder.forward(
            holder, http, message.body, lost_reply=lambda: _encoded(_lost_reply(http, message, self._loss))
        )
        if outcome is ForwardOutcome.LOST:
            if not self.is_over:
                log.warning("replica_lost_with_request", slot=holder.slot)
            reply = _lost_reply(http, message, self._loss)
            await (_send_lost(http, self._loss) if reply is None else respond_json(http.send, 200, reply))
        return outcome in (ForwardOutcome.ANSWERED, ForwardOutcome.LOST)

    @property
    def _loss(self) -> "_Loss":
        """Why a forwarded request gets no answer."""
        return _STOPPED if self.is_over else _LOST

    async def _hand_over(self, http: HttpRequest, message: RequestBody) -> None:
        """Forward while this replica stops: another one takes the session over as soon as it is released here."""
        others = [] if self._replicas is None else list(self._replicas.placement.others)
        pause = FIRST_PAUSE
        give_up_at = self._clock.monotonic() + SLACK_SECONDS
        while others and not self.is_refusing and self._clock.monotonic() < give_up_at:
            if await self._forward(others[0], http, message):
                return
            others.append(others.pop(0))
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        await _send_stopping(http)


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


async def _send_stopping(http: HttpRequest) -> None:
    await send_rpc_error(http.send, 503, INVALID_REQUEST, SHUTTING_DOWN, (b"retry-after", b"1"))


async def _send_lost(http: HttpRequest, loss: _Loss) -> None:
    """Send 502, not 503: 503 means that nothing ran, so a load balancer may send such a request again."""
    await send_rpc_error(http.send, 502, INTERNAL_ERROR, loss.of_anything_else)


async def _send_away(http: HttpRequest) -> None:
    await send_rpc_error(http.send, 503, INVALID_REQUEST, AWAY, (b"retry-after", b"2"))


def _encoded(reply: JsonObject | None) -> bytes | None:
    return None if reply is None else encode(reply)


def _lost_reply(http: HttpRequest, message: RequestBody, loss: _Loss) -> JsonObject | None:
    """Return the reply to a request that another replica has not answered; None if it is not a request."""
    request = classify(message.value) if message.body else None
    if not isinstance(request, Request):
        return None
    if request.method == LISTEN:  # nothing else is lost with it, and its caller listens again
        return result_message(request.request_id, modern_result(listen_result(request.request_id)))
    error = EmceepeeError(
        loss.of_a_request.format(request.method),
        details={"reason": "replica", "mayHaveRun": True},
    )
    if request.method == "tools/call":
        result = error_reply(error)
        return result_message(request.request_id, modern_result(result) if http.is_modern else result)
    return error_message(request.request_id, INTERNAL_ERROR, str(error), error.reply_body())

"""Decides where a request is served: here, or at the replica that holds its session. The endpoint carries it out.

    request ─▶ decide ─┬─▶ the local target, as the finder returns it
                 ▲     ├─▶ DirectResponse: this replica stops, or the holder cannot be reached
                 │     └─▶ Forward ── answered, or lost after it was sent: the response says that it may have run
                 │           └ not held there, or unreachable
                 └─ decide_again ◀─┘  ask the store for the holder, until `give_up_at`

A forwarded request is served at its holder or not at all: it is never forwarded again (`decide_hop`).
"""

from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from emceepee.server.http.exchange import DirectResponse, HttpRequest
from emceepee.server.http.http_shutdown import ShutdownStage
from emceepee.server.http.request_forwarder import RequestForwarder
from emceepee.server.http.request_reader import RequestBody
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.directory.session_storage import SessionElsewhere
from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_rpc import SHUTTING_DOWN, error_message
from emceepee.wire.protocol import INVALID_REQUEST

Target = TypeVar("Target")
FoundTarget = TypeVar("FoundTarget", covariant=True)
log = EventLog("replicas")
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.25  # seconds between two attempts to find a session's holder
SLACK_SECONDS = 3.0  # beyond two leases: by then the holder can be asked, or its session was taken over
STOPPING = DirectResponse(503, error_message(None, INVALID_REQUEST, SHUTTING_DOWN), ((b"retry-after", b"1"),))
OUT_OF_REACH = DirectResponse(
    503,
    error_message(
        None,
        INVALID_REQUEST,
        "The replica of emceepee that has this session cannot be reached at this time. Try again.",
    ),
    ((b"retry-after", b"2"),),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaParts:
    """The parts that exist only with several replicas."""

    forwarder: RequestForwarder
    placement: Placement
    lease_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """Forward the request to `holder`. If nothing came of it, `decide_again` returns the next step."""

    holder: Replica
    key: SessionKey | None
    """The session, or None while this replica stops: any other replica can take the session over."""
    others: tuple[Replica, ...] = ()
    """The replicas that can be tried next, if this replica stops."""
    give_up_at: float
    pause: float


class TargetFinder(Protocol[FoundTarget]):
    """Finds what serves a request at this replica."""

    def find(self, http: HttpRequest, message: RequestBody) -> Awaitable[FoundTarget | DirectResponse]:
        """Raises: SessionElsewhere."""
        ...


class RequestRouter(Generic[Target]):
    """Decides, without any effect on the response."""

    def __init__(
        self,
        directory: SessionDirectory,
        finder: TargetFinder[Target],
        stage: ShutdownStage,
        replicas: ReplicaParts | None,
    ) -> None:
        self._storage, self._clock = directory.storage, directory.clock
        self._finder, self._stage, self._replicas = finder, stage, replicas

    async def decide(self, http: HttpRequest, message: RequestBody) -> Target | Forward | DirectResponse:
        if self._stage.is_refusing:
            return STOPPING
        if not self._storage.is_sure and not await self._confirm():
            return OUT_OF_REACH
        if self._stage.is_draining:
            return self._hand_over()
        try:
            return await self._finder.find(http, message)
        except SessionElsewhere as elsewhere:
            return self.forward(elsewhere)

    async def decide_hop(self, http: HttpRequest, message: RequestBody) -> Target | DirectResponse | None:
        """Decide about a request that another replica forwarded. Return None if it is misdirected or too late."""
        if not self._storage.is_sure and not await self._confirm():
            return None
        if self._stage.is_draining:
            return None
        try:
            return await self._finder.find(replace(http, may_guess=False), message)
        except SessionElsewhere:
            return None

    async def decide_again(
        self, last: Forward, http: HttpRequest, message: RequestBody
    ) -> Target | Forward | DirectResponse | None:
        """Decide after a forward that had no effect. Return None if the caller has left."""
        if last.key is None:
            return await self._hand_over_again(last)
        if self._stage.is_refusing or self._clock.monotonic() >= last.give_up_at:
            log.warning("session_unreachable", slot=last.holder.slot)
            return OUT_OF_REACH
        if last.pause:
            await self._clock.sleep(last.pause)
        self._storage.forget_guess(last.key)
        if http.connection.is_gone():
            return None
        try:
            return await self._finder.find(replace(http, may_guess=False), message)
        except SessionElsewhere as again:
            return replace(last, holder=again.holder, key=again.key, pause=_next_pause(last.pause))

    def forward(self, elsewhere: SessionElsewhere) -> Forward:
        assert self._replicas is not None  # otherwise no placement could have raised SessionElsewhere
        give_up_at = self._clock.monotonic() + 2 * self._replicas.lease_seconds + SLACK_SECONDS
        return Forward(holder=elsewhere.holder, key=elsewhere.key, give_up_at=give_up_at, pause=0.0)

    async def _confirm(self) -> bool:
        """Return whether this replica may still serve its sessions."""
        await self._storage.confirm()
        return not self._storage.is_in_doubt

    def _hand_over(self) -> Forward | DirectResponse:
        """Forward while this replica stops: another one takes the session over as soon as it is released here."""
        others = () if self._replicas is None else tuple(self._replicas.placement.others)
        if not others:
            return STOPPING
        give_up_at = self._clock.monotonic() + SLACK_SECONDS
        return Forward(holder=others[0], key=None, others=others, give_up_at=give_up_at, pause=FIRST_PAUSE)

    async def _hand_over_again(self, last: Forward) -> Forward | DirectResponse:
        await self._clock.sleep(last.pause)
        if self._stage.is_refusing or self._clock.monotonic() >= last.give_up_at:
            return STOPPING
        others = (*last.others[1:], last.others[0])
        return replace(last, holder=others[0], others=others, pause=_next_pause(last.pause))


def _next_pause(pause: float) -> float:
    return min(2 * pause, LONGEST_PAUSE) if pause else FIRST_PAUSE

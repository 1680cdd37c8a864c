"""One simulated replica: the real rules of routing, placement and due timers, around sessions that are only leases."""

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Protocol, cast

from bench.simulation.hop import SimulatedHop
from bench.simulation.leased_store import LeasedStore
from bench.simulation.process import ReplicaLost, run_in
from bench.simulation.request import SimulatedRequest
from bench.simulation.scheduler import Scheduler, Signal
from bench.simulation.tally import Tally, Way
from emceepee.server.http.exchange import DirectResponse, HttpRequest
from emceepee.server.http.http_shutdown import ShutdownStage
from emceepee.server.http.request_forwarder import ForwardOutcome
from emceepee.server.http.request_reader import RequestBody
from emceepee.server.http.request_router import Forward, ReplicaParts, RequestRouter
from emceepee.sessions.directory.directory import SWEEP_SECONDS, SessionDirectory
from emceepee.sessions.directory.placement import READERS, Placement
from emceepee.sessions.directory.session_storage import DurableStorage, SessionElsewhere
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica, slot_in
from emceepee.state.session_key import SessionKey
from emceepee.store.store import Commit, Lease, SessionHead, StoredSession

_NO_BODY = RequestBody()
Confirm = Callable[[], Awaitable[None]]


class Fired(Protocol):
    """Told of each timer; `was_taken`: the session was taken from the store, and its timer was late."""

    def __call__(self, head: SessionHead, *, was_taken: bool) -> None: ...


@dataclass(slots=True, kw_only=True)
class Surroundings:
    """The surroundings that all replicas of a world share."""

    clock: Scheduler
    random: Random
    tally: Tally
    limits: Limits
    hop_seconds: float
    work_seconds: float
    is_refused: bool
    on_served: Callable[[SessionKey], None]
    on_fired: Fired
    replicas: "dict[int, SimulatedReplica]" = field(default_factory=dict)  # by epoch

    def answers(self, replica: Replica) -> bool:
        return not self.replicas[replica.epoch].is_lost

    async def ask(self, replica: Replica, request: SimulatedRequest) -> bool:
        """Whether it served it. Raises: ReplicaLost."""
        return await self.replicas[replica.epoch].handle_hop(request)


class SimulatedStorage(DurableStorage):
    """Confirms the leases of simulated sessions, which no saver knows. The store of the simulation always answers."""

    def __init__(self, store: LeasedStore, around: Surroundings, placement: Placement, confirm: Confirm) -> None:
        super().__init__(store, around.clock, around.limits, placement)
        self._confirm_all = confirm

    @property
    def is_in_doubt(self) -> bool:
        return False

    async def confirm(self) -> None:
        await self._confirm_all()


class SimulatedReplica:
    """It stands in for the directory of its router: what it answers is what a `SessionDirectory` would."""

    def __init__(self, store: LeasedStore, around: Surroundings) -> None:
        assert store.replica is not None
        self.store, self.replica, self._around, self.clock = store, store.replica, around, around.clock
        self.sessions: dict[SessionKey, Lease] = {}
        self.is_lost = False
        self.paused_until = 0.0
        self._confirming: Signal | None = None
        lease_seconds = around.limits.replica_lease_seconds
        self.placement = Placement(store, self.clock, lease_seconds=lease_seconds, random=around.random)
        self.storage = SimulatedStorage(store, around, self.placement, self.confirm)
        self.due = self.storage.watch_due(self.clock, load=self._load_due, spawn=self._spawn)
        hop = SimulatedHop(self.clock, hop_seconds=around.hop_seconds, network=around, is_refused=around.is_refused)
        self.placement.when_gone(hop.drop)
        self.placement.when_gone(lambda _: self.due.hurry())
        parts = ReplicaParts(forwarder=hop, placement=self.placement, lease_seconds=lease_seconds)
        directory = cast("SessionDirectory", self)
        self.router = RequestRouter[SimulatedRequest](directory, self, ShutdownStage(), parts)
        self._hop = hop
        around.replicas[self.replica.epoch] = self

    # Its life.

    def start(self, phase: float) -> None:
        """`phase`: where in its intervals it is, from 0 to 1. No two replicas started in the same moment."""
        every = self.store.watch.renew_every
        self.clock.call_later(phase * every, lambda: self._spawn(self._renew_forever()))
        self._spawn(self._look_who_is_alive(phase))
        self.clock.call_later(phase * SWEEP_SECONDS, lambda: self._spawn(self._sweep_forever()))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.clock.spawn(self._run(work))

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        with suppress(ReplicaLost):
            await run_in(self, work)

    async def _renew_forever(self) -> None:
        while True:
            await self.store.renew()
            await self.clock.sleep(self.store.watch.renew_every)

    async def _look_who_is_alive(self, phase: float) -> None:
        await self.placement.refresh()
        await self.clock.sleep(phase * self.store.watch.renew_every * max(1, self.placement.count / READERS))
        await self.placement.run(self.confirm)

    async def _sweep_forever(self) -> None:
        while True:
            await self.storage.forget_expired(self._around.limits.sessions_in_all)
            await self.due.look()
            await self.clock.sleep(SWEEP_SECONDS)

    async def confirm(self) -> None:
        """Once for all requests that wait for it, as a lock sees to in a `DurableStorage`."""
        if self._confirming is not None:
            await self._confirming
            return
        self._confirming = Signal(self.clock)
        await self._confirm()
        self._confirming.ring()
        self._confirming = None

    async def _confirm(self) -> None:
        lost = set(await self.store.confirm({key.value: lease for key, lease in self.sessions.items()}))
        for key in [key for key in self.sessions if key.value in lost]:
            del self.sessions[key]

    # Requests.

    async def handle(self, request: SimulatedRequest) -> None:
        """One that a balancer sent here. Raises: ReplicaLost."""
        await run_in(self, self._route(request))

    async def handle_hop(self, request: SimulatedRequest) -> bool:
        """One that another replica passed on. Raises: ReplicaLost."""
        return await run_in(self, self._route_hop(request))

    async def _route(self, request: SimulatedRequest) -> None:
        """Carry out what the router decides, as `McpEndpoint` does."""
        http = request.as_http()
        decision: SimulatedRequest | Forward | DirectResponse | None = await self.router.decide(http, _NO_BODY)
        while isinstance(decision, Forward):
            outcome = await self._hop.forward(decision.holder, http, b"")
            if outcome is ForwardOutcome.LOST:
                decision = DirectResponse(502)
            elif outcome is ForwardOutcome.ANSWERED:
                return
            else:
                decision = await self.router.decide_again(decision, http, _NO_BODY)
        await self._carry_out(decision, http)

    async def _route_hop(self, request: SimulatedRequest) -> bool:
        http = request.as_http()
        decision = await self.router.decide_hop(http, _NO_BODY)
        if decision is not None:
            await self._carry_out(decision, http)
        return decision is not None

    async def _carry_out(self, decision: SimulatedRequest | DirectResponse | None, http: HttpRequest) -> None:
        if isinstance(decision, SimulatedRequest):
            await self._serve(decision)
        elif decision is not None:
            await decision.send(http.send)

    async def find(self, http: HttpRequest, message: RequestBody) -> SimulatedRequest | DirectResponse:
        """Raises: SessionElsewhere."""
        request = SimulatedRequest.of(http)
        key = request.key
        if key not in self.sessions:
            if http.may_guess and (guess := self.storage.guess(key)) is not None:
                request.was_guessed = True
                request.way = Way.BY_SLOT if guess.slot == slot_in(key.value) else Way.BY_MEMORY
                raise SessionElsewhere(key, guess)
            if not await self._take(request):
                return DirectResponse(404)
        return request

    async def _serve(self, request: SimulatedRequest) -> None:
        key = request.key
        if self.store.owner_of(key.value) != self.replica.epoch:
            self._around.tally.stale_serves += 1
        await self.clock.sleep(self._around.work_seconds)
        if request.changes_something:
            await self._commit(key)
        request.is_served = True
        self._around.on_served(key)

    async def _take(self, request: SimulatedRequest) -> bool:
        """Raises: SessionElsewhere."""
        try:
            stored = await self.storage.take(request.key)
        except SessionElsewhere:
            request.way = Way.BY_STORE
            raise
        if stored is None:
            request.is_unknown = True
            return False
        request.way = Way.TAKEN
        self._hold(stored)
        return True

    # Sessions and their timers.

    def _hold(self, stored: StoredSession) -> None:
        key = next(iter(stored.head.keys))
        self.sessions[key] = stored.lease
        if stored.head.due_at is not None and stored.head.due_at <= self.clock.now():
            self.fire(key, was_taken=True)

    def fire(self, key: SessionKey, *, was_taken: bool = False) -> None:
        """The timer of a session is due, if it is here."""
        if key in self.sessions and not self.is_lost:
            self._spawn(self._fire(key, was_taken=was_taken))

    async def _fire(self, key: SessionKey, *, was_taken: bool) -> None:
        head = self.store.head_of(key.value)
        if head.due_at is not None and await self._commit(key, is_fired=True):
            self._around.on_fired(head, was_taken=was_taken)

    async def _commit(self, key: SessionKey, *, is_fired: bool = False) -> bool:
        while (lease := self.sessions.get(key)) is not None:
            head = self.store.head_of(key.value)
            changed = replace(head, due_at=None) if is_fired else head
            (following,) = await self.store.commit([Commit(head=changed, lease=lease)])
            if following is not None:
                self.sessions[key] = following
                return True
            if self.sessions.get(key) == lease:  # else another request here was first
                self._around.tally.fenced_commits += 1
                del self.sessions[key]
        return False

    async def _load_due(self) -> int:
        taken = await self.storage.take_due()
        for stored in taken:
            self._hold(stored)
        return len(taken)

"""Requests passed on from one simulated replica to another."""

from typing import Protocol

from bench.simulation.process import ReplicaLost
from bench.simulation.request import SimulatedRequest
from bench.simulation.scheduler import Scheduler, Signal
from emceepee.backends.http1.pool import IDLE_SECONDS
from emceepee.replicas.forwarder import CONNECT_SECONDS
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome, LostReply
from emceepee.state.replica import Replica


class Network(Protocol):
    """How others are reached."""

    def answers(self, replica: Replica) -> bool:
        """Whether it can be connected to."""
        ...

    async def ask(self, replica: Replica, request: SimulatedRequest) -> bool:
        """Whether it served it. Raises: ReplicaLost."""
        ...


class SimulatedHop:
    """A `RequestForwarder`.

    If `is_refused`, the machine of a process that is gone says that nobody listens, and that a connection is cut. A
    machine without power does not say anything.
    """

    def __init__(self, clock: Scheduler, *, hop_seconds: float, network: Network, is_refused: bool) -> None:
        self._clock, self._hop_seconds, self._network, self._is_refused = clock, hop_seconds, network, is_refused
        self._used_at: dict[int, float] = {}  # by epoch: for a while after that, there is an open connection
        self._silent: dict[int, Signal] = {}  # rings when it is known that there will be no response

    async def forward(
        self, holder: Replica, request: HttpRequest, body: bytes, *, lost_reply: LostReply = lambda: None
    ) -> ForwardOutcome:
        asked = SimulatedRequest.of(request)
        is_open = self._clock.time - self._used_at.get(holder.epoch, -IDLE_SECONDS) < IDLE_SECONDS
        if not self._network.answers(holder) and (self._is_refused or not is_open):
            await self._clock.sleep(self._hop_seconds if self._is_refused else CONNECT_SECONDS)
            return self._fail(asked, ForwardOutcome.UNREACHABLE)
        self._used_at[holder.epoch] = self._clock.time
        silence = self._silent.get(holder.epoch) or self._silent.setdefault(holder.epoch, Signal(self._clock))
        await self._clock.sleep(self._hop_seconds)
        asked.hops += 1
        try:
            is_served = await self._network.ask(holder, asked)
        except ReplicaLost:
            if not self._is_refused:
                await silence
            asked.is_lost = True
            return ForwardOutcome.LOST
        return ForwardOutcome.ANSWERED if is_served else self._fail(asked, ForwardOutcome.NOT_HELD)

    def drop(self, replica: Replica) -> None:
        """It is gone, though its connections look alive."""
        self._used_at.pop(replica.epoch, None)
        if (signal := self._silent.pop(replica.epoch, None)) is not None:
            signal.ring()

    is_passing = False  # nobody stops in order here

    def end_streams(self) -> None: ...

    def break_off(self) -> None: ...

    def _fail(self, asked: SimulatedRequest, outcome: ForwardOutcome) -> ForwardOutcome:
        asked.wrong_guesses += asked.was_guessed
        asked.was_guessed = False
        return outcome

"""A world of replicas and sessions, in which some replicas are lost at once, as by a power cut."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from random import Random

from bench.simulation.leased_store import LeasedStore, SharedLeases
from bench.simulation.process import ReplicaLost
from bench.simulation.replica import SimulatedReplica, Surroundings
from bench.simulation.request import SimulatedRequest
from bench.simulation.scenario import Balancing, Scenario
from bench.simulation.scheduler import Scheduler, moment_at
from bench.simulation.tally import WAITED_SECONDS, Phase, Tally
from emceepee.state.replica import slot_in, with_slot
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Commit, Lease, SessionHead

PRINCIPAL = "somebody"
KEPT = timedelta(days=1)
WAKE_UP_SECONDS = 1.0  # in which replicas that were paused together go on
NEW = Lease(0, 0)


class World:
    """Made and run once."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.clock, self._random = scenario, Scheduler(), Random(scenario.seed)
        self.tally = Tally(self.clock)
        self._around = Surroundings(
            clock=self.clock,
            random=self._random,
            tally=self.tally,
            limits=scenario.limits,
            hop_seconds=scenario.hop_seconds,
            work_seconds=scenario.work_seconds,
            is_refused=scenario.refuses,
            on_served=self._note_served,
            on_fired=self._note_fired,
        )
        shared = SharedLeases(self.clock, self.tally, scenario.lease_seconds, scenario.trip_seconds)
        self._store = LeasedStore(shared, address=_address(0))
        others = [self._store.beside(_address(number)) for number in range(1, scenario.replicas)]
        self._replicas = [SimulatedReplica(store, self._around) for store in (self._store, *others)]
        self._by_slot = {each.replica.slot: each for each in self._replicas}
        self._turn = 0
        self._lost_sessions: dict[str, SessionKey] = {}
        self._unserved: dict[str, SessionKey] = {}  # sessions of lost replicas that nobody has served since
        self._asked_at_once: set[str] = set()  # sessions with a request in the first second
        self._fired: set[str] = set()
        self._keys = [self._place(number) for number in range(scenario.sessions)]

    def run(self) -> Tally:
        scenario = self.scenario
        for each in self._replicas:
            each.start(self._random.random())
        self.clock.spawn(self._send_requests())
        for at, happens in self._course():
            self.clock.call_later(at, happens)
        self.clock.run_until(scenario.seconds + scenario.drain_seconds + 4 * scenario.lease_seconds)
        forgotten = self.tally.forgotten
        self.tally.never_served = len(self._unserved.keys() - forgotten)
        until = moment_at(scenario.seconds)
        unfired = [each for each in self._lost_sessions if each not in forgotten and each not in self._fired]
        heads = [self._store.head_of(each) for each in unfired]
        self.tally.never_fired = sum(head.due_at is not None and head.due_at <= until for head in heads)
        return self.tally

    # How it is in the beginning.

    def _place(self, number: int) -> SessionKey:
        scenario, random = self.scenario, self._random
        opener = self._replicas[number % scenario.replicas]
        value = with_slot(f"{number:020d}", opener.replica)
        key = SessionKey(PRINCIPAL, KeyKind.ID, value)
        holder = random.choice(self._replicas) if random.random() < scenario.moved else opener
        due = random.random() * 2 * scenario.seconds if random.random() < scenario.with_timer else None
        head = SessionHead(
            session_id=value,
            principal=PRINCIPAL,
            keys=frozenset({key}),
            expires_at=moment_at(0) + KEPT,
            due_at=None if due is None else moment_at(due),
        )
        (lease,) = holder.store.commit_now([Commit(head=head, lease=NEW)])
        assert lease is not None
        holder.sessions[key] = lease
        if due is not None:
            self.clock.call_later(due, lambda: self._fire(key))
        return key

    def _fire(self, key: SessionKey) -> None:
        owner = self._store.owner_of(key.value)
        if owner is not None:
            self._around.replicas[owner].fire(key)

    # The course of things.

    def _course(self) -> Iterator[tuple[float, Callable[[], None]]]:
        scenario = self.scenario
        yield 2 * scenario.lease_seconds, lambda: self._enter(Phase.BEFORE)
        yield scenario.loss_at, self._lose
        yield scenario.loss_at + scenario.settled_after, lambda: self._enter(Phase.AFTER)
        yield scenario.loss_at + scenario.replaced_after, self._replace
        yield scenario.seconds, lambda: self.clock.spawn(self._ask_for_the_rest())

    def _enter(self, phase: Phase | None) -> None:
        self.tally.phase = phase

    def _lose(self) -> None:
        scenario, random = self.scenario, self._random
        count = round(scenario.lost * len(self._replicas))
        chosen = random.sample(self._replicas, count + round(scenario.paused * len(self._replicas)))
        for each in chosen[:count]:
            each.is_lost = True
            self._lost_sessions |= {key.value: key for key in each.sessions}
        for each in chosen[count:]:
            each.paused_until = self.clock.time + 2 * scenario.lease_seconds + random.random() * WAKE_UP_SECONDS
        self._unserved = dict(self._lost_sessions)
        self._replicas = [each for each in self._replicas if not each.is_lost]
        self._enter(Phase.DURING)

    def _replace(self) -> None:
        for number in range(self.scenario.replicas - len(self._replicas)):
            store = self._store.beside(_address(self.scenario.replicas + number))
            replica = SimulatedReplica(store, self._around)
            self._replicas.append(replica)
            self._by_slot[replica.replica.slot] = replica
            replica.start(self._random.random())

    async def _ask_for_the_rest(self) -> None:
        self._enter(None)
        for key in list(self._unserved.values()):
            await self.clock.sleep(self.scenario.drain_seconds / len(self._lost_sessions))
            self.clock.spawn(self._request(key))

    # Requests.

    async def _send_requests(self) -> None:
        scenario, random = self.scenario, self._random
        while self.clock.time < scenario.seconds:
            await self.clock.sleep(random.expovariate(scenario.requests_per_second))
            self.clock.spawn(self._request(random.choice(self._keys)))

    def _choose(self, key: SessionKey) -> SimulatedReplica:
        """A balancer's choice; it knows at once who is lost."""
        if self.scenario.balancing is Balancing.BY_SLOT and (slot := slot_in(key.value)) is not None:
            named = self._by_slot.get(slot)
            if named is not None and not named.is_lost:
                return named
        self._turn = (self._turn + 1) % len(self._replicas)
        return self._replicas[self._turn]

    async def _request(self, key: SessionKey) -> None:
        phase, asked_at = self.tally.phase, self.clock.time
        if key.value in self._unserved and asked_at < self.scenario.loss_at + 1:
            self._asked_at_once.add(key.value)
        request = SimulatedRequest(key, self._random.random() < self.scenario.changing)
        try:
            await self._choose(key).handle(request)
        except ReplicaLost:
            request.is_cut = True
        if phase is not None:
            self._record(request, phase, waited=self.clock.time - asked_at - self.scenario.work_seconds)
        if request.is_cut or request.is_lost:
            await self._request(key)  # as its caller would

    def _record(self, request: SimulatedRequest, phase: Phase, *, waited: float) -> None:
        requests = self.tally.requests[phase]
        requests.wrong_guesses += request.wrong_guesses
        requests.cut += request.is_cut
        requests.told_lost += request.is_lost
        requests.unknown += request.is_unknown
        if request.is_served and not request.is_cut:
            requests.served[request.way] += 1
            requests.hops[request.hops] += 1
        elif not (request.is_cut or request.is_lost or request.is_unknown):
            requests.refused += 1
        if waited >= WAITED_SECONDS and not request.is_cut:
            requests.waits.append(waited)

    def _note_served(self, key: SessionKey) -> None:
        if self._unserved.pop(key.value, None) is not None and key.value in self._asked_at_once:
            self.tally.takeovers.append(self.clock.time - self.scenario.loss_at)

    def _note_fired(self, head: SessionHead, *, was_taken: bool) -> None:
        self.tally.fired_twice += head.session_id in self._fired
        self._fired.add(head.session_id)
        if was_taken and head.session_id in self._lost_sessions and head.due_at is not None:
            since = max(head.due_at, moment_at(self.scenario.loss_at))
            self.tally.late_timers.append((self.clock.now() - since).total_seconds())


def _address(number: int) -> str:
    return f"http://10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}:7337"

"""The store in memory as an engine on another machine would be: it takes time, and goes by leases that lapse."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bench.simulation.scheduler import Scheduler
from bench.simulation.tally import Tally
from emceepee.state.replica import LeaseWatch, Replica
from emceepee.state.session_key import SessionKey
from emceepee.store.memory_store import MemoryStore, _Memory, _Row
from emceepee.store.store import Commit, Lease, SessionHead, StoredSession


@dataclass(slots=True)
class SharedLeases:
    """The engine's knowledge beside the memory: until when each process counts as alive, and which sessions are due."""

    clock: Scheduler
    tally: Tally
    lease_seconds: float
    trip_seconds: float
    until: dict[int | None, float] = field(default_factory=dict)  # by epoch
    due: dict[int | None, dict[str, _Row]] = field(default_factory=dict)  # rows with a deadline, by owner


class LeasedStore(MemoryStore):
    """One replica's. Each operation is counted, and takes one round trip."""

    def __init__(self, shared: SharedLeases, *, address: str, _memory: _Memory | None = None) -> None:
        super().__init__(is_durable=True, address=address, _memory=_memory)
        self._shared, self._clock = shared, shared.clock
        now = self._clock.time
        self._watch = LeaseWatch(shared.lease_seconds, renewed_at=now, steady_since=now)
        self._is_confirmed = True
        shared.until[self._owner] = now + shared.lease_seconds

    def beside(self, address: str) -> "LeasedStore":
        """Another process with the same memory. It may get the slot of one whose lease has lapsed."""
        alive, until = self._memory.alive, self._shared.until
        lapsed = {epoch: alive.pop(epoch) for epoch in list(alive) if until[epoch] <= self._clock.time}
        store = LeasedStore(self._shared, address=address, _memory=self._memory)
        alive |= lapsed  # for queries about earlier owners
        return store

    @property
    def watch(self) -> LeaseWatch:
        return self._watch

    def owner_of(self, session_id: str) -> int | None:
        """Return the actual owner, for checks; the query is not counted."""
        row = self._memory.sessions.get(session_id)
        return None if row is None else row.owner

    def head_of(self, session_id: str) -> SessionHead:
        """Return the head that a session's holder knows without a query."""
        return self._memory.sessions[session_id].head

    # Replicas.

    @property
    def is_sure(self) -> bool:
        return self._is_confirmed and self._watch.is_sure(self._clock.time)

    async def renew(self) -> None:
        sent_at = self._clock.time
        await self._take_a_trip("renewal")
        if self._shared.until[self._owner] <= self._clock.time:
            self._is_confirmed = False  # others may have taken its sessions
        self._shared.until[self._owner] = self._clock.time + self._shared.lease_seconds
        self._watch.renewed(sent_at)

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        await self.renew()
        await self._take_a_trip("confirmation")
        self._is_confirmed = True
        return await super().confirm(leases)

    async def replicas(self) -> Sequence[Replica]:
        await self._take_a_trip("list of replicas")
        now, until = self._clock.time, self._shared.until
        found = [replica for epoch, replica in self._memory.alive.items() if until[epoch] > now]
        self._shared.tally.count("entries of that list", len(found))
        return found

    async def announce_gone(self, epochs: Collection[int]) -> None:
        await self._take_a_trip("announcement of a loss")
        await super().announce_gone(epochs)

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        await self._take_a_trip("take")
        return await super().take(key)

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        await self._take_a_trip("take what is due")
        return await super().take_due(now, most)

    async def next_due(self) -> datetime | None:
        await self._take_a_trip("ask what is due next")
        return await super().next_due()

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        await self._take_a_trip("commit")
        return self.commit_now(commits)

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        leases = super().commit_now(commits)
        for commit, lease in zip(commits, leases, strict=True):
            if lease is not None:
                self._index_due(self._memory.sessions[commit.head.session_id])
        return leases

    async def forget_expired(self, now: datetime, most: int) -> int:
        await self._take_a_trip("forget what has expired")
        # Looking through all is only needed where there are too many: nothing expires in the time that is simulated.
        return await super().forget_expired(now, most) if len(self._memory.sessions) > most else 0

    # What differs from a memory that sees a death at once.

    def _is_held(self, row: _Row) -> bool:
        return self._is_alive(row.owner)

    def _is_alive(self, owner: int | None) -> bool:
        until = self._shared.until.get(owner)
        if until is None:
            return False
        now = self._clock.time
        return until > now or owner == self._owner or not self._watch.may_take_over(now)

    def _free_with_deadline(self) -> Iterable[tuple[datetime, _Row]]:
        return [
            (row.head.due_at, row)
            for owner, rows in self._shared.due.items()
            if rows and not self._is_alive(owner)
            for row in rows.values()
            if row.head.due_at is not None
        ]

    def _take(self, row: _Row) -> StoredSession:
        self._shared.due.get(row.owner, {}).pop(row.head.session_id, None)
        taken = super()._take(row)
        self._index_due(row)
        return taken

    def _delete(self, session_id: str) -> None:
        self._shared.due.get(self._memory.sessions[session_id].owner, {}).pop(session_id, None)
        self._shared.tally.forgotten.add(session_id)
        super()._delete(session_id)

    def _index_due(self, row: _Row) -> None:
        rows = self._shared.due.setdefault(row.owner, {})
        if row.head.due_at is None:
            rows.pop(row.head.session_id, None)
        else:
            rows[row.head.session_id] = row

    async def _take_a_trip(self, kind: str) -> None:
        self._shared.tally.count(kind)
        await self._clock.sleep(self._shared.trip_seconds)

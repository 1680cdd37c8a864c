"""Guess which replica holds a session: live replicas, the slot in its id, and its last known holder.

    id …-07 ──▶ slot 7, if it is alive ──┐
    key seen before ──▶ its last holder ─┴▶ ask that replica first; if it lacks the session, ask the store

The guess saves a query to the store. The supposed holder reports a wrong guess.

Up to fifty replicas each read the replica list as often as they renew their leases. More replicas share that work: each
reads less often, so that all together read as often as fifty would. A replica that finds another one gone notifies the
rest.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Sequence
from random import Random

from emceepee.clock import Clock
from emceepee.state.replica import RENEWALS_PER_LEASE, Replica, slot_in
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Store, StoreError, StoreListener
from emceepee.telemetry.logs import EventLog

log = EventLog("replicas")
MOST_REMEMBERED = 10_000  # remembered holders of requested sessions
READERS = 50  # replicas that read the replica list at every lease renewal; more replicas share that work
TURN_SECONDS = 0.1  # average interval between two replicas that take turns
_NAMING = frozenset({KeyKind.ID, KeyKind.HANDLE, KeyKind.CONNECTION})  # these name the replica that made them


class Placement(StoreListener):
    """This process's knowledge of the other replicas that share its store."""

    def __init__(self, store: Store, clock: Clock, *, lease_seconds: float, random: Random | None = None) -> None:
        self._store, self._clock = store, clock
        self._every = lease_seconds / RENEWALS_PER_LEASE
        self._random = random or Random()
        store.listen(self)
        self._by_slot: dict[int, Replica] = {}
        self._holders: OrderedDict[SessionKey, Replica] = OrderedDict()
        self._gone: set[int] = set()  # epochs of replicas found gone since the last read
        self._gone_watchers: list[Callable[[Replica], None]] = []
        self._watchers: list[Callable[[], None]] = []

    def when_gone(self, watcher: Callable[[Replica], None]) -> None:
        """Call `watcher` with each replica that is no longer alive."""
        self._gone_watchers.append(watcher)

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when other replicas have joined or left."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    @property
    def own(self) -> Replica | None:
        return self._store.replica

    @property
    def count(self) -> int:
        """Return the number of replicas, including this one."""
        return len(self._by_slot)

    @property
    def _shared_pause(self) -> float:
        """Return the average extra pause between reads of the replica list, because many replicas read it."""
        return self._every * max(0.0, self.count / READERS - 1)

    def turn_delay(self) -> float:
        """Random delay in seconds before work that only one replica needs to do."""
        return self._random.uniform(0, 2 * TURN_SECONDS * max(self.count - 1, 0))

    @property
    def others(self) -> Sequence[Replica]:
        """The other replicas that can be asked."""
        own = self.own
        if own is None:
            return []
        return [each for slot, each in self._by_slot.items() if slot != own.slot and each.address]

    def guess(self, key: SessionKey) -> Replica | None:
        """Return the replica that probably holds the session, or None if it is this one or unknown."""
        known = self._holders.get(key)
        if known is None and key.kind in _NAMING and (slot := slot_in(key.value)) is not None:
            known = self._by_slot.get(slot)
        return known if known is not None and self.is_other(known) and self.is_alive(known) else None

    def is_other(self, replica: Replica) -> bool:
        own = self.own
        return bool(replica.address) and own is not None and replica.epoch != own.epoch

    def is_alive(self, replica: Replica) -> bool:
        """Whether the replica is alive as far as this process knows."""
        return self._by_slot.get(replica.slot) == replica

    def learn(self, key: SessionKey, holder: Replica) -> None:
        if holder.epoch in self._gone:  # the caller queried the store before the replica was found gone
            return
        known = self._by_slot.get(holder.slot)
        if known is None or known.epoch < holder.epoch:
            self._by_slot[holder.slot] = holder
            self._report_change()
        self._holders[key] = holder
        self._holders.move_to_end(key)
        if len(self._holders) > MOST_REMEMBERED:
            self._holders.popitem(last=False)

    def forget(self, key: SessionKey) -> None:
        self._holders.pop(key, None)

    async def refresh(self) -> None:
        """Raises: StoreError."""
        alive = {each.slot: each for each in await self._store.replicas()}
        gone = {each.epoch for slot, each in self._by_slot.items() if slot not in alive or alive[slot] != each}
        self._gone.clear()
        self.handle_replicas_gone(gone)
        has_more = len(alive) != len(self._by_slot)
        self._by_slot = alive
        if has_more:
            self._report_change()
        if gone:
            await self._store.announce_gone(gone)

    def handle_replicas_gone(self, epochs: Collection[int]) -> None:
        """Remove replicas that are gone, with the sessions they held, and notify listeners."""
        own = self.own
        self._gone |= set(epochs)
        gone = [each for each in self._by_slot.values() if each.epoch in epochs and each != own]
        if not gone:
            return
        for replica in gone:
            del self._by_slot[replica.slot]
        self._holders = OrderedDict((key, each) for key, each in self._holders.items() if each.epoch not in epochs)
        for replica in gone:
            log.info("replica_gone", slot=replica.slot)
            for report in self._gone_watchers:
                report(replica)
        self._report_change()

    def _report_change(self) -> None:
        for report in list(self._watchers):
            report()

    async def run(self, confirm: Callable[[], Awaitable[None]]) -> None:
        """Read the list of live replicas periodically. Call `confirm` when the leases need confirmation."""
        read_at = 0.0
        while True:
            if not self._store.is_sure:
                await confirm()
            if (now := self._clock.monotonic()) >= read_at:
                read_at = now + self._shared_pause * self._random.uniform(0.5, 1.5)
                try:
                    await self.refresh()
                except StoreError as error:
                    log.debug("replicas_not_read", error=str(error))  # failed writes are logged at a higher level
            await self._clock.sleep(self._every)

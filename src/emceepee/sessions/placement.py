"""Where a session may be that is not here: who is alive, whom its id names, and who had it last.

    id …-07 ──▶ slot 7, if it is alive ──┐
    key seen before ──▶ its last holder ─┴▶ ask there first; if it is not there, ask the store

All of it is a guess, which saves asking the store: the holder itself says if it is wrong.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from emceepee.clock import Clock
from emceepee.state.replica import RENEWALS_PER_LEASE, Replica, slot_in
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Store, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("replicas")
MOST_REMEMBERED = 10_000  # holders of sessions that were asked for here
_NAMING = frozenset({KeyKind.ID, KeyKind.HANDLE, KeyKind.CONNECTION})  # these say which replica made them


class Placement:
    """What this process knows of the others that share its store."""

    def __init__(self, store: Store, clock: Clock, *, lease_seconds: float) -> None:
        self._store, self._clock = store, clock
        self._every = lease_seconds / RENEWALS_PER_LEASE
        self._by_slot: dict[int, Replica] = {}
        self._holders: OrderedDict[SessionKey, Replica] = OrderedDict()
        self.on_gone: list[Callable[[Replica], None]] = []  # called with each that is no longer alive
        self.on_change: list[Callable[[], None]] = []  # called when others have come or gone
        self.confirm: Callable[[], Awaitable[None]] | None = None  # called after this process was away itself

    @property
    def own(self) -> Replica | None:
        return self._store.replica

    @property
    def others(self) -> Sequence[Replica]:
        """Those that can be asked."""
        own = self.own
        if own is None:
            return []
        return [each for slot, each in self._by_slot.items() if slot != own.slot and each.address]

    def guess(self, key: SessionKey) -> Replica | None:
        """Who probably has it; None if that is nobody else, or unknown."""
        known = self._holders.get(key)
        if known is None and key.kind in _NAMING and (slot := slot_in(key.value)) is not None:
            known = self._by_slot.get(slot)
        return known if known is not None and self.is_other(known) and self.is_alive(known) else None

    def is_other(self, replica: Replica) -> bool:
        own = self.own
        return bool(replica.address) and own is not None and replica.epoch != own.epoch

    def is_alive(self, replica: Replica) -> bool:
        """As far as is known here."""
        return self._by_slot.get(replica.slot) == replica

    def learn(self, key: SessionKey, holder: Replica) -> None:
        if holder.slot not in self._by_slot:
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
        gone = [each for each in self._by_slot.values() if alive.get(each.slot) != each]
        has_changed = alive != self._by_slot
        self._by_slot = alive
        if gone:
            self._holders = OrderedDict((key, each) for key, each in self._holders.items() if each not in gone)
        for replica in gone:
            log.info("replica_gone", slot=replica.slot)
            for report in self.on_gone:
                report(replica)
        if has_changed:
            self._report_change()

    def _report_change(self) -> None:
        for report in list(self.on_change):
            report()

    async def run(self) -> None:
        """Look who is alive, as often as leases are renewed."""
        while True:
            if not self._store.is_sure and self.confirm is not None:
                await self.confirm()
            try:
                await self.refresh()
            except StoreError as error:
                log.debug("replicas_not_read", error=str(error))  # whoever writes says so louder
            await self._clock.sleep(self._every)

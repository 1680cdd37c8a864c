"""The lease of this process on its slot among the replicas. A key in Redis holds it, and expires unless renewed.

If the key of a slot is gone or has another epoch, other replicas may take the sessions of the previous owner. So a
process whose key expired starts a new *term*. It must confirm its sessions, which changes the owner name in each of
them. This closes a race: a replica that saw the key missing takes sessions by the old owner name, and fails.
"""

import asyncio
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from emceepee.clock import Clock
from emceepee.state.replica import LeaseWatch, Replica
from emceepee.store.redis.connection.commands import Commands, ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_faults import unusable_because
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.scripts.replica_scripts import CLAIM_SLOT, LEAVE_SLOT, RENEW_SLOT, ROSTER
from emceepee.store.store import StoreListener, StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
EPOCH_BITS = 20  # random bits of an epoch: a Redis that loses its last second of writes would repeat a counter
TRIES_PER_LEASE = 10  # to claim a slot that another replica holds
LOST, KEPT, REGAINED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Roster:
    """The live replicas and the last replica of each slot, for the requested slots."""

    alive: Mapping[int, Replica]
    last: Mapping[int, Replica]

    def is_alive(self, owner: str) -> bool:
        slot, epoch = _parts(owner)
        return slot in self.alive and self.alive[slot].epoch == epoch

    def holder(self, owner: str) -> Replica:
        """Return the replica of this owner, with an empty address if it is unknown."""
        slot, epoch = _parts(owner)
        last = self.last.get(slot)
        return last if last is not None and last.epoch == epoch else Replica(slot=slot, epoch=epoch, address="")


class SlotLease:
    """The lease of this process. `claim` creates it, and `run` renews it until it is cancelled."""

    def __init__(
        self,
        commands: Commands,
        names: KeyNames,
        clock: Clock,
        *,
        address: str,
        epoch: int,
        watch: LeaseWatch,
        listener: StoreListener,
    ) -> None:
        self._commands, self._names, self._clock = commands, names, clock
        self._epoch, self._address, self._watch, self._listener = epoch, address, watch, listener
        self._milliseconds = round(watch.lease_seconds * 1000)
        self._term = self._confirmed_term = 0
        self._renewing = asyncio.Lock()
        self._is_failing = False
        self.slot = -1

    @classmethod
    async def claim(
        cls,
        commands: Commands,
        names: KeyNames,
        clock: Clock,
        *,
        redis: RedisAddress,
        address: str,
        slot: int | None,
        lease_seconds: float,
        listener: StoreListener,
    ) -> "SlotLease":
        """Claim the given slot, or the lowest free one. `listener` is notified when Redis answers again.

        Raises: StoreUnusable, StoreUnavailable, UnknownOutcome."""
        count = int(await commands.execute("INCR", names.epochs))
        epoch = (count << EPOCH_BITS) + secrets.randbelow(1 << EPOCH_BITS)
        began = clock.monotonic()
        watch = LeaseWatch(lease_seconds, renewed_at=began, steady_since=began)
        lease = cls(commands, names, clock, address=address, epoch=epoch, watch=watch, listener=listener)
        for _ in range(TRIES_PER_LEASE + 2):
            if await lease._claim(slot):
                return lease
            await clock.sleep(lease_seconds / TRIES_PER_LEASE)
        raise unusable_because(
            redis, f"has another replica in slot {slot}, which is alive", "Stop that one, choose another --replica-slot"
        )

    @property
    def replica(self) -> Replica:
        return Replica(slot=self.slot, epoch=self._epoch, address=self._address)

    @property
    def owner(self) -> str:
        """Return the current owner name of this process in its sessions."""
        return f"{self.slot}:{self._epoch}:{self._term}"

    @property
    def epoch(self) -> str:
        return str(self._epoch)

    @property
    def is_sure(self) -> bool:
        return self._confirmed_term == self._term and self._watch.is_sure(self._clock.monotonic())

    @property
    def is_in_doubt(self) -> bool:
        if self.is_sure:
            return False
        return self._confirmed_term != self._term or self._watch.stood_still(self._clock.monotonic())

    @property
    def may_take_over(self) -> bool:
        return self._watch.may_take_over(self._clock.monotonic())

    async def run(self) -> None:
        while True:
            await self._clock.sleep(self._watch.retry_every if self._is_failing else self._watch.renew_every)
            try:
                await self.renew()
            except StoreUnavailable as error:
                self._report_failure(str(error))

    async def watch(self) -> None:
        """Detect suspension of this process. Renewals cannot show it, because they wait for Redis."""
        while True:
            await self._clock.sleep(self._watch.look_every)
            self._watch.look(self._clock.monotonic())

    async def renew(self) -> int:
        """Renew the lease and return the resulting term. Raises: StoreUnavailable."""
        async with self._renewing:
            sent_at = self._clock.monotonic()
            try:
                if (found := await self._renew()) != KEPT:
                    if found == LOST:
                        log.warning("replica_slot_lost", slot=self.slot)
                        sent_at = self._clock.monotonic()
                        await self._claim(None)
                    self._term += 1
            except UnknownOutcome as error:
                raise error.because from None
            self._watch.renewed(sent_at)
            self._report_success()
            return self._term

    def confirm(self, term: int) -> None:
        """Record that the held sessions were confirmed in that term."""
        self._confirmed_term = term

    async def roster(self, owners: Collection[str] = ()) -> Roster:
        """Return the roster of all replicas, or only of the slots of `owners`."""
        slots = {_parts(owner)[0] for owner in owners}
        call = ScriptCall(ROSTER, [self._names.registry], [self._names.replicas, *slots])
        return await read_roster(self._commands, call)

    async def leave(self) -> None:
        keys = [self._names.slot(self.slot), self._names.registry]
        await self._commands.run_all([ScriptCall(LEAVE_SLOT, keys, [self.slot, self._value])])

    @property
    def _value(self) -> str:
        return f"{self._epoch} {self._address}"

    async def _claim(self, slot: int | None) -> bool:
        sent_at = self._clock.monotonic()
        wanted = "" if slot is None else slot
        arguments = [self._names.replicas, wanted, self._value, self._milliseconds]
        (found,) = await self._commands.run_all([ScriptCall(CLAIM_SLOT, [self._names.registry], arguments)])
        if found < 0:
            return False
        self.slot = found
        self._watch.renewed(sent_at)
        return True

    async def _renew(self) -> int:
        keys = [self._names.slot(self.slot), self._names.registry]
        (found,) = await self._commands.run_all(
            [ScriptCall(RENEW_SLOT, keys, [self.slot, self._value, self._milliseconds])]
        )
        return int(found)

    def _report_failure(self, error: str) -> None:
        if not self._is_failing:
            log.warning("replica_lease_not_renewed", error=error)
        self._is_failing = True

    def _report_success(self) -> None:
        was_failing, self._is_failing = self._is_failing, False
        if was_failing:
            log.info("replica_lease_renewed_again")
            self._listener.handle_return()


async def read_roster(commands: Commands, call: ScriptCall) -> Roster:
    (told,) = await commands.run_all([call])
    alive: dict[int, Replica] = {}
    last: dict[int, Replica] = {}
    for number, value, is_alive in zip(told[::3], told[1::3], told[2::3], strict=True):
        epoch, _, address = value.decode().partition(" ")
        last[int(number)] = Replica(slot=int(number), epoch=int(epoch), address=address)
        if is_alive:
            alive[int(number)] = last[int(number)]
    return Roster(alive, last)


def epoch_of(owner: str) -> str:
    return owner.split(":")[1]


def _parts(owner: str) -> tuple[int, int]:
    slot, epoch, _ = owner.split(":")
    return int(slot), int(epoch)

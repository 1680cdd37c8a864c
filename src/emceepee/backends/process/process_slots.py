"""Slots for server processes: a limit for each principal, and the choice of an idle process to stop for a new one."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from emceepee.backends.link import Link, LinkError, LinkFailure
from emceepee.clock import Clock
from emceepee.futures import resolve
from emceepee.state.limits import Limits

PATIENCE_SECONDS = 2.0  # how long a new process waits while all other processes are in use
POLL_SECONDS = 0.1


class Occupant(Protocol):
    """The connection that a process serves."""

    @property
    def idle_seconds(self) -> float:
        """Seconds since its session was last used; 0 if stopping the process would lose anything."""
        ...

    def give_way(self) -> None:
        """Stop the process until its next use."""
        ...


class ProcessSlot:
    """One process, from before its start until its end."""

    def __init__(self, principal: str, occupant: Occupant | None) -> None:
        self.principal, self.occupant = principal, occupant
        self.link: Link | None = None  # set once it is open
        self.freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_leaving(self) -> bool:
        return self.link is not None and self.link.closed.done()


class ProcessSlots:
    """Limits the processes of each principal, and of all principals together.

    At a limit, an idle process is stopped to make room: at a principal's limit, one of that principal's own processes;
    at the total limit, one of the principal with the most processes. So abandoned sessions cause no refusals.
    """

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits, self._clock = limits, clock
        self._slots: set[ProcessSlot] = set()

    async def occupy(self, principal: str, occupant: Occupant | None) -> ProcessSlot:
        """Return a slot for a new process, once there is room. Raises: NoRoom."""
        give_up_at = self._clock.monotonic() + PATIENCE_SECONDS
        while owners := self._owners_to_ask(principal):
            has_asked = self._ask_most_idle(owners)
            leaving = [slot.freed for slot in self._slots if slot.is_leaving and slot.principal in owners]
            if leaving:
                await asyncio.wait(leaving, return_when=asyncio.FIRST_COMPLETED)
            elif not has_asked:
                if self._clock.monotonic() >= give_up_at:
                    raise self._refusal(principal)
                await self._clock.sleep(POLL_SECONDS)  # a short call may end in this time and leave its process idle
        slot = ProcessSlot(principal, occupant)
        self._slots.add(slot)
        return slot

    def free(self, slot: ProcessSlot) -> None:
        self._slots.discard(slot)
        resolve(slot.freed, None)

    def _owners_to_ask(self, principal: str) -> Sequence[str]:
        """Return the principals whose idle processes can make room, the largest first.

        Return an empty list if there is already room.
        """
        counts = Counter(slot.principal for slot in self._slots)
        own = counts[principal]
        if own >= self._limits.processes_per_principal:
            return [principal]
        if len(self._slots) < self._limits.processes_in_all:
            return []
        return [owner for owner, _ in counts.most_common()]

    def _ask_most_idle(self, owners: Sequence[str]) -> bool:
        """Ask the process with the longest idle time to stop. Return False if none is idle."""
        for owner in owners:
            occupants = [slot.occupant for slot in self._slots if slot.principal == owner and slot.occupant is not None]
            longest = max(occupants, key=lambda occupant: occupant.idle_seconds, default=None)
            if longest is not None and longest.idle_seconds > 0:
                longest.give_way()
                return True
        return False

    def _refusal(self, principal: str) -> LinkError:
        own = sum(slot.principal == principal for slot in self._slots)
        is_own = own >= self._limits.processes_per_principal
        limit = "processes_per_principal" if is_own else "processes_in_all"
        running = f"{own} server processes run for you" if is_own else f"emceepee runs {len(self._slots)} processes"
        return NoRoom(
            f"{running}, which is the limit ({limit}), and none of them is idle. End a session that uses some, or ask "
            "the operator to raise the limit"
        )


class NoRoom(LinkError):
    """Too many processes are running. A later call may succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(LinkFailure.UNREACHABLE, message, may_have_run=False)

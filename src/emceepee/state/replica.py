"""Processes that share one store: how ids name them, how long they count as alive, and who may take over from whom.

lease      sent ├────────── lease_seconds ──────────┤ lapses
its owner       ├─ sure of its sessions ─────────┤ must ask the store before it serves any
the others                                          ├ may take over, if they could reach the store for a while

If the store does not answer, its owner goes on, because nobody else gets an answer either. But not if it stood still
itself when its lease lapsed, or later: then others may have taken over before it asked.
"""

import re
from dataclasses import dataclass, field

SURE_SHARE = 0.9  # of a lease: the rest is for clocks that do not run alike
RENEWALS_PER_LEASE = 3  # two may be lost
RETRIES_PER_LEASE = 20  # while they fail: soon after the store is back, so is the lease
GRACE_SHARE = 0.5  # of a lease: after the store was away, its owner has that long to renew it
LOOKS_PER_LEASE = 10  # at the time, by which a process sees that it stood still
STILL_SHARE = 0.3  # of a lease: who comes that late to a look stood still; others would need longer to take over
_SLOT = re.compile(r"-(\d{2,5})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A process that shares a store with others."""

    slot: int
    """The lowest number that was free when it came. It stands behind the ids that it makes."""
    epoch: int
    """Tells it from those that had the slot before."""
    address: str
    """Where the others reach it: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`; "" if they cannot."""


def with_slot(value: str, replica: Replica | None) -> str:
    """An id that says who made it, so that a balancer or another replica may ask there first."""
    return value if replica is None or not replica.address else f"{value}-{replica.slot:02d}"


def slot_in(value: str) -> int | None:
    """The slot of whoever made the id, if it says so. It is no more than a guess at who has the session now."""
    found = _SLOT.search(value)
    return None if found is None else int(found[1])


@dataclass(slots=True)
class LeaseWatch:
    """What a process knows of its own lease. Moments are those of a clock that never goes back."""

    lease_seconds: float
    renewed_at: float
    """When the last renewal that succeeded was sent."""
    steady_since: float
    """Since when none came too late."""
    seen_at: float = field(init=False)
    """When the process was last seen at work."""
    _stood_still: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.seen_at = self.renewed_at

    def renewed(self, sent_at: float) -> None:
        self._stood_still = False
        if sent_at - self.renewed_at >= self.lease_seconds:
            self.steady_since = sent_at
        self.renewed_at = sent_at

    def look(self, now: float) -> None:
        """The process is at work."""
        self._stood_still, self.seen_at = self.stood_still(now), now

    @property
    def renew_every(self) -> float:
        return self.lease_seconds / RENEWALS_PER_LEASE

    @property
    def retry_every(self) -> float:
        """While the store does not answer: others wait for a part of a lease only, once it does."""
        return self.lease_seconds / RETRIES_PER_LEASE

    @property
    def look_every(self) -> float:
        return self.lease_seconds / LOOKS_PER_LEASE

    def stood_still(self, now: float) -> bool:
        """Whether it was not at work for a while without being sure, and has not renewed its lease since."""
        is_late = now - self.seen_at > self.lease_seconds * STILL_SHARE
        return self._stood_still or (is_late and not self.is_sure(now))

    def is_sure(self, now: float) -> bool:
        """Whether nobody can have taken over what this process holds."""
        return now - self.renewed_at < self.lease_seconds * SURE_SHARE

    def may_take_over(self, now: float) -> bool:
        """Whether one whose lease is gone has had the time to renew it, had it been able to."""
        return self.is_sure(now) and now - self.steady_since >= self.lease_seconds * GRACE_SHARE

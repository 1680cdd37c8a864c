"""Processes that share one store: the slot in their ids, the term of their leases, and the rules for a takeover.

lease      sent ├────────── lease_seconds ──────────┤ lapses
its owner       ├─ sure of its sessions ─────────┤ must ask the store before it serves any
others                                              ├ may take over, if they could reach the store for a while

If the store does not answer, the owner continues, because no other replica gets an answer either. The exception is an
owner that was itself suspended when its lease lapsed, or later: others may have taken over before it asked.
"""

import re
from dataclasses import dataclass, field

SURE_SHARE = 0.9  # of a lease: the rest is a margin for clock drift
RENEWALS_PER_LEASE = 3  # two renewals may be lost
RETRIES_PER_LEASE = 20  # while renewals fail: the lease recovers soon after the store does
GRACE_SHARE = 0.5  # of a lease: after a store outage, the owner has this long to renew it
LOOKS_PER_LEASE = 10  # checks of the time, by which a process detects that it was suspended
STILL_SHARE = 0.3  # of a lease: a process this late for a check was suspended; a takeover would take longer
_SLOT = re.compile(r"-(\d{2,5})\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A process that shares a store with others."""

    slot: int
    """The lowest number that was free when it started. It is the suffix of the ids that it makes."""
    epoch: int
    """Distinguishes it from earlier processes with the same slot."""
    address: str
    """Its address for other replicas: `http://HOST:PORT`, `https://HOST:PORT` or `unix:PATH`; "" if unreachable."""


def with_slot(value: str, replica: Replica | None) -> str:
    """Return the id with its maker's slot, so that a balancer or another replica can ask that replica first."""
    return value if replica is None or not replica.address else f"{value}-{replica.slot:02d}"


def slot_in(value: str) -> int | None:
    """Return the slot of the id's maker, if the id names it. It is only a guess at which replica has the session."""
    found = _SLOT.search(value)
    return None if found is None else int(found[1])


@dataclass(slots=True)
class LeaseWatch:
    """A process's view of its own lease. Times are those of a monotonic clock."""

    lease_seconds: float
    renewed_at: float
    """When the last successful renewal was sent."""
    steady_since: float
    """The time since which no renewal came too late."""
    seen_at: float = field(init=False)
    """When the process was last known to be running."""
    _stood_still: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.seen_at = self.renewed_at

    def renewed(self, sent_at: float) -> None:
        self._stood_still = False
        if sent_at - self.renewed_at >= self.lease_seconds:
            self.steady_since = sent_at
        self.renewed_at = sent_at

    def look(self, now: float) -> None:
        """Record that the process is running."""
        self._stood_still, self.seen_at = self.stood_still(now), now

    @property
    def renew_every(self) -> float:
        return self.lease_seconds / RENEWALS_PER_LEASE

    @property
    def retry_every(self) -> float:
        """The retry interval during a store outage: afterwards, others wait only part of a lease before a takeover."""
        return self.lease_seconds / RETRIES_PER_LEASE

    @property
    def look_every(self) -> float:
        return self.lease_seconds / LOOKS_PER_LEASE

    def stood_still(self, now: float) -> bool:
        """Return whether it was suspended while unsure of its lease and has not renewed it since."""
        is_late = now - self.seen_at > self.lease_seconds * STILL_SHARE
        return self._stood_still or (is_late and not self.is_sure(now))

    def is_sure(self, now: float) -> bool:
        """Return whether no other replica can have taken over this process's sessions."""
        return now - self.renewed_at < self.lease_seconds * SURE_SHARE

    def may_take_over(self, now: float) -> bool:
        """Return whether the owner of a lapsed lease has had time to renew it, if it could."""
        return self.is_sure(now) and now - self.steady_since >= self.lease_seconds * GRACE_SHARE

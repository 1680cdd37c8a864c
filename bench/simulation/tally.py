"""The counts and measurements of a simulation."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bench.simulation.scheduler import Scheduler

WAITED_SECONDS = 0.1  # a request that took this much longer than its work has waited


class Phase(StrEnum):
    """Before the loss, until the last lease has lapsed and everyone knows, and afterwards."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


class Way(StrEnum):
    """The way of a request to the replica that served it."""

    LOCAL = "the balancer led to the holder"
    BY_SLOT = "one hop, by the slot in the id"
    BY_MEMORY = "one hop, by a remembered holder"
    BY_STORE = "hops after asking the store"
    TAKEN = "taken from the store"


@dataclass(slots=True)
class Requests:
    """The requests of one phase."""

    served: Counter[Way] = field(default_factory=Counter)
    hops: Counter[int] = field(default_factory=Counter)
    wrong_guesses: int = 0
    told_lost: int = 0
    """Answered that they may have run, as their replica was lost with them."""
    cut: int = 0
    """Their connection ended at a replica that was lost."""
    refused: int = 0
    """Answered with 503."""
    unknown: int = 0
    """Requests for an existing session that were answered as unknown."""
    waits: list[float] = field(default_factory=list)
    """Seconds, of all that waited."""

    @property
    def count(self) -> int:
        return sum(self.served.values())

    @property
    def hops_per_request(self) -> float:
        return sum(hops * times for hops, times in self.hops.items()) / max(self.count, 1)


@dataclass(slots=True)
class Tally:
    """Of one run."""

    clock: Scheduler
    phase: Phase | None = None  # None: not counted yet, or any more
    requests: dict[Phase, Requests] = field(default_factory=lambda: {phase: Requests() for phase in Phase})
    operations: Counter[tuple[str, int]] = field(default_factory=Counter)  # of the store, by kind and second
    takeovers: list[float] = field(default_factory=list)
    """From the loss to the first request that was served, of sessions that someone asked for in the first second."""
    late_timers: list[float] = field(default_factory=list)
    """From when it was due, or the loss if that was later, until it fired: of sessions that were taken for that."""
    forgotten: set[str] = field(default_factory=set)
    """Sessions that the store deleted: none of them had expired."""
    stale_serves: int = 0
    """Requests served by a replica that did not hold the session any more."""
    fenced_commits: int = 0
    """Commits that were refused, because another had taken the session."""
    fired_twice: int = 0
    never_fired: int = 0
    never_served: int = 0

    @property
    def keeps_promises(self) -> bool:
        broken = (self.never_served, len(self.forgotten), self.stale_serves, self.fired_twice, self.never_fired)
        return not any(broken) and not any(each.unknown for each in self.requests.values())

    def count(self, kind: str, times: int = 1) -> None:
        self.operations[kind, int(self.clock.time)] += times

    def rates(self, kind: str, seconds: range) -> list[int]:
        return [self.operations[kind, second] for second in seconds]

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(kind for kind, _ in self.operations))


def percentile(values: Sequence[float], share: float) -> float:
    """Of sorted ones; 0 if there are none."""
    return values[min(int(len(values) * share), len(values) - 1)] if values else 0.0


def percentiles(values: Iterable[float], shares: Sequence[float] = (0.5, 0.99, 1.0)) -> list[float]:
    found = sorted(values)
    return [percentile(found, share) for share in shares]

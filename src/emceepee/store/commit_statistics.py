"""The number of commits of a store, and their durations."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

DURATIONS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class CommitStatistics:
    """The number of commits, their total duration, and the durations of the last ones, including time in the queue."""

    count: int
    seconds: Sequence[float]
    total_seconds: float = 0.0


class CommitCounter:
    """Counts and times the commits of one store."""

    def __init__(self) -> None:
        self._count, self._total, self._seconds = 0, 0.0, deque[float](maxlen=DURATIONS_KEPT)

    def add(self, seconds: float) -> None:
        self._count += 1
        self._total += seconds
        self._seconds.append(seconds)

    @property
    def figures(self) -> CommitStatistics:
        return CommitStatistics(self._count, tuple(self._seconds), self._total)

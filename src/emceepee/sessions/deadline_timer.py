"""Lets time pass for a session's records: one pending wake-up, however many deadlines there are."""

from collections.abc import Callable
from datetime import datetime

from emceepee.clock import Clock, Handle

# A wall clock may lag behind the loop's by a hair: without this an alarm could ring just before its deadline.
MARGIN_SECONDS = 0.001


class DeadlineTimer:
    """`ring(now)` is called when the earliest deadline has passed, and returns the next one."""

    def __init__(self, clock: Clock, ring: Callable[[datetime], datetime | None]) -> None:
        self._clock, self._ring = clock, ring
        self._handle: Handle | None = None
        self._at: datetime | None = None

    def not_later_than(self, deadline: datetime) -> None:
        """Ring at `deadline`, unless it is set for an earlier moment anyway."""
        if self._at is not None and self._at <= deadline:
            return
        self.close()
        self._at = deadline
        delay = (deadline - self._clock.now()).total_seconds() + MARGIN_SECONDS
        self._handle = self._clock.call_later(max(delay, 0), self._rang)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._at = None

    def _rang(self) -> None:
        self._handle = self._at = None
        following = self._ring(self._clock.now())
        if following is not None:
            self.not_later_than(following)

"""One pending timer for all deadlines of a session's records."""

from collections.abc import Callable
from datetime import datetime

from emceepee.clock import Clock, Handle

# The wall clock may lag a little behind the loop's clock. Without a margin, the timer could fire before its deadline.
MARGIN_SECONDS = 0.001


class DeadlineTimer:
    """Call `on_deadline(now)` after the earliest deadline. It returns the next one."""

    def __init__(self, clock: Clock, on_deadline: Callable[[datetime], datetime | None]) -> None:
        self._clock, self._on_deadline = clock, on_deadline
        self._handle: Handle | None = None
        self._at: datetime | None = None
        self._is_closed = False

    def advance_to(self, deadline: datetime) -> None:
        """Fire at `deadline`, unless the timer is set for an earlier time."""
        if self._is_closed or (self._at is not None and self._at <= deadline):
            return
        self._disarm()
        self._at = deadline
        delay = (deadline - self._clock.now()).total_seconds() + MARGIN_SECONDS
        self._handle = self._clock.call_later(max(delay, 0), self._fire)

    def close(self) -> None:
        """Stop for good: records change while a session closes, and a pending timer would keep the session alive."""
        self._is_closed = True
        self._disarm()

    def _disarm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = self._at = None

    def _fire(self) -> None:
        self._handle = self._at = None
        following = self._on_deadline(self._clock.now())
        if following is not None:
            self.advance_to(following)

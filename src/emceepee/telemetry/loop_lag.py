"""The delay of the event loop: the simplest sign of an overloaded process."""

from emceepee.clock import Clock, Handle

PERIOD_SECONDS = 0.5  # between two measurements
WINDOW_SECONDS = 30.0  # a scrape reports the worst delay of this window and the one before, at any scrape interval


class LoopLag:
    """Measures from `start` to `close`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = self._window_ends = 0.0
        self._worst = self._worst_before = 0.0
        self._next: Handle | None = None

    @property
    def worst(self) -> float:
        """The worst delay in seconds, within the last minute or so."""
        return max(self._worst, self._worst_before)

    def start(self) -> None:
        self._window_ends = self._clock.monotonic() + WINDOW_SECONDS
        self._look_later()

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look_later(self) -> None:
        self._due = self._clock.monotonic() + PERIOD_SECONDS
        self._next = self._clock.call_later(PERIOD_SECONDS, self._look)

    def _look(self) -> None:
        now = self._clock.monotonic()
        if now >= self._window_ends:
            self._worst_before, self._worst = self._worst, 0.0
            self._window_ends = now + WINDOW_SECONDS
        self._worst = max(self._worst, now - self._due)
        self._look_later()

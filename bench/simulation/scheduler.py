"""A clock that jumps to the next event, and runs coroutines without an event loop."""

import heapq
from collections.abc import Callable, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

_ZERO = datetime(2030, 1, 1, tzinfo=UTC)
Work = Coroutine[Any, Any, None]


class _Pause:
    __slots__ = ("_seconds",)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __await__(self) -> "Generator[float, None, None]":
        yield self._seconds


class Signal:
    """Coroutines that await it continue when it rings."""

    __slots__ = ("_has_rung", "_scheduler", "waiting")

    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler, self.waiting, self._has_rung = scheduler, list[Work](), False

    def __await__(self) -> "Generator[Signal, None, None]":
        if not self._has_rung:
            yield self

    def ring(self) -> None:
        self._has_rung = True
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            self._scheduler.resume_later(0.0, work)


class _Callback:
    """A handle, as of any clock."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Scheduler:
    """A `Clock`. Callbacks of the same time run in the order of their registration."""

    def __init__(self) -> None:
        self.time = 0.0
        self._queue: list[tuple[float, int, Work | _Callback]] = []
        self._numbers = count()

    def now(self) -> datetime:
        return moment_at(self.time)

    def monotonic(self) -> float:
        return self.time

    def call_later(self, delay: float, callback: Callable[[], None]) -> _Callback:
        handle = _Callback(callback)
        heapq.heappush(self._queue, (self.time + delay, next(self._numbers), handle))
        return handle

    async def sleep(self, delay: float) -> None:
        await _Pause(delay)

    def resume_later(self, delay: float, work: Work) -> None:
        heapq.heappush(self._queue, (self.time + delay, next(self._numbers), work))

    def spawn(self, work: Work) -> None:
        """Begin it at once."""
        self._step(work)

    def run_until(self, end: float) -> None:
        queue = self._queue
        while queue and queue[0][0] <= end:
            self.time, _, work = heapq.heappop(queue)
            if not isinstance(work, _Callback):
                self._step(work)
            elif work.callback is not None:
                work.callback()
        self.time = end

    def _step(self, work: Work) -> None:
        try:
            awaited = work.send(None)
        except StopIteration:
            return
        if isinstance(awaited, Signal):
            awaited.waiting.append(work)
        else:
            self.resume_later(awaited, work)


def moment_at(seconds: float) -> datetime:
    return _ZERO + timedelta(seconds=seconds)

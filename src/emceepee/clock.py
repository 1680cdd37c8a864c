"""The only code that reads the time or sleeps. All other code receives a `Clock`, so that tests control time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol, TypeVar

from emceepee.futures import resolve

T = TypeVar("T")
SHORTEST_SHARED = 0.5  # seconds: shorter delays are rare and seldom equal
MOST_QUEUES = 64
SMALLEST_CORRECTION = timedelta(seconds=1)  # a smaller difference comes from reading two clocks one after the other


class Handle(Protocol):
    """A scheduled callback that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The current time and timers. Durations are in seconds."""

    def now(self) -> datetime:
        """Return the UTC time for records and deadlines: it never jumps. Show it with `iso` or `epoch_milliseconds`."""
        ...

    def monotonic(self) -> float:
        """Return the time of a monotonic clock, to measure durations."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle: ...

    async def sleep(self, delay: float) -> None: ...


def _counting_sleep() -> Callable[[], float]:
    """Return a monotonic clock that, where the system has one, also counts while the machine sleeps."""
    try:
        time.clock_gettime(time.CLOCK_BOOTTIME)
    except (AttributeError, OSError):
        return time.monotonic
    return partial(time.clock_gettime, time.CLOCK_BOOTTIME)


class SteadyTime:
    """The wall clock at startup plus the time passed since then: changes to the wall clock do not affect it."""

    def __init__(self, wall: Callable[[], float], passed: Callable[[], float]) -> None:
        self._wall, self._passed = wall, passed
        self._zero = datetime.fromtimestamp(wall(), UTC) - timedelta(seconds=passed())

    def now(self) -> datetime:
        return self._zero + timedelta(seconds=self._passed())

    def on_the_wall(self, moment: datetime) -> datetime:
        """Convert a time from `now` to the wall clock as it is set now."""
        set_ahead = datetime.fromtimestamp(self._wall(), UTC) - self.now()
        return moment if abs(set_ahead) < SMALLEST_CORRECTION else moment + set_ahead


_PROCESS_TIME = SteadyTime(time.time, _counting_sleep())


class SystemClock:
    """The system clock. Each instance belongs to one event loop."""

    now = staticmethod(_PROCESS_TIME.now)
    monotonic = staticmethod(time.monotonic)

    def __init__(self) -> None:
        self._queues: dict[float, _Queue] = {}

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle:
        """Schedule a callback.

        Nearly all deadlines are cancelled, and most share a few delays: each delay has one timer.
        """
        queue = self._queues.get(delay)
        if queue is None:
            if delay < SHORTEST_SHARED or len(self._queues) >= MOST_QUEUES:
                return asyncio.get_running_loop().call_later(delay, callback)
            queue = self._queues[delay] = _Queue(delay)
        return queue.add(callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay)


class _Queued:
    """One deadline in a queue."""

    __slots__ = ("_queue", "callback", "due")

    def __init__(self, queue: "dict[_Queued, None]", due: float, callback: Callable[[], None]) -> None:
        self._queue, self.due, self.callback = queue, due, callback

    def ring(self) -> None:
        callback = self.callback
        self.cancel()
        callback()

    def cancel(self) -> None:
        """Drop the callback, which often references this handle's owner: a cycle would need the garbage collector."""
        self._queue.pop(self, None)
        self.callback = _nothing


def _nothing() -> None: ...


class _Queue:
    """Deadlines with one delay. They fall due in the order of their creation, so one timer serves them all."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._waiting: dict[_Queued, None] = {}
        self._is_armed = False

    def add(self, callback: Callable[[], None]) -> _Queued:
        queued = _Queued(self._waiting, time.monotonic() + self._delay, callback)
        self._waiting[queued] = None
        if not self._is_armed:
            self._is_armed = True
            asyncio.get_running_loop().call_later(self._delay, self._ring)
        return queued

    def _ring(self) -> None:
        loop, now = asyncio.get_running_loop(), time.monotonic()
        for queued in list(self._waiting):
            if queued.due > now:
                loop.call_later(queued.due - now, self._ring)
                return
            del self._waiting[queued]
            loop.call_soon(queued.ring)
        self._is_armed = False


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds since the epoch, as in ULIDs."""
    return int(moment.timestamp() * 1000)


def iso(moment: datetime) -> str:
    """Return ISO 8601 in UTC with milliseconds, by the current wall clock. Every reply uses this format."""
    shown = _PROCESS_TIME.on_the_wall(moment)
    return shown.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def epoch_milliseconds(moment: datetime) -> float:
    """Return milliseconds since the epoch by the current wall clock, for web pages."""
    return _PROCESS_TIME.on_the_wall(moment).timestamp() * 1000


async def within(clock: Clock, seconds: float, work: "asyncio.Future[T]") -> T:
    """Return the result of `work` if it finishes in time. `work` itself continues either way.

    Raises:
        TimeoutError: the time passed first.
    """
    if work.done():
        return work.result()
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        resolve(first, None)

    work.add_done_callback(wake)
    alarm = clock.call_later(seconds, wake)
    try:
        await first
    finally:
        alarm.cancel()
        work.remove_done_callback(wake)
    if not work.done():
        raise TimeoutError
    return work.result()


@asynccontextmanager
async def give_up_after(clock: Clock, seconds: float) -> AsyncIterator[None]:
    """Like `asyncio.timeout`, but by the given clock. Raises: TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        alarm = clock.call_later(seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            alarm.cancel()

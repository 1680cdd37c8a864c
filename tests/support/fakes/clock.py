"""A clock that only the test moves."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from functools import partial

START = datetime(2026, 1, 1, tzinfo=UTC)


async def settle(rounds: int = 50) -> None:
    """Run every task that can run before time passes."""
    for _ in range(rounds):
        await asyncio.sleep(0)


class FakeHandle:
    """A planned callback. It runs in the context in which it was planned, as on a real event loop."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = partial(copy_context().run, callback)

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """Starts at `START`, or another moment; `advance` fires what falls due on the way, in order."""

    def __init__(self, start: datetime = START) -> None:
        self._start, self._elapsed = start, 0.0
        self._due: list[tuple[float, int, FakeHandle]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    @property
    def timers(self) -> int:
        """The number of callbacks that fall due later."""
        return sum(handle.callback is not None for _, _, handle in self._due)

    @property
    def is_waited_for(self) -> bool:
        """Whether anything falls due later."""
        return self.timers > 0

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeHandle:
        handle = FakeHandle(callback)
        heapq.heappush(self._due, (self._elapsed + delay, next(self._order), handle))
        return handle

    async def sleep(self, delay: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        handle = self.call_later(delay, wake)
        try:
            await woken
        finally:
            handle.cancel()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass, and everything happen that does in that time."""
        end = self._elapsed + seconds
        await settle()
        while self._due and self._due[0][0] <= end:
            when, _, handle = heapq.heappop(self._due)
            self._elapsed = max(self._elapsed, when)
            if handle.callback is not None:
                handle.callback()
                await settle()
        self._elapsed = end
        await settle()

    def jump(self, seconds: float) -> None:
        """Let `seconds` pass within this turn of the loop: what falls due happens now, and nothing runs in between."""
        end = self._elapsed + seconds
        while self._due and self._due[0][0] <= end:
            when, _, handle = heapq.heappop(self._due)
            self._elapsed = max(self._elapsed, when)
            if handle.callback is not None:
                handle.callback()
        self._elapsed = end

    def stall(self, seconds: float) -> None:
        """Block the event loop for that time: callbacks that fall due run late, with the next `advance` or `jump`."""
        self._elapsed += seconds

    def sleep_through(self, seconds: float) -> None:
        """Suspend the machine: time jumps, and callbacks that fell due during the sleep run only now."""
        self.stall(seconds)
        self.jump(0)

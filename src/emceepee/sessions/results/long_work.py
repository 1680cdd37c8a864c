"""Long computations in a thread, one at a time. A computation without a waiter ends soon."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from threading import Event
from time import perf_counter, sleep  # noqa: TID251  # in a thread of its own, where it blocks no loop
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")
Now = Callable[[], float]

PAUSE_SECONDS = 0.00005


class LongWork:
    """The queue of one kind of computation. A computation must read the given clock, which lets the event loop run."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, compute: Callable[[Now], T]) -> T:
        """Return the result of `compute`. Raises: its exceptions."""
        return await self.run_on(_nothing, lambda _, now: compute(now))

    async def run_on(self, prepare: Callable[[], Awaitable[S]], compute: Callable[[S, Now], T]) -> T:
        """Return the result of `compute`, which gets that of `prepare`. Raises: the exceptions of both."""
        is_unwanted = Event()

        def now() -> float:
            sleep(PAUSE_SECONDS)
            return inf if is_unwanted.is_set() else perf_counter()

        await self._turn.acquire()
        try:
            sources = [await prepare()]  # the thread pops it, so that no reference remains when the result is ready
            work = asyncio.get_running_loop().run_in_executor(None, lambda: compute(sources.pop(), now))
        except BaseException:
            self._turn.release()
            raise
        work.add_done_callback(self._end_turn)
        try:
            return await asyncio.shield(work)
        finally:
            is_unwanted.set()

    def _end_turn(self, work: "asyncio.Future[T]") -> None:
        """Start the next computation when the thread has ended, even if its caller left earlier."""
        self._turn.release()
        if not work.cancelled():
            work.exception()  # mark the exception as retrieved, or asyncio logs it


async def _nothing() -> None: ...

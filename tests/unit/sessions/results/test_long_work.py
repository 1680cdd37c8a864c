import asyncio
import threading
from collections.abc import Callable
from math import inf

import pytest

from emceepee.sessions.results.long_work import LongWork

BOUND = 10.0  # seconds


async def test_long_work_runs_in_a_thread_and_returns_its_result() -> None:
    work = LongWork()
    assert await work.run(lambda now: (now() < inf, threading.current_thread() is threading.main_thread())) == (
        True,
        False,
    )


async def test_a_failed_computation_reaches_its_caller_and_the_next_one_runs() -> None:
    work = LongWork()

    def fail(now: Callable[[], float]) -> None:
        raise LookupError("gone")

    async def unprepared() -> None:
        raise OSError("away")

    with pytest.raises(LookupError):
        await work.run(fail)
    with pytest.raises(OSError, match="away"):
        await work.run_on(unprepared, lambda _, now: None)
    assert await work.run(lambda now: 1) == 1


async def test_the_next_computation_starts_only_after_an_abandoned_one_has_ended() -> None:
    work, has_begun, may_end, order = LongWork(), threading.Event(), threading.Event(), list[str]()

    def endless(now: Callable[[], float]) -> None:
        has_begun.set()
        while now() < inf:
            pass
        may_end.wait(BOUND)
        order.append("ended")

    waiting = asyncio.create_task(work.run(endless))
    await asyncio.to_thread(has_begun.wait, BOUND)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    following = asyncio.create_task(work.run(lambda now: order.append("next")))
    await asyncio.sleep(0)
    may_end.set()
    async with asyncio.timeout(BOUND):
        await following
    assert order == ["ended", "next"]

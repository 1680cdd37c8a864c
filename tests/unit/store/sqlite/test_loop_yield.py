"""The event loop pauses briefly when the writer thread of the store does not get its turn."""

import threading

from emceepee.store.sqlite.loop_yield import (
    LONGEST_PATIENCE_SECONDS,
    PATIENCE_SECONDS,
    STANDSTILL_SECONDS,
    LoopYield,
)
from support.fakes.clock import FakeClock


class CountedEvent(threading.Event):
    """Counts the pauses of the loop, and may finish the work of the thread during one."""

    waits = 0

    def __init__(self, right_of_way: LoopYield, finishing: int = 0) -> None:
        super().__init__()
        self._right_of_way, self._finishing = right_of_way, finishing

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout == STANDSTILL_SECONDS
        self.waits += 1
        if self._finishing:
            self._right_of_way.finished(self._finishing)
        return self.is_set()


def a_right_of_way(clock: FakeClock, *, finishing: int = 0) -> tuple[LoopYield, CountedEvent]:
    right_of_way = LoopYield(clock)
    right_of_way._progress = event = CountedEvent(right_of_way, finishing)
    return right_of_way, event


async def test_the_loop_does_not_yield_if_the_writer_finishes_in_time() -> None:
    clock = FakeClock()
    right_of_way, event = a_right_of_way(clock)
    right_of_way.ask()
    right_of_way.finished(1)
    await clock.advance(1)
    assert event.waits == 0


async def test_the_loop_yields_once_to_a_writer_thread_that_waits_for_its_turn() -> None:
    clock = FakeClock()
    right_of_way, event = a_right_of_way(clock, finishing=2)
    right_of_way.ask()
    right_of_way.ask()
    await clock.advance(PATIENCE_SECONDS / 2)
    assert event.waits == 0
    await clock.advance(1)
    assert event.waits == 1


async def test_the_loop_yields_less_and_less_often_for_a_slow_disk() -> None:
    clock = FakeClock()
    right_of_way, event = a_right_of_way(clock)
    right_of_way.ask()
    await clock.advance(10 * LONGEST_PATIENCE_SECONDS)
    assert event.waits <= 20
    right_of_way.finished(1)
    await clock.advance(1)
    before = event.waits
    right_of_way.ask()
    await clock.advance(2 * PATIENCE_SECONDS)
    assert event.waits == before + 1

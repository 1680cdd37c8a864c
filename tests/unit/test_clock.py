import asyncio
import weakref
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from typing import Any

import pytest

from emceepee import clock as clock_module
from emceepee.clock import SteadyTime, SystemClock, epoch_milliseconds, iso, milliseconds, within
from emceepee.lifecycle import TaskOwner
from support.fakes.clock import FakeClock, settle


class WatchedFuture(asyncio.Future[str]):
    """A future that counts its callbacks."""

    callbacks = 0

    def add_done_callback(self, callback: "Callable[[WatchedFuture], object]", /, **options: Any) -> None:
        self.callbacks += 1
        super().add_done_callback(callback, **options)

    def remove_done_callback(self, callback: "Callable[[WatchedFuture], object]", /) -> int:
        removed = super().remove_done_callback(callback)
        self.callbacks -= removed
        return removed


def a_future() -> WatchedFuture:
    return WatchedFuture(loop=asyncio.get_running_loop())


async def test_work_that_finishes_in_time_returns_its_result_and_cancels_the_timeout() -> None:
    clock, work, owner = FakeClock(), a_future(), TaskOwner("test")
    waiting = owner.spawn(within(clock, 10, work))
    await clock.advance(9.9)
    work.set_result("done")
    async with asyncio.timeout(5):
        assert await waiting == "done"
    assert not clock.is_waited_for


async def test_late_work_continues_after_its_timeout() -> None:
    clock, work, owner = FakeClock(), a_future(), TaskOwner("test")
    waiting = owner.spawn(_timed_out(clock, 10, work))
    await clock.advance(9.9)
    assert not waiting.done()
    await clock.advance(0.1)
    assert waiting.result()
    assert not work.done()
    assert work.callbacks == 0


async def _timed_out(clock: FakeClock, seconds: float, work: "asyncio.Future[str]") -> bool:
    with pytest.raises(TimeoutError):
        await within(clock, seconds, work)
    return True


async def test_finished_work_is_returned_even_with_a_zero_timeout() -> None:
    work = a_future()
    work.set_result("done")
    assert await within(FakeClock(), 0, work) == "done"


async def test_a_failure_of_the_work_reaches_the_waiter() -> None:
    work = a_future()
    asyncio.get_running_loop().call_soon(work.set_exception, ValueError("broken"))
    async with asyncio.timeout(5):
        with pytest.raises(ValueError, match="broken"):
            await within(FakeClock(), 10, work)


async def test_a_cancelled_waiter_does_not_cancel_the_work() -> None:
    clock, work, owner = FakeClock(), a_future(), TaskOwner("test")
    waiting = owner.spawn(within(clock, 10, work))
    await settle()
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert not work.done()
    assert work.callbacks == 0


async def test_work_that_finishes_at_the_instant_of_its_timeout_completes_the_wait() -> None:
    clock, work, owner = FakeClock(), a_future(), TaskOwner("test")
    waiting = owner.spawn(within(clock, 10, work))
    await settle()
    clock.call_later(10, lambda: work.set_result("just in time"))
    await clock.advance(10)
    assert work.done()
    assert waiting.done()
    waiting.exception()


def test_a_timestamp_is_formatted_in_utc_with_milliseconds() -> None:
    east = timezone(timedelta(hours=2))
    assert iso(datetime(2026, 1, 1, 1, 2, 3, 45_999, tzinfo=east)) == "2025-12-31T23:02:03.045Z"
    assert iso(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01T00:00:00.000Z"


def test_milliseconds_count_from_the_epoch() -> None:
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)) == 1500


async def test_the_system_clock_is_in_utc_and_monotonic_and_fires_timers() -> None:
    clock, called = SystemClock(), asyncio.Event()
    before = clock.monotonic()
    assert clock.now().tzinfo is UTC
    clock.call_later(0, called.set)
    clock.call_later(60, called.clear).cancel()
    async with asyncio.timeout(5):
        await called.wait()
        await clock.sleep(0)
    assert clock.monotonic() >= before


async def test_timers_with_equal_delays_fire_in_order_and_can_be_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("emceepee.clock.SHORTEST_SHARED", 0)
    clock, rung = SystemClock(), list[str]()
    done = asyncio.get_running_loop().create_future()
    clock.call_later(0.01, lambda: rung.append("first"))
    called_off = clock.call_later(0.01, lambda: rung.append("called off"))
    clock.call_later(0.01, lambda: rung.append("second"))
    called_off.cancel()
    called_off.cancel()
    clock.call_later(0.02, lambda: done.set_result(None))
    await asyncio.wait_for(done, 5)
    assert rung == ["first", "second"]


async def test_a_timer_created_after_others_were_cancelled_still_fires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("emceepee.clock.SHORTEST_SHARED", 0)
    clock, rung = SystemClock(), list[int]()
    for number in range(3):
        done = asyncio.get_running_loop().create_future()
        clock.call_later(0.005, partial(rung.append, -number)).cancel()
        clock.call_later(0.005, partial(done.set_result, None))
        await asyncio.wait_for(done, 5)
    assert rung == []


async def test_a_timer_can_be_cancelled_by_another_that_is_due_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("emceepee.clock.SHORTEST_SHARED", 0)
    clock, rung = SystemClock(), list[str]()
    done = asyncio.get_running_loop().create_future()

    def call_off() -> None:
        second.cancel()

    clock.call_later(0.005, call_off)
    second = clock.call_later(0.005, partial(rung.append, "second"))
    clock.call_later(0.005, partial(done.set_result, None))
    await asyncio.wait_for(done, 5)
    assert rung == []


@pytest.mark.parametrize("delay", [0.0, 60.0])
async def test_a_finished_timer_keeps_no_reference_to_its_owner(delay: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner is often the object of its callback: both must be freed without the garbage collector."""
    monkeypatch.setattr("emceepee.clock.SHORTEST_SHARED", 0)
    clock, rung = SystemClock(), asyncio.Event()

    class Owner:
        def __init__(self) -> None:
            self.deadline = clock.call_later(delay, self.ring)

        def ring(self) -> None:
            rung.set()

    owner = Owner()
    watched = weakref.ref(owner)
    if delay:
        owner.deadline.cancel()
    else:
        await asyncio.wait_for(rung.wait(), 5)
    del owner
    assert watched() is None


class Machine:
    """The two clocks of a machine: the wall clock, which people set, and the monotonic one."""

    def __init__(self) -> None:
        self.wall, self.passed = 1_800_000_000.0, 5000.0
        self.time = SteadyTime(lambda: self.wall, lambda: self.passed)

    def goes_on(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds


@pytest.mark.parametrize("hours", [1, -1, 24 * 365])
def test_setting_the_wall_clock_changes_no_duration(hours: float) -> None:
    machine = Machine()
    began = machine.time.now()
    assert began.timestamp() == machine.wall
    machine.goes_on(10)
    machine.wall += hours * 3600
    machine.goes_on(5)
    assert machine.time.now() - began == timedelta(seconds=15)


@pytest.mark.parametrize("hours", [1, -1, 24 * 365])
def test_timestamps_are_formatted_in_current_wall_clock_time(hours: float, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    monkeypatch.setattr(clock_module, "_PROCESS_TIME", machine.time)
    began = machine.time.now()
    machine.wall += hours * 3600
    assert epoch_milliseconds(began) == machine.wall * 1000
    assert iso(began) == iso(machine.time.now())
    assert datetime.fromisoformat(iso(began)).timestamp() == machine.wall


def test_a_small_difference_between_two_clocks_does_not_count_as_a_clock_change() -> None:
    machine = Machine()
    began = machine.time.now()
    machine.wall += 0.9
    assert machine.time.on_the_wall(began) == began


def test_the_process_time_matches_the_wall_clock() -> None:
    assert abs(SystemClock().now() - datetime.now(UTC)) < timedelta(seconds=5)

import asyncio
from contextvars import ContextVar

from emceepee.lifecycle import TaskOwner
from support.fakes.clock import START, FakeClock, settle


async def test_the_fake_clock_advances_only_when_the_test_advances_it() -> None:
    clock = FakeClock()
    assert (clock.now(), clock.monotonic()) == (START, 0)
    await settle()
    assert clock.monotonic() == 0
    await clock.advance(90)
    assert clock.monotonic() == 90
    assert (clock.now() - START).total_seconds() == 90


async def test_timers_of_the_fake_clock_fire_in_order_and_at_their_times() -> None:
    clock, happened = FakeClock(), list[tuple[str, float]]()
    for name, delay in [("late", 3.0), ("early", 1.0), ("also early", 1.0), ("never", 11.0)]:
        clock.call_later(delay, lambda name=name: happened.append((name, clock.monotonic())))  # type: ignore[misc]  # mypy cannot infer the default's type
    await clock.advance(10)
    assert happened == [("early", 1), ("also early", 1), ("late", 3)]


async def test_a_cancelled_timer_of_the_fake_clock_does_not_fire() -> None:
    clock, happened = FakeClock(), list[str]()
    clock.call_later(1, lambda: happened.append("x")).cancel()
    await clock.advance(2)
    assert happened == []


async def test_timers_started_while_the_fake_clock_advances_fire_on_time() -> None:
    clock, woken, owner = FakeClock(), list[float](), TaskOwner("test")

    async def tick() -> None:
        for _ in range(3):
            await clock.sleep(2)
            woken.append(clock.monotonic())

    task = owner.spawn(tick())
    await clock.advance(5)
    assert woken == [2, 4]
    await clock.advance(1)
    assert woken == [2, 4, 6]
    async with asyncio.timeout(5):
        await task


async def test_a_cancelled_sleep_on_the_fake_clock_is_removed() -> None:
    clock, owner = FakeClock(), TaskOwner("test")
    task = owner.spawn(clock.sleep(5))
    await settle()
    task.cancel()
    await clock.advance(10)
    assert task.cancelled()


async def test_timers_of_the_fake_clock_run_in_the_context_of_their_creation() -> None:
    """This matches the timers of the event loop."""
    clock, seen = FakeClock(), list[str]()
    mine = ContextVar("mine", default="nobody's")
    mine.set("planned")
    clock.call_later(1, lambda: seen.append(mine.get()))
    asyncio.get_running_loop().call_later(0, lambda: seen.append(mine.get()))
    mine.set("later")
    await clock.advance(1)
    assert seen == ["planned", "planned"]

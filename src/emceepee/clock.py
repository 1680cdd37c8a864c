"""The only reader of time and the only sleeper. Everyone else takes a `Clock`, so that tests can let time pass."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol, TypeVar

T = TypeVar("T")


class Handle(Protocol):
    """Something that will happen later and can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """What time it is, and what happens when it passes. Durations are seconds."""

    def now(self) -> datetime:
        """The wall clock, in UTC: for what people and records see."""
        ...

    def monotonic(self) -> float:
        """A clock that never goes back: for measuring durations."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle: ...

    async def sleep(self, delay: float) -> None: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Handle:
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await asyncio.sleep(delay)


def milliseconds(moment: datetime) -> int:
    """Since the epoch, as ULIDs count."""
    return int(moment.timestamp() * 1000)


def iso(moment: datetime) -> str:
    """ISO-8601 in UTC with milliseconds, as every reply writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


async def within(clock: Clock, seconds: float, work: "asyncio.Future[T]") -> T:
    """The result of `work` if it is there in time. `work` itself goes on either way.

    Raises:
        TimeoutError: the time passed first.
    """
    if work.done():
        return work.result()
    loop = asyncio.get_running_loop()
    first: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not first.done():
            first.set_result(None)

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
    """As `asyncio.timeout`, by the given clock. Raises: TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as scope:
        alarm = clock.call_later(seconds, lambda: scope.reschedule(loop.time()))
        try:
            yield
        finally:
            alarm.cancel()

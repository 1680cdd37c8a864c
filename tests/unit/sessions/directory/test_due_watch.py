"""When a process checks for due sessions that no process holds."""

import asyncio
from collections.abc import Coroutine
from datetime import datetime, timedelta
from math import inf
from typing import Any

import pytest

from emceepee.sessions.directory.due_watch import NOT_YET_SECONDS, DueWatch
from support.fakes.clock import FakeClock


class Place:
    """A store with due sessions, and the watch that checks it."""

    def __init__(self, *, turn: float = 0.0, at_most: float = inf) -> None:
        self.clock = FakeClock()
        self.due: datetime | None = None
        self.looks: list[float] = []
        self.is_full = False
        self._tasks: list[asyncio.Task[None]] = []
        self.watch = DueWatch(
            self.clock,
            next_due=self.next_due,
            load=self._load,
            spawn=self.spawn,
            turn_delay=lambda: turn,
            at_most=at_most,
        )

    def due_in(self, seconds: float) -> None:
        self.due = self.clock.now() + timedelta(seconds=seconds)

    async def pass_by(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def next_due(self) -> datetime | None:
        return self.due

    async def _load(self) -> int | None:
        self.looks.append(round(self.clock.monotonic(), 3))
        if self.is_full:
            return None
        if self.due is None or self.due > self.clock.now():
            return 0
        self.due = None
        return 1

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.ensure_future(work))


async def test_a_due_session_is_loaded_at_its_due_time() -> None:
    place = Place()
    place.due_in(30)
    await place.watch.look()
    await place.pass_by(29.9)
    assert place.looks == [0]
    await place.pass_by(0.2)
    assert place.looks == [0, 30]
    await place.pass_by(600)
    assert place.looks == [0, 30], "nothing else is due"


async def test_replicas_wait_for_their_turn_before_they_check_for_due_sessions_and_check_again_soon() -> None:
    place = Place(turn=2, at_most=5)
    place.due_in(3)
    await place.watch.look()
    await place.pass_by(20)
    assert place.looks == [0, 5, 12, 19]


async def test_many_losses_cause_one_check_for_due_sessions() -> None:
    place = Place(turn=2, at_most=100)
    await place.watch.look()
    for _ in range(10):
        place.watch.hurry()
        await place.pass_by(0.1)
    await place.pass_by(10)
    assert place.looks == [0, 2]


async def test_a_due_session_that_cannot_be_taken_yet_is_checked_again_after_a_pause() -> None:
    place = Place()

    async def nothing() -> int:
        place.looks.append(place.clock.monotonic())
        return 0

    watch = DueWatch(place.clock, next_due=place.next_due, load=nothing, spawn=place.spawn)
    place.due_in(-1)
    await watch.look()
    await place.pass_by(2 * NOT_YET_SECONDS)
    assert place.looks == [0, NOT_YET_SECONDS, 2 * NOT_YET_SECONDS]
    watch.cancel()


async def test_a_full_process_does_not_wait_for_due_sessions() -> None:
    place = Place()
    place.due_in(-1)
    place.is_full = True
    await place.watch.look()
    await place.pass_by(600)
    assert place.looks == [0]


@pytest.mark.parametrize("happens", ["wait", "hurry"])
async def test_a_cancelled_due_watch_makes_no_more_checks(happens: str) -> None:
    place = Place()
    place.due_in(1)
    if happens == "wait":
        await place.watch.wait()
    else:
        place.watch.hurry()
    place.watch.cancel()
    await place.pass_by(10)
    assert place.looks == []

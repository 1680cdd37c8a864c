"""The states of a timer, and its behavior after the machine was suspended."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emceepee.state.machine import ForbiddenMove
from emceepee.state.timer import TIMER, Timer, TimerStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
RETENTION = timedelta(minutes=5)
ALLOWED = {(TimerStatus.ACTIVE, TimerStatus.EXPIRED), (TimerStatus.ACTIVE, TimerStatus.DELETED)}


def a_timer(*, repeats: bool = False, duration: timedelta = MINUTE) -> Timer:
    return Timer(
        timer_id="t",
        message="tea",
        duration=duration,
        repeats=repeats,
        created_at=NOW,
        expires_at=NOW + duration,
        retention=RETENTION,
    )


@pytest.mark.parametrize(("source", "target"), list(product(TimerStatus, TimerStatus)))
def test_a_timer_moves_from_active_to_one_of_two_ends_and_nowhere_else(
    source: TimerStatus, target: TimerStatus
) -> None:
    assert TIMER.allows(source, target) is ((source, target) in ALLOWED)


@pytest.mark.parametrize("status", [TimerStatus.EXPIRED, TimerStatus.DELETED])
def test_an_ended_timer_cannot_be_deleted(status: TimerStatus) -> None:
    timer = replace(a_timer(), status=status, ended_at=NOW)
    with pytest.raises(ForbiddenMove):
        timer.deleted(NOW)
    assert timer == replace(a_timer(), status=status, ended_at=NOW)


def test_a_timer_fires_once_at_its_time_and_is_removed_after_the_retention() -> None:
    timer = a_timer()
    assert timer.tick(NOW + MINUTE - timedelta(microseconds=1)) is timer
    fired = timer.tick(NOW + MINUTE)
    assert fired is not None
    assert (fired.status, fired.fire_count, fired.ended_at) == (TimerStatus.EXPIRED, 1, NOW + MINUTE)
    assert fired.next_deadline == NOW + MINUTE + RETENTION
    assert fired.tick(fired.next_deadline - timedelta(microseconds=1)) is fired
    assert fired.tick(fired.next_deadline) is None


def test_a_deleted_timer_does_not_fire_and_is_removed_after_the_retention() -> None:
    deleted = a_timer().deleted(NOW)
    assert deleted.tick(NOW + MINUTE) is deleted
    assert (deleted.status, deleted.fire_count) == (TimerStatus.DELETED, 0)
    assert deleted.tick(NOW + RETENTION) is None


def test_a_repeating_timer_stays_active_and_keeps_its_rhythm() -> None:
    timer: Timer | None = a_timer(repeats=True)
    for count in range(1, 4):
        assert timer is not None
        timer = timer.tick(NOW + MINUTE * count + timedelta(milliseconds=count))
        assert timer is not None
        assert (timer.fire_count, timer.expires_at, timer.is_active) == (count, NOW + MINUTE * (count + 1), True)


@settings(deadline=None, database=None)
@given(
    duration=st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(hours=24)),
    slept=st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=400)),
)
def test_a_repeating_timer_fires_once_after_a_long_suspension_and_is_next_due_in_the_future(
    duration: timedelta, slept: timedelta
) -> None:
    timer = a_timer(repeats=True, duration=duration)
    woke = timer.expires_at + slept
    fired = timer.tick(woke)
    assert fired is not None
    assert fired.fire_count == 1
    assert woke < fired.expires_at <= woke + duration
    assert (fired.expires_at - NOW) % duration == timedelta(0)
    assert fired.tick(woke) is fired

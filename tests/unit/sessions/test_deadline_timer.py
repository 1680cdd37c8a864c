from datetime import datetime, timedelta

from emceepee.sessions.deadline_timer import DeadlineTimer
from support.fakes.clock import FakeClock


async def test_a_closed_deadline_timer_does_not_fire_for_a_later_deadline() -> None:
    clock, fired = FakeClock(), list[datetime]()
    timer = DeadlineTimer(clock, fired.append)
    timer.advance_to(clock.now() + timedelta(seconds=1))
    timer.close()
    timer.advance_to(clock.now() + timedelta(seconds=2))
    await clock.advance(3)
    assert fired == []

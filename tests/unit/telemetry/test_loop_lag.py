"""The worst delay of the event loop is reported for a limited time."""

from emceepee.telemetry.loop_lag import PERIOD_SECONDS, WINDOW_SECONDS, LoopLag
from support.fakes.clock import FakeClock


async def test_the_worst_loop_delay_is_reported_and_reset_after_two_windows() -> None:
    clock = FakeClock()
    lag = LoopLag(clock)
    lag.start()
    await clock.advance(PERIOD_SECONDS)
    assert lag.worst == 0.0
    clock.stall(PERIOD_SECONDS + 0.25)
    await clock.advance(0)
    assert round(lag.worst, 3) == 0.25
    await clock.advance(WINDOW_SECONDS)
    assert round(lag.worst, 3) == 0.25
    await clock.advance(2 * WINDOW_SECONDS)
    assert lag.worst < 0.001
    assert clock.is_waited_for
    lag.close()
    assert not clock.is_waited_for

import asyncio
import time

import pytest

from support.faults.lateness import PROCESSES, Lateness
from support.faults.timeline import STORE, Fault, FaultKind, Span, Timeline, moment
from support.waiting import eventually


def test_only_delays_within_a_span_extend_it() -> None:
    lateness = Lateness()
    for late in (Span(1, 2), Span(4, 7), Span(9, 10)):
        lateness.add(late)
    assert lateness.seconds(Span(2.5, 3.5)) == 0
    assert lateness.seconds(Span(5, 9.5)) == 2.5 * PROCESSES
    assert lateness.seconds(Span(0, 20)) == 5 * PROCESSES
    assert (lateness.in_all, lateness.longest) == (5, 3)


async def test_a_process_that_missed_its_beat_is_recorded_as_late() -> None:
    async with Lateness() as lateness:
        await asyncio.sleep(0)
        began = moment()
        time.sleep(0.2)  # noqa: ASYNC251 - stands for a processor that others have
        await eventually(lambda: lateness.longest > 0.1, what="a beat is late")
        assert lateness.seconds(Span(began, moment())) == pytest.approx(PROCESSES * lateness.in_all)


def test_a_store_fault_affects_a_late_machine_for_longer() -> None:
    fault = Fault(FaultKind.STORE_KILL, STORE, 0, 5)
    timeline = Timeline(aftermath=2, faults=[fault])
    assert timeline.felt(fault) == Span(0, 7)
    timeline.late = lambda span: 0.5 * (span.ended - span.began)
    assert timeline.felt(fault) == Span(0, 8)
    assert timeline.before(Span(10, 11), 4) == Span(4, 11)

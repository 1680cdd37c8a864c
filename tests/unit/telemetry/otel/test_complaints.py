"""A collector that does not answer fills no log."""

import logging

import pytest

from emceepee.telemetry.otel.complaints import PAUSE_SECONDS, complaints_heard
from support.fakes.clock import FakeClock


async def test_the_first_complaint_of_a_minute_is_logged_and_the_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, exporter = FakeClock(), logging.getLogger("opentelemetry.exporter.tests")
    caplog.set_level(logging.WARNING)
    with complaints_heard(clock):
        for number in range(5):
            exporter.warning("no answer %d", number)
        await clock.advance(PAUSE_SECONDS)
        exporter.error("still none")
        exporter.info("nobody needs this")
    fields = [getattr(record, "fields", None) for record in caplog.records]
    assert fields == [{"message": "no answer 0", "leftOut": 0}, {"message": "still none", "leftOut": 4}]
    exporter.warning("after it")
    assert caplog.records[-1].name == "opentelemetry.exporter.tests"

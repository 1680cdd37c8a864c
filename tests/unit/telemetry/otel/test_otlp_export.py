"""A collector that does not answer does not flood the log."""

import logging

import pytest

from emceepee.telemetry.otel.otlp_export import PAUSE_SECONDS, library_logs
from emceepee.telemetry.otel.trace_context import context_of
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from support.fakes.clock import FakeClock


async def test_the_first_exporter_error_per_minute_is_logged_and_the_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, exporter = FakeClock(), logging.getLogger("opentelemetry.exporter.tests")
    caplog.set_level(logging.WARNING)
    with library_logs(clock):
        for number in range(5):
            exporter.warning("no answer %d", number)
        await clock.advance(PAUSE_SECONDS)
        exporter.error("still none")
        exporter.info("nobody needs this")
    fields = [getattr(record, "fields", None) for record in caplog.records]
    assert fields == [{"message": "no answer 0", "leftOut": 0}, {"message": "still none", "leftOut": 4}]
    exporter.warning("after it")
    assert caplog.records[-1].name == "opentelemetry.exporter.tests"


@pytest.mark.parametrize(
    "said",
    [
        {"baggage": "a secret of the caller's"},
        {"baggage": f"long={'x' * 5000}"},
        {"baggage": "ä=secret"},
        {"tracestate": "A SECRET=1"},
        {"tracestate": "a=1,a=secret"},
        {"tracestate": ",".join(f"a{number}=secret" for number in range(40))},
    ],
)
def test_invalid_baggage_of_callers_is_neither_logged_nor_hides_exporter_errors(
    said: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    params = {"_meta": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", **said}}
    caplog.set_level(logging.WARNING)
    with library_logs(FakeClock()):
        context_of(RequestContext(Request(1, "tools/call", params)))
        logging.getLogger("opentelemetry.trace").warning("of the operator's own")
    assert [getattr(record, "fields", None) for record in caplog.records] == [
        {"message": "of the operator's own", "leftOut": 0}
    ]

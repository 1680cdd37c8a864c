"""The number of metric series stays small for any names that others choose."""

from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.otel import conventions as names
from emceepee.telemetry.otel.conventions import Attributes
from support.fakes.clock import FakeClock
from support.fakes.otel_recorder import OtelRecorder, attributes_of

MANY = 5000


def test_invented_names_do_not_exhaust_the_metric_series() -> None:
    otel = OtelRecorder(FakeClock())
    for number in range(MANY):
        failed = {names.METHOD: "tools/call", names.TOOL: f"up{number}", names.ERROR_TYPE: str(number)}
        otel.instruments.record_outgoing(0.1, {**failed})
    points = otel.points("mcp.client.operation.duration")
    assert len(points) == 51  # the error types, and one for all others
    assert {attributes_of(point)[names.TOOL] for point in points} == {OTHER}
    otel.instruments.record_outgoing(0.1, {names.METHOD: "tools/call", names.TOOL: "real"})
    assert "real" in {attributes_of(point)[names.TOOL] for point in otel.points("mcp.client.operation.duration")}


def test_a_server_gets_a_metric_label_once_it_was_asked_and_an_own_tool_at_once() -> None:
    otel = OtelRecorder(FakeClock())
    failed: Attributes = {names.TOOL: "execute_tool", names.ERROR_TYPE: "tool_error"}
    for number in range(MANY):
        otel.instruments.record_incoming(0.1, failed | {names.BACKEND: f"up{number}"}, was_server_asked=False)
    otel.instruments.record_incoming(0.1, failed | {names.BACKEND: "broken"}, was_server_asked=True)
    told = [attributes_of(point) for point in otel.points("mcp.server.operation.duration")]
    assert [(each[names.TOOL], each[names.BACKEND]) for each in told] == [
        ("execute_tool", OTHER),
        ("execute_tool", "broken"),
    ]


def test_metric_series_of_a_server_with_very_many_tools_are_limited() -> None:
    otel = OtelRecorder(FakeClock())
    for number in range(MANY):
        otel.instruments.record_outgoing(0.1, {names.METHOD: "tools/call", names.TOOL: f"t{number}"})
    assert len(otel.points("mcp.client.operation.duration")) == 1001


def test_attributes_of_a_single_request_are_not_metric_attributes() -> None:
    otel = OtelRecorder(FakeClock())
    told: Attributes = {names.METHOD: "tools/call", names.SESSION_ID: "01S", names.REQUEST_ID: "1"}
    otel.instruments.record_incoming(0.1, told | {names.RESOURCE_URI: "a:b"}, was_server_asked=True)
    (point,) = otel.points("mcp.server.operation.duration")
    assert attributes_of(point) == {names.METHOD: "tools/call"}
    assert tuple(point.explicit_bounds)[::13] == (0.01, 300.0)

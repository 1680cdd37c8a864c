"""OpenTelemetry spans of requests from callers."""

from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.trace import SpanKind as OtelKind
from opentelemetry.trace import StatusCode

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.ids import Ulids
from emceepee.telemetry.journal import Journal, SpanBudget, SpanOwner, unowned_journal
from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock
from support.fakes.otel_recorder import OtelRecorder, attributes_of, id_of, parent_of

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{SPAN}-01"


@dataclass
class Origin:
    request: Request
    headers: dict[bytes, bytes] | None = None
    protocol_version: str | None = "2025-11-25"


class Traced:
    """A journal whose requests are traced."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.otel = OtelRecorder(self.clock)
        self.room = SpanBudget(10, (self.otel.requests,))
        owner = SpanOwner("01SESSION", "ann", self.clock.monotonic())
        self.journal = Journal(self.room, self.clock, Ulids(lambda: 0), most=10, changed=lambda: None, owner=owner)

    def begin(self, tool: str = "list_servers", *, headers: dict[bytes, bytes] | None = None, **meta: Any) -> Span:
        params: JsonObject = {"name": tool, "arguments": {"key": "secret"}, "_meta": meta}
        origin = Origin(Request(7, "tools/call", params), headers)
        return self.journal.begin(SpanKind.OWN_TOOL, tool, None, {"key": "secret"}, origin=origin)


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_a_request_span_uses_the_attribute_names_of_the_conventions(traced: Traced) -> None:
    traced.begin().replied({"content": [{"type": "text", "text": "secret"}]})
    span = traced.otel.span("tools/call list_servers")
    assert (span.kind, span.status.status_code, span.parent) == (OtelKind.SERVER, StatusCode.UNSET, None)
    assert attributes_of(span) == {
        "mcp.method.name": "tools/call",
        "mcp.session.id": "01SESSION",
        "mcp.protocol.version": "2025-11-25",
        "jsonrpc.request.id": "7",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "list_servers",
        "network.transport": "pipe",
    }
    assert "secret" not in span.to_json()


@pytest.mark.parametrize("where", ["meta", "header", "both"])
def test_the_parent_of_a_request_span_comes_from_the_message_and_then_from_the_header(
    traced: Traced, where: str
) -> None:
    other = f"00-{TRACE}-{'1' * 16}-01".encode()
    meta = {} if where == "header" else {"traceparent": TRACEPARENT}
    headers = None if where == "meta" else {b"traceparent": other if where == "both" else TRACEPARENT.encode()}
    traced.begin(headers=headers, **meta).replied({})
    span = traced.otel.span("tools/call list_servers")
    assert parent_of(span) == int(SPAN, 16)
    assert attributes_of(span)["network.transport"] == ("pipe" if headers is None else "tcp")


@pytest.mark.parametrize("meta", [{"traceparent": "nonsense"}, {"traceparent": 5}, {"tracestate": "a=b"}])
def test_an_invalid_trace_context_gives_a_span_without_a_parent(traced: Traced, meta: JsonObject) -> None:
    traced.begin(**meta).replied({})
    assert traced.otel.span("tools/call list_servers").parent is None


def test_a_result_that_is_an_error_marks_its_span_without_the_error_text(traced: Traced) -> None:
    traced.begin().replied({"isError": True, "content": [{"type": "text", "text": "secret"}]})
    span = traced.otel.span("tools/call list_servers")
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert attributes_of(span)["error.type"] == "tool_error"
    assert "secret" not in span.to_json()


def test_a_cancelled_request_marks_its_span_as_cancelled(traced: Traced) -> None:
    traced.begin().cancelled()
    assert attributes_of(traced.otel.span("tools/call list_servers"))["error.type"] == "cancelled"


class RefusedRequest(Exception):
    code = -32602


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RefusedRequest(), {"error.type": "-32602", "rpc.response.status_code": "-32602"}),
        (EmceepeeError("no", code=ErrorCode.LIMIT_EXCEEDED), {"error.type": "ERR_LIMIT_EXCEEDED"}),
        (ValueError("secret"), {"error.type": "_OTHER"}),
    ],
)
def test_a_failed_request_has_its_error_code_in_the_span(traced: Traced, error: Exception, told: JsonObject) -> None:
    span = traced.journal.begin(SpanKind.PROTOCOL, "ping", None, {}, origin=Origin(Request("x", "ping", None)))
    try:
        raise error
    except Exception as caught:
        span.failed(str(caught))
    attributes = attributes_of(traced.otel.span("ping"))
    assert {key: value for key, value in attributes.items() if key.startswith(("error", "rpc"))} == told


def test_an_unknown_tool_has_no_name_in_its_span(traced: Traced) -> None:
    origin = Origin(Request(7, "tools/call", {"name": "made-up"}))
    traced.journal.begin(SpanKind.UNKNOWN_TOOL, "made-up", None, {}, origin=origin).failed("no")
    (span,) = traced.otel.spans
    assert (span.name, attributes_of(span)["gen_ai.tool.name"]) == ("tools/call", OTHER)
    assert "made-up" not in span.to_json()


@pytest.mark.parametrize(
    ("method", "name", "about"),
    [
        ("made/up", OTHER, {"mcp.method.name": OTHER}),
        ("resources/made-up", OTHER, {"mcp.method.name": OTHER}),
        ("prompts/get", "prompts/get", {"mcp.method.name": "prompts/get", "gen_ai.prompt.name": OTHER}),
    ],
)
def test_an_unknown_method_has_neither_its_name_nor_its_parameters_in_the_span(
    traced: Traced, method: str, name: str, about: JsonObject
) -> None:
    origin = Origin(Request(7, method, {"name": "made-up", "uri": "made:up"}), protocol_version="made-up")
    traced.journal.begin(SpanKind.PROTOCOL, method, None, {}, origin=origin).failed("no")
    (span,) = traced.otel.spans
    assert (span.name, span.attributes) == (
        name,
        about
        | {"mcp.session.id": "01SESSION", "jsonrpc.request.id": "7", "network.transport": "pipe"}
        | {"error.type": "_OTHER", "mcp.protocol.version": OTHER},
    )
    (point,) = traced.otel.points("mcp.server.operation.duration")
    assert attributes_of(point)["mcp.method.name"] == about["mcp.method.name"]


async def test_a_request_that_becomes_a_task_ends_its_span_with_the_reply(traced: Traced) -> None:
    span = traced.begin("execute_tool")
    await traced.clock.advance(2)
    span.became_task("01TASK")
    told = traced.otel.span("tools/call execute_tool")
    assert attributes_of(told)["emceepee.task.id"] == "01TASK"
    await traced.clock.advance(60)
    span.failed("later")
    assert [each.name for each in traced.otel.spans] == ["tools/call execute_tool"]
    (point,) = traced.otel.points("mcp.server.operation.duration")
    assert (point.count, point.sum) == (1, 2.0)
    assert "error.type" not in attributes_of(point)


def test_a_part_of_a_request_is_a_child_span(traced: Traced) -> None:
    script = traced.begin("codemode_execute")
    part = traced.journal.begin(SpanKind.TOOL_CALL, "echo", "one", {}, parent=script)
    part.replied({})
    script.replied({})
    inner, outer = traced.otel.span("execute_tool echo"), traced.otel.span("tools/call codemode_execute")
    assert (inner.kind, parent_of(inner)) == (OtelKind.INTERNAL, id_of(outer))
    assert len(traced.otel.points("mcp.server.operation.duration")) == 1  # from the caller


def test_a_request_without_a_session_has_a_span(traced: Traced) -> None:
    journal = unowned_journal(traced.room, traced.clock, Ulids(lambda: 0))
    assert journal is not None
    journal.begin(SpanKind.PROTOCOL, "tools/list", None, {}, origin=Origin(Request(1, "tools/list", None))).replied({})
    assert "mcp.session.id" not in attributes_of(traced.otel.span("tools/list"))
    assert unowned_journal(SpanBudget(10), traced.clock, Ulids(lambda: 0)) is None


async def test_the_duration_of_a_session_is_measured(traced: Traced) -> None:
    await traced.clock.advance(30)
    traced.journal.close()
    (point,) = traced.otel.points("mcp.server.session.duration")
    assert (point.count, point.sum) == (1, 30.0)

"""OpenTelemetry spans of requests to servers."""

import asyncio

import pytest
from opentelemetry.trace import SpanKind as OtelKind

from emceepee.ids import Ulids
from emceepee.telemetry import spans
from emceepee.telemetry.journal import Journal, SpanBudget
from emceepee.telemetry.link_observer import CalledServer, OutgoingRequest
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock
from support.fakes.otel_recorder import OtelRecorder, attributes_of, id_of, parent_of

MAIL = CalledServer(name="mail", address="mail.test", port=443)
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Served:
    """A request being served, and its requests to servers."""

    def __init__(self, **meta: str) -> None:
        self.clock = FakeClock()
        self.otel = OtelRecorder(self.clock)
        self.journal = Journal(
            SpanBudget(10, (self.otel.requests,)), self.clock, Ulids(lambda: 0), most=10, changed=lambda: None
        )
        params: JsonObject = {"name": "execute_tool", "_meta": meta}
        origin = RequestContext(Request(1, "tools/call", params))
        self.span: Span = self.journal.begin(SpanKind.TOOL_CALL, "send", "mail", {}, origin=origin)
        spans.serve(self.span)


def request(method: str, callee: CalledServer = MAIL, **params: object) -> OutgoingRequest:
    return OutgoingRequest(callee=callee, protocol_version="2026-07-28", method=method, params=params)


@pytest.fixture(autouse=True)
def _nothing_is_served_afterwards() -> object:
    yield None
    spans.serve(None)


def test_a_request_to_a_server_is_a_child_span_of_the_request_that_needs_it() -> None:
    served = Served()
    sent = served.otel.links.begin(request("tools/call", name="send", arguments={"to": "secret"}))
    sent.number(12)
    sent.answered({"content": []})
    served.span.replied({})
    span, outer = served.otel.span("tools/call send"), served.otel.span("tools/call execute_tool")
    assert (span.kind, parent_of(span)) == (OtelKind.CLIENT, id_of(outer))
    assert sent.meta["traceparent"].split("-")[2] == f"{id_of(span):016x}"
    assert attributes_of(span) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2026-07-28",
        "jsonrpc.request.id": "12",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send",
        "network.transport": "tcp",
        "network.protocol.name": "http",
        "server.address": "mail.test",
        "server.port": 443,
        "emceepee.server": "mail",
    }


def test_tracestate_and_baggage_of_the_caller_are_forwarded_to_the_server() -> None:
    served = Served(traceparent=TRACEPARENT, tracestate="vendor=1", baggage="team=blue")
    sent = served.otel.links.begin(request("tools/call", name="send"))
    assert sent.meta["tracestate"] == "vendor=1"
    assert sent.meta["baggage"] == "team=blue"
    assert sent.meta["traceparent"].split("-")[1] == TRACEPARENT.split("-")[1]


def test_a_call_that_outlives_its_reply_stays_in_the_trace() -> None:
    served = Served()
    sent = served.otel.links.begin(request("tools/call", name="send"))
    served.span.became_task("01TASK")
    sent.failed("unreachable", None)
    again = served.otel.links.begin(request("tasks/get", taskId="1"))
    again.answered({})
    outer = served.otel.span("tools/call execute_tool")
    failed = served.otel.span("tools/call send")
    assert parent_of(failed) == parent_of(served.otel.span("tasks/get")) == id_of(outer)
    assert (failed.status.is_ok, attributes_of(failed)["error.type"]) == (False, "unreachable")


def test_a_request_without_a_caller_is_measured_but_has_no_span() -> None:
    served = Served()
    served.span.replied({})  # its children may continue
    sent = served.otel.links.begin(request("ping"))
    sent.answered({})
    assert dict(sent.meta) == {}
    assert [span.name for span in served.otel.spans] == ["tools/call execute_tool"]
    (point,) = served.otel.points("mcp.client.operation.duration")
    assert attributes_of(point)["mcp.method.name"] == "ping"


@pytest.mark.parametrize(
    ("method", "params", "name", "told"),
    [
        ("prompts/get", {"name": "greet"}, "prompts/get greet", {"gen_ai.prompt.name": "greet"}),
        (
            "resources/read",
            {"uri": "https://ann:pw@files.test/a?token=secret"},
            "resources/read",
            {"mcp.resource.uri": "https://files.test/a?token=***"},
        ),
        (
            "resources/read",
            {"uri": f"https://ann:{'secret' * 1000}@files.test/a"},
            "resources/read",
            {"mcp.resource.uri": "https://"},
        ),
        ("tools/list", {}, "tools/list", {}),
    ],
)
def test_a_span_names_its_subject_without_secrets(method: str, params: JsonObject, name: str, told: JsonObject) -> None:
    served = Served()
    served.otel.links.begin(request(method, CalledServer(name="files"), **params)).answered({})
    attributes = attributes_of(served.otel.span(name))
    assert attributes.items() >= told.items()
    assert attributes["network.transport"] == "pipe"
    assert "secret" not in repr(attributes)


@pytest.mark.parametrize(
    ("callee", "told"),
    [
        (CalledServer(name="mail"), {"network.transport": "pipe"}),
        (
            CalledServer(name="mail", address="/run/mail.sock", is_socket=True),
            {"network.transport": "unix", "network.protocol.name": "http", "server.address": "/run/mail.sock"},
        ),
    ],
    ids=["a program", "a Unix socket"],
)
def test_a_span_names_the_transport_and_address_of_its_server(callee: CalledServer, told: JsonObject) -> None:
    served = Served()
    served.otel.links.begin(request("tools/list", callee)).answered({})
    attributes = attributes_of(served.otel.span("tools/list"))
    assert {key: value for key, value in attributes.items() if key.startswith(("network", "server"))} == told


async def test_durations_in_spans_and_metrics_use_the_clock() -> None:
    served = Served()
    sent = served.otel.links.begin(request("tools/call", name="send"))
    await served.clock.advance(90)
    await asyncio.sleep(0)
    sent.failed("-32000", -32000)
    served.otel.links.link_ended(MAIL, "2026-07-28", 300.0)
    (point,) = served.otel.points("mcp.client.operation.duration")
    assert (point.count, point.sum) == (1, 90.0)
    assert attributes_of(point)["rpc.response.status_code"] == "-32000"
    assert attributes_of(point)["gen_ai.tool.name"] == "other"  # the tool may not exist
    (point,) = served.otel.points("mcp.client.session.duration")
    assert (point.sum, attributes_of(point)["emceepee.server"]) == (300.0, "mail")

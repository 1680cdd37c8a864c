"""Callers' trace contexts reach servers, and a trace shows scripts with all their calls."""

import pytest

from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.backends.task_backend import TaskBackend
from support.fakes.clock import FakeClock, settle
from support.fakes.otel_recorder import OtelRecorder, id_of, parent_of
from support.sessions.scene import a_scene
from support.sessions.scripts import issue_tracker

TRACE: JsonObject = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}


def caller_in(meta: JsonObject) -> RequestContext:
    return RequestContext(Request(1, "tools/call", {"_meta": meta}))


@pytest.mark.parametrize(
    ("tool", "method", "arguments"),
    [
        ("execute_tool", "tools/call", {"tool": "echo"}),
        ("read_resource", "resources/read", {"uri": "file:///a"}),
        ("get_prompt", "prompts/get", {"name": "greet"}),
    ],
)
async def test_the_trace_context_of_a_caller_reaches_the_server_even_with_tracing_off(
    tool: str, method: str, arguments: JsonObject
) -> None:
    backend = ScriptedBackend()
    backend.answers[method] = lambda _: {}
    async with a_scene(one=backend) as scene:
        told = TRACE | {"baggage": "x" * 10_000, "progressToken": 5, "other": 1}
        await scene.call(tool, caller=caller_in(told), server="one", **arguments)
        await scene.call(tool, caller=caller_in({"other": 1}), server="one", **arguments)
    with_trace, without = (params for asked, params in backend.seen if asked == method)
    assert with_trace["_meta"] == TRACE
    assert "_meta" not in without


async def test_a_backend_task_carries_the_trace_context() -> None:
    backend = TaskBackend()
    async with a_scene(one=backend) as scene:
        call = scene.start("execute_tool", caller=caller_in(TRACE), server="one", tool="required", timeout_ms=10)
        await backend.begin_asked()
        await settle()
        await scene.clock.advance(0.01)
        await call
        assert backend.task.call["_meta"].items() > TRACE.items()
        assert "progressToken" in backend.task.call["_meta"]


async def test_the_calls_of_a_script_belong_to_its_trace() -> None:
    otel = OtelRecorder(FakeClock())
    async with a_scene(observers=(otel.requests,), tracker=issue_tracker()) as scene:
        code = "mcp.call_tool('tracker', 'read_text', {})\nmcp.call_tool('tracker', 'create-issue', {'title': 'x'})"
        request = Request(1, "tools/call", {"name": "codemode_execute", "_meta": TRACE})
        await scene.call("codemode_execute", caller=RequestContext(request), code=code)
    script = otel.span("tools/call codemode_execute")
    parts = [otel.span("execute_tool read_text"), otel.span("execute_tool create-issue")]
    assert {parent_of(part) for part in parts} == {id_of(script)}
    assert parent_of(script) == int(str(TRACE["traceparent"]).split("-")[2], 16)

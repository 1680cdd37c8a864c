"""A trace through caller, emceepee, and server, assembled by a collector from the spans of each."""

import json
import socket
import sys
from asyncio import create_subprocess_exec, gather, subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import pytest_asyncio
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from support.callers.http_process import HttpCaller, HttpProcess, http_process
from support.server_programs.asking_servers import MODULE_PATH
from support.system.otlp_collector import OtlpCollector, an_otlp_collector
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
PROGRAM = ("-m", "support.server_programs.traced_server")
SECRET = "nobody-else-is-to-read-this"


def program_environment(collector: OtlpCollector) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **MODULE_PATH}


@asynccontextmanager
async def traced_http_server(collector: OtlpCollector) -> AsyncIterator[str]:
    process = await create_subprocess_exec(
        *(sys.executable, *PROGRAM, "http"), stdout=subprocess.PIPE, env=program_environment(collector)
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(await process.stdout.readline())}/mcp"
    finally:
        process.terminate()
        await process.wait()


@dataclass(frozen=True, slots=True)
class TracedWorld:
    """emceepee between two servers and a collector."""

    collector: OtlpCollector
    endpoint: HttpProcess
    tracers: TracerProvider
    callers: dict[str, HttpCaller]  # by era; each has servers of its own

    def begin(self, name: str) -> tuple[trace.Span, dict[str, str]]:
        """A span of the caller, and how it tells of it."""
        span = self.tracers.get_tracer("tests").start_span(name)
        said: dict[str, str] = {}
        TraceContextTextMapPropagator().inject(said, trace.set_span_in_context(span))
        return span, said

    async def call(self, caller: HttpCaller, said: dict[str, Any], tool: str, /, **arguments: Any) -> dict[str, Any]:
        answer = await caller.request("tools/call", {"name": tool, "arguments": arguments, "_meta": said})
        return dict(answer["result"])

    def has_measured(self, metric: str) -> bool:
        return bool(self.collector.of_metric(metric))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[TracedWorld]:
    async with an_otlp_collector() as collector, traced_http_server(collector) as url:
        tracers = TracerProvider(resource=Resource.create({"service.name": "caller"}), shutdown_on_exit=False)
        exporter = OTLPSpanExporter(f"{collector.url}/v1/traces")
        tracers.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50))
        async with http_process("--otel", env=collector.env) as endpoint:
            setup = await endpoint.caller()
            program = {
                "command": sys.executable,
                "args": list(PROGRAM),
                "env": program_environment(collector),
            }
            modes = ("legacy", "2026-07-28")
            await gather(
                *(setup.value("add_server", name=f"http-{mode}", url=url, mode=mode) for mode in modes),
                *(setup.value("add_server", name=f"pipe-{mode}", mode=mode, **program) for mode in modes),
            )
            yield TracedWorld(collector, endpoint, tracers, {"handshake": setup, "modern": endpoint.modern()})
            tracers.shutdown()


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("server", ["http-legacy", "http-2026-07-28", "pipe-legacy", "pipe-2026-07-28"])
async def test_a_trace_connects_caller_and_server(world: TracedWorld, era: str, server: str) -> None:
    span, said = world.begin("ask")
    result = await world.call(
        world.callers[era], said, "execute_tool", server=server, tool="context", args={"key": SECRET}
    )
    span.end()
    asked = await world.collector.span("caller", "ask", said["traceparent"].split("-")[1])
    served = await world.collector.span("emceepee", "tools/call execute_tool", asked.trace_id)
    sent = await world.collector.span("emceepee", "tools/call context", asked.trace_id)
    done = await world.collector.span("backend", "tools/call context", asked.trace_id)
    assert (served.kind, sent.kind, done.kind) == ("SERVER", "CLIENT", "SERVER")
    assert (served.parent_id, sent.parent_id, done.parent_id) == (asked.span_id, served.span_id, sent.span_id)
    assert not any(each.is_error for each in (served, sent, done))

    told = json.loads(result["content"][0]["text"])
    assert told["meta"]["traceparent"].split("-")[1:3] == [asked.trace_id, sent.span_id]
    assert told["headers"] == (told["meta"] if server.startswith("http") else {})

    version = "2026-07-28" if era == "modern" else "2025-11-25"
    assert served.attributes.items() >= {
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", version),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "execute_tool"),
        ("network.transport", "tcp"),
        ("emceepee.server", server),
    }
    assert served.attributes["jsonrpc.request.id"].isdecimal()
    assert len(served.attributes["mcp.session.id"]) == 26
    assert sent.attributes["jsonrpc.request.id"] == done.attributes["jsonrpc.request.id"]
    assert sent.attributes["mcp.protocol.version"] == done.attributes["mcp.protocol.version"]
    assert sent.attributes["network.transport"] == ("tcp" if server.startswith("http") else "pipe")
    assert ("server.address" in sent.attributes) == server.startswith("http")
    assert SECRET not in repr(world.collector.spans)


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_failing_call_is_an_error_in_every_span_of_its_trace(world: TracedWorld, era: str) -> None:
    span, said = world.begin("fail")
    await world.call(world.callers[era], said, "execute_tool", server="http-2026-07-28", tool="fail")
    span.end()
    trace_id = said["traceparent"].split("-")[1]
    for service, name in (
        ("emceepee", "tools/call execute_tool"),
        ("emceepee", "tools/call fail"),
        ("backend", "tools/call fail"),
    ):
        found = await world.collector.span(service, name, trace_id)
        assert (found.is_error, found.attributes["error.type"], found.status_message) == (True, "tool_error", "")


@pytest.mark.parametrize("era", ["handshake", "modern"])
@pytest.mark.parametrize("tool", ["context", "fail"])
async def test_a_call_that_became_a_task_ends_in_its_original_trace(world: TracedWorld, era: str, tool: str) -> None:
    span, said = world.begin("begin")
    caller = world.callers[era]
    arguments = {"server": "pipe-2026-07-28", "tool": tool, "timeout_ms": 0}
    promoted = await world.call(caller, said, "execute_tool", **arguments)
    task = promoted["structuredContent"]["proxy_task"]["task_id"]
    span.end()
    await caller.call("get_task_result", task_id=task)
    trace_id = said["traceparent"].split("-")[1]
    served = await world.collector.span("emceepee", "tools/call execute_tool", trace_id)
    sent = await world.collector.span("emceepee", f"tools/call {tool}", trace_id)
    done = await world.collector.span("backend", f"tools/call {tool}", trace_id)
    assert (sent.parent_id, done.parent_id) == (served.span_id, sent.span_id)
    assert (served.is_error, served.attributes["emceepee.task.id"]) == (False, task)  # it was answered with a task
    assert sent.is_error == (tool == "fail")


async def test_a_trace_header_applies_if_the_message_has_no_trace_context(world: TracedWorld) -> None:
    _, said = world.begin("header")
    caller = world.endpoint.modern(traceparent=said["traceparent"])
    await caller.value("list_servers")
    served = await world.collector.span("emceepee", "tools/call list_servers", said["traceparent"].split("-")[1])
    assert served.parent_id == said["traceparent"].split("-")[2]


async def test_an_invalid_trace_context_starts_a_new_trace(world: TracedWorld) -> None:
    caller = await world.endpoint.caller()
    await world.call(caller, {"traceparent": "00-zz-1-01", "tracestate": 5}, "list_timers")
    assert (await world.collector.span("emceepee", "tools/call list_timers")).parent_id == ""


async def test_an_unreachable_server_is_reported_with_its_error_type(world: TracedWorld) -> None:
    _, said = world.begin("nowhere")
    await world.call(world.callers["handshake"], said, "execute_tool", server="nowhere", tool="x")
    served = await world.collector.span("emceepee", "tools/call execute_tool", said["traceparent"].split("-")[1])
    assert (served.is_error, served.attributes["error.type"]) == (True, "tool_error")


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_rejected_call_is_an_error_with_its_code_and_without_the_tool_name(
    world: TracedWorld, era: str
) -> None:
    _, said = world.begin("refused")
    params = {"name": SECRET, "arguments": {"key": SECRET}, "_meta": said}
    await world.callers[era].request("tools/call", params)
    served = await world.collector.span("emceepee", "tools/call", said["traceparent"].split("-")[1])
    assert (served.kind, served.is_error, served.status_message) == ("SERVER", True, "")
    assert served.attributes.items() >= {
        ("gen_ai.tool.name", "other"),
        ("error.type", "-32602"),
        ("rpc.response.status_code", "-32602"),
    }
    assert SECRET not in repr(world.collector.spans)


async def test_durations_are_measured_under_the_names_of_the_semantic_conventions(world: TracedWorld) -> None:
    caller = await world.endpoint.caller()
    await caller.call("execute_tool", server="http-legacy", tool="context")
    await caller.end()
    durations = ("mcp.server.operation", "mcp.client.operation", "mcp.server.session")
    for name in durations:
        await eventually(partial(world.has_measured, f"{name}.duration"), what=name)
    (served,) = [
        point
        for point in world.collector.of_metric("mcp.server.operation.duration")
        if point.attributes.get("gen_ai.tool.name") == "execute_tool"
        and point.attributes["emceepee.server"] == "http-legacy"
        and "error.type" not in point.attributes
        and point.attributes["mcp.protocol.version"] == "2025-11-25"
    ]
    assert (served.unit, served.bounds[0], served.bounds[-1]) == ("s", 0.01, 300.0)
    assert "mcp.session.id" not in served.attributes
    assert "jsonrpc.request.id" not in served.attributes


async def test_a_silent_collector_delays_no_call() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with http_process("--otel", env={"OTEL_EXPORTER_OTLP_ENDPOINT": url}) as endpoint:
            caller = await endpoint.caller()
            await caller.value("list_servers")
    assert "telemetry_not_sent" in endpoint.log[-1]

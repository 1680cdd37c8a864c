"""A server that is traced by the SDK it is made with, and not by anything of ours: its spans go to a collector.

`python -m support.server_programs.traced_server` speaks stdio; with `http` it serves 127.0.0.1 and prints its port.
OTEL_EXPORTER_OTLP_ENDPOINT says where the collector is.
"""

import json
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from support.server_programs.sdk_transports import serve

Context = ServerRequestContext[Any]
TRACE_HEADERS = ("traceparent", "tracestate", "baggage")


async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    names = ("context", "fail")
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in names])


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    """`context` says what came with the request of the context of its trace."""
    if params.name == "fail":
        return types.CallToolResult(content=[types.TextContent(type="text", text="no")], is_error=True)
    headers = getattr(ctx.request, "headers", {})
    told = {
        "meta": {key: value for key, value in (ctx.meta or {}).items() if key in TRACE_HEADERS},
        "headers": {key: headers[key] for key in TRACE_HEADERS if key in headers},
    }
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(told))])


def build() -> Server[Any]:
    return Server("traced", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


if __name__ == "__main__":
    tracers = TracerProvider(resource=Resource.create({"service.name": "backend"}))
    tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(tracers)
    serve(build())

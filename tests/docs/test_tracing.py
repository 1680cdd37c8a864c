"""The commands of the OpenTelemetry page run, and the collector receives the printed spans."""

import json
import sys

from support.callers.http_process import http_process
from support.documentation import ROOT, Page
from support.system.otlp_collector import an_otlp_collector

PAGE = Page(ROOT / "docs" / "how-to" / "trace-with-opentelemetry.md")


def block(language: str, label: str = "") -> str:
    (found,) = [each.body for each in PAGE.blocks() if (each.language, each.label) == (language, label)]
    return found


async def test_the_collector_receives_the_trace_printed_on_the_page() -> None:
    variable, usual = block("text", "environment").strip().split("=")
    program, *words = block("sh").split()
    assert (program, usual) == ("emceepee", "http://127.0.0.1:4318")
    params = json.loads(block("text", "request"))
    shown = [line.split("   ")[0] for line in block("text", "spans").splitlines()]
    _, trace_id, parent, _ = params["_meta"]["traceparent"].split("-")
    async with an_otlp_collector() as collector:
        async with http_process(command=tuple(words), env=collector.env | {variable: collector.url}) as endpoint:
            caller = await endpoint.caller()
            await caller.value("add_server", name="demo", command=sys.executable, args=["-m", "emceepee.demo"])
            assert (await caller.request("tools/call", params))["result"]["content"][0]["text"] == "2 + 40 = 42"
        for name in shown:  # what was left to send was sent before emceepee had ended
            span = next(span for span in collector.spans if (span.name, span.trace_id) == (name, trace_id))
            assert span.parent_id == parent
            parent = span.span_id
        assert collector.resources[0]["service.name"] == "emceepee"
        told = {point.metric for point in collector.points}
        assert told <= set(PAGE.text.split("`"))
        assert len(told) == 4

"""A collector in the test's own process: what comes by OTLP over HTTP is decoded and kept."""

import gzip
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from support.system.web_application import running_application
from support.waiting import eventually

BOUND = 30.0
PROTOBUF = "application/x-protobuf"


@dataclass(frozen=True, slots=True)
class CollectedSpan:
    """One span, and who sent it."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_error: bool
    status_message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CollectedPoint:
    """One series of a histogram."""

    metric: str
    unit: str
    attributes: dict[str, Any]
    count: int
    bounds: list[float]


class OtlpCollector:
    """`url` is what OTEL_EXPORTER_OTLP_ENDPOINT is to be."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[CollectedSpan] = []
        self.points: list[CollectedPoint] = []
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def env(self) -> dict[str, str]:
        """For a process that is to send all it has at once."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_METRIC_EXPORT_INTERVAL": "200",
        }

    async def span(self, service: str, name: str, trace_id: str | None = None) -> CollectedSpan:
        """The only one of that name, as soon as it has come."""

        def found() -> list[CollectedSpan]:
            return [
                span
                for span in self.spans
                if (span.service, span.name) == (service, name) and trace_id in (None, span.trace_id)
            ]

        await eventually(lambda: bool(found()), what=f"the span {name} of {service}", within=BOUND)
        (only,) = found()
        return only

    def of_metric(self, name: str) -> list[CollectedPoint]:
        """Return the latest points of a metric."""
        latest: dict[str, CollectedPoint] = {}
        for point in self.points:
            if point.metric == name:
                latest[repr(sorted(point.attributes.items()))] = point
        return list(latest.values())

    async def take_traces(self, request: web.Request) -> web.Response:
        message = ExportTraceServiceRequest.FromString(await self._body(request))
        for resource in message.resource_spans:
            about = plain(resource.resource.attributes)
            self.resources.append(about)
            for scope in resource.scope_spans:
                self.spans += [_span(about["service.name"], span) for span in scope.spans]
        return web.Response(body=ExportTraceServiceResponse().SerializeToString(), content_type=PROTOBUF)

    async def take_metrics(self, request: web.Request) -> web.Response:
        message = ExportMetricsServiceRequest.FromString(await self._body(request))
        for resource in message.resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.points += [
                        CollectedPoint(
                            metric.name,
                            metric.unit,
                            plain(point.attributes),
                            point.count,
                            list(point.explicit_bounds),
                        )
                        for point in metric.histogram.data_points
                    ]
        return web.Response(body=ExportMetricsServiceResponse().SerializeToString(), content_type=PROTOBUF)

    async def _body(self, request: web.Request) -> bytes:
        assert request.content_type == PROTOBUF, request.content_type
        self.headers.append(dict(request.headers))
        body = await request.read()
        return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


@asynccontextmanager
async def an_otlp_collector() -> AsyncIterator[OtlpCollector]:
    collector = OtlpCollector()
    app = web.Application()
    app.add_routes([web.post("/v1/traces", collector.take_traces), web.post("/v1/metrics", collector.take_metrics)])
    async with running_application(app) as port:
        collector.url = f"http://127.0.0.1:{port}"
        yield collector


def plain(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, str(pair.value.WhichOneof("value"))) for pair in pairs}


def _span(service: str, span: Span) -> CollectedSpan:
    return CollectedSpan(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes=plain(span.attributes),
        is_error=span.status.code == Status.StatusCode.STATUS_CODE_ERROR,
        status_message=span.status.message,
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )

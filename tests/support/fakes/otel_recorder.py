"""OpenTelemetry that goes nowhere: spans and figures are kept in memory."""

from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from emceepee.clock import Clock
from emceepee.telemetry.otel.instruments import Instruments
from emceepee.telemetry.otel.link_tracer import LinkTracer
from emceepee.telemetry.otel.request_tracer import RequestTracer


class OtelRecorder:
    """`requests` and `links` are what emceepee observes with."""

    def __init__(self, clock: Clock) -> None:
        self._exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider(shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer, self.instruments = tracers.get_tracer("tests"), Instruments(meters.get_meter("tests"))
        self.requests = RequestTracer(self.tracer, self.instruments)
        self.links = LinkTracer(self.tracer, self.instruments, clock)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Return the spans that have ended, in the order of their ends."""
        return self._exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        """The only one of that name that has ended."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def points(self, metric: str) -> list[HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        found = [
            found
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
        ]
        return [point for each in found for point in each.data.data_points if isinstance(point, HistogramDataPoint)]


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return int(context.span_id)


def attributes_of(found: ReadableSpan | HistogramDataPoint) -> dict[str, Any]:
    return dict(found.attributes or {})

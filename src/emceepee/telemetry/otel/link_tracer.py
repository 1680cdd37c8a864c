"""A request to a server as a span, with its trace context propagated to the server."""

from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.trace import Tracer

from emceepee.clock import Clock
from emceepee.telemetry import spans
from emceepee.telemetry.link_observer import CalledServer, OutgoingRequest
from emceepee.telemetry.otel import conventions as names
from emceepee.telemetry.otel.conventions import Attributes
from emceepee.telemetry.otel.instruments import Instruments
from emceepee.telemetry.otel.request_tracer import end_span, failure_attributes, traced
from emceepee.telemetry.otel.trace_context import words_of
from emceepee.wire.json_types import JsonObject


class LinkTracer:
    """Observes all links of a process. emceepee's own requests are measured but have no span."""

    def __init__(self, tracer: Tracer, instruments: Instruments, clock: Clock) -> None:
        self._tracer, self._instruments, self._clock = tracer, instruments, clock

    def begin(self, request: OutgoingRequest) -> "TracedSending":
        name, about = names.subject(request.method, request.params)
        about |= _about_callee(request.callee, request.protocol_version)
        cause = traced(spans.current())
        if cause is None:
            return TracedSending(self._instruments, about, None, {}, self._clock)
        span = self._tracer.start_span(name, cause.context, trace.SpanKind.CLIENT, about)
        meta = words_of(trace.set_span_in_context(span, cause.context))
        return TracedSending(self._instruments, about, span, meta, self._clock)

    def link_ended(self, callee: CalledServer, protocol_version: str, seconds: float) -> None:
        self._instruments.record_link(seconds, _about_callee(callee, protocol_version))


class TracedSending:
    """One request until its answer."""

    __slots__ = ("_about", "_began", "_clock", "_instruments", "_span", "meta")

    def __init__(
        self,
        instruments: Instruments,
        about: Attributes,
        span: trace.Span | None,
        meta: Mapping[str, str],
        clock: Clock,
    ) -> None:
        self._instruments, self._about, self._span, self._clock = instruments, about, span, clock
        self.meta = meta
        self._began = clock.monotonic()

    @property
    def headers(self) -> Mapping[str, str]:
        return self.meta

    def number(self, number: int) -> None:
        if self._span is not None:
            self._span.set_attribute(names.REQUEST_ID, str(number))

    def answered(self, result: JsonObject) -> None:
        self._end(failure_attributes(names.TOOL_ERROR if result.get("isError") else None, None))

    def failed(self, why: str, code: int | None) -> None:
        self._end(failure_attributes(why, code))

    def _end(self, failure: Attributes) -> None:
        if self._span is not None:
            end_span(self._span, failure)
        self._instruments.record_outgoing(self._clock.monotonic() - self._began, self._about | failure)


def _about_callee(callee: CalledServer, protocol_version: str) -> Attributes:
    about: Attributes = {names.BACKEND: callee.name, names.PROTOCOL_VERSION: protocol_version}
    if callee.address is None:
        return about | {names.TRANSPORT: names.PIPE}
    about[names.TRANSPORT] = names.UNIX if callee.is_socket else names.TCP
    about |= {names.APPLICATION_PROTOCOL: "http", names.SERVER_ADDRESS: callee.address}
    return about if callee.port is None else about | {names.SERVER_PORT: callee.port}

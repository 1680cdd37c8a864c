"""A caller's request as a span, from its arrival to its reply, even if the reply is a task that continues."""

import sys

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import StatusCode, Tracer

from emceepee.errors import ErrorCode
from emceepee.telemetry.journal import BegunRequest, SpanObserver, SpanOwner
from emceepee.telemetry.otel import conventions as names
from emceepee.telemetry.otel.conventions import Attributes
from emceepee.telemetry.otel.instruments import Instruments
from emceepee.telemetry.otel.trace_context import context_of
from emceepee.telemetry.spans import Span, SpanKind, SpanStatus, SpanWatch
from emceepee.wire.json_types import JsonObject

_UNSEEN = SpanWatch()
_NAMED_BY_CALLER = (SpanKind.UNKNOWN_TOOL, SpanKind.PROTOCOL)  # so the target may not exist


class RequestTracer(SpanObserver):
    """Observes all requests of a process."""

    def __init__(self, tracer: Tracer, instruments: Instruments) -> None:
        self._tracer, self._instruments = tracer, instruments

    def begin(self, begun: BegunRequest) -> SpanWatch:
        if begun.origin is not None:
            return self._begin_request(begun)
        parent = traced(begun.parent)
        return _UNSEEN if parent is None else self._begin_part(begun.span, parent)

    def session_ended(self, owner: SpanOwner, seconds: float) -> None:
        self._instruments.record_session(seconds)

    def _begin_request(self, begun: BegunRequest) -> "TracedRequest":
        assert begun.origin is not None  # `begin` checked it
        request, version = begun.origin.request, begun.origin.protocol_version
        is_there = begun.span.kind not in _NAMED_BY_CALLER
        name, about = names.subject(names.known_method(request.method), request.params, is_there=is_there)
        is_http = begun.origin.headers is not None
        about[names.TRANSPORT] = names.TCP if is_http else names.PIPE
        if is_http:
            about[names.APPLICATION_PROTOCOL] = "http"
        if version is not None:
            about[names.PROTOCOL_VERSION] = names.known_version(version)
        if begun.span.server is not None:
            about[names.BACKEND] = begun.span.server
        also: Attributes = {names.REQUEST_ID: str(request.request_id)[: names.LONGEST_NAME]}
        if begun.owner.session_id:
            also[names.SESSION_ID] = begun.owner.session_id
        context = context_of(begun.origin)
        span = self._tracer.start_span(name, context, trace.SpanKind.SERVER, about | also)
        return TracedRequest(span, context, about, self._instruments)

    def _begin_part(self, begun: Span, parent: "TracedRequest") -> "TracedRequest":
        """Begin the span of a request that is part of another, such as a script's call.

        No caller sent it, so it is not counted among callers' requests.
        """
        about: Attributes = {names.OPERATION: names.EXECUTE_TOOL}
        name = names.EXECUTE_TOOL
        if begun.kind in (SpanKind.TOOL_CALL, SpanKind.OWN_TOOL):
            about[names.TOOL] = begun.name
            name = f"{name} {begun.name}"
        if begun.server is not None:
            about[names.BACKEND] = begun.server
        span = self._tracer.start_span(name, parent.context, trace.SpanKind.INTERNAL, about)
        return TracedRequest(span, parent.context, about, None)


class TracedRequest(SpanWatch):
    """A traced request. `context` is the trace context for its work, even after it was answered."""

    __slots__ = ("_about", "_instruments", "_span", "context")

    def __init__(self, span: trace.Span, context: Context, about: Attributes, instruments: Instruments | None) -> None:
        self._span: trace.Span | None = span
        self.context = trace.set_span_in_context(span, context)
        self._about, self._instruments = about, instruments

    def became_task(self, span: Span) -> None:
        if self._span is not None and span.task_id is not None:
            self._span.set_attribute(names.TASK_ID, span.task_id)
        self._end(span, None, None)

    def ended(self, span: Span, result: JsonObject | None) -> None:
        if span.status is SpanStatus.CANCELLED:
            self._end(span, names.CANCELLED, None)
        elif span.status is not SpanStatus.ERROR:
            self._end(span, None, None)
        elif result is not None:
            self._end(span, names.TOOL_ERROR, None)
        else:
            self._end(span, *_failure(sys.exception()))

    def _end(self, span: Span, error: str | None, code: int | None) -> None:
        ending, self._span = self._span, None
        if ending is None:
            return  # it was answered with a task that has now ended
        failure = failure_attributes(error, code)
        end_span(ending, failure)
        if self._instruments is not None:
            seconds = span.elapsed() if span.ended is None else span.ended
            self._instruments.record_incoming(seconds, self._about | failure, was_server_asked=bool(span.phases))


def traced(span: Span | None) -> TracedRequest | None:
    """Return the trace of a request while it lasts, if it has one."""
    watches = () if span is None else span.watches
    return next((watch for watch in watches if isinstance(watch, TracedRequest)), None)


def failure_attributes(error: str | None, code: int | None) -> Attributes:
    told: Attributes = {} if error is None else {names.ERROR_TYPE: error}
    return told if code is None else told | {names.STATUS_CODE: str(code)}


def end_span(span: trace.Span, failure: Attributes) -> None:
    """End the span. Error messages are not exported: they may quote arguments or be part of a result."""
    if failure:
        span.set_attributes(failure)
        span.set_status(StatusCode.ERROR)
    span.end()


def _failure(error: BaseException | None) -> tuple[str, int | None]:
    """Return the type of the error on its way to the caller, and its code if it is a JSON-RPC error."""
    code = getattr(error, "code", None)
    if isinstance(code, int):
        return str(code), code
    return (str(code) if isinstance(code, ErrorCode) else names.UNKNOWN_ERROR), None

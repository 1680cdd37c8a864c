"""Trace context on the wire: in `_meta` of a request, or in HTTP headers."""

from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from emceepee.telemetry.journal import RequestOrigin
from emceepee.wire.json_rpc import TRACE_KEYS, trace_context

_PROPAGATOR = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


def context_of(origin: RequestOrigin) -> Context:
    """Return the caller's trace context: from the message, or else from the HTTP headers."""
    said = trace_context(origin.request.params)
    if said is None:
        found = {key: (origin.headers or {}).get(key.encode()) for key in TRACE_KEYS}
        said = {key: value.decode("latin-1") for key, value in found.items() if value is not None}
    return _PROPAGATOR.extract(said, context=Context())


def words_of(context: Context) -> dict[str, str]:
    """Return the fields that propagate the context to a server."""
    said: dict[str, str] = {}
    _PROPAGATOR.inject(said, context=context)
    return said

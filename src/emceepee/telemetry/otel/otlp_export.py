"""Export of traces and metrics by OTLP over HTTP, configured by OpenTelemetry's environment variables."""

import asyncio
import logging
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import MeterProvider as AnyMeterProvider
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import NoOpTracerProvider
from opentelemetry.trace import TracerProvider as AnyTracerProvider

from emceepee import __version__
from emceepee.clock import Clock
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.otel.instruments import Instruments
from emceepee.telemetry.otel.link_tracer import LinkTracer
from emceepee.telemetry.otel.request_tracer import RequestTracer

log = EventLog("otel")
FLUSH_SECONDS = 3.0  # for unsent data when emceepee stops
PAUSE_SECONDS = 60.0
LONGEST_MESSAGE = 400
# These loggers quote data from callers.
_ABOUT_CALLERS = re.compile(r"opentelemetry\.(baggage|trace\.propagation|trace\.span)(\.|$)")
_SCOPE = "emceepee"
_NOTHING = "none"  # as the name of an exporter


class Export:
    """Observes the requests of a process and exports them in its own threads."""

    def __init__(self, clock: Clock) -> None:
        self._close: list[Callable[[], None]] = []
        resource = _resource()
        tracer = self._tracers(resource).get_tracer(_SCOPE, __version__)
        instruments = Instruments(self._meters(resource).get_meter(_SCOPE, __version__))
        self.requests = RequestTracer(tracer, instruments)
        self.links = LinkTracer(tracer, instruments, clock)

    def _tracers(self, resource: Resource) -> AnyTracerProvider:
        if os.environ.get("OTEL_TRACES_EXPORTER") == _NOTHING:
            return NoOpTracerProvider()
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._close.append(provider.shutdown)
        return provider

    def _meters(self, resource: Resource) -> AnyMeterProvider:
        if os.environ.get("OTEL_METRICS_EXPORTER") == _NOTHING:
            return NoOpMeterProvider()
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        provider = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._close.append(provider.shutdown)
        return provider

    async def close(self) -> None:
        """Send the remaining data, with a short time limit: an unreachable collector must not delay the shutdown."""
        loop = asyncio.get_running_loop()
        closing = [_in_thread(close, loop) for close in self._close]
        if closing:
            _, left = await asyncio.wait(closing, timeout=FLUSH_SECONDS)
            if left:
                log.warning("telemetry_not_sent", seconds=FLUSH_SECONDS)


def _in_thread(work: Callable[[], None], loop: asyncio.AbstractEventLoop) -> "asyncio.Future[None]":
    """Run the work in a daemon thread: the exit would wait for a thread of the event loop's executor."""
    done: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not done.done():
            done.set_result(None)

    def run() -> None:
        try:
            work()
        finally:
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name="otel-close", daemon=True).start()
    return done


def _resource() -> Resource:
    """Return the resource attributes; the operator's take precedence."""
    said = OTELResourceDetector().detect().attributes
    own = {"service.name": "emceepee", "service.version": __version__, "service.instance.id": secrets.token_hex(8)}
    return Resource.create({key: value for key, value in own.items() if key not in said})


class LibraryLogHandler(logging.Handler):
    """Passes on the first message of each minute, with the number of messages suppressed since the last one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(lambda record: _ABOUT_CALLERS.match(record.name) is None)
        self._clock, self._next, self._left_out = clock, clock.monotonic(), 0

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock.monotonic()
        if now < self._next:
            self._left_out += 1
            return
        log.warning("telemetry_trouble", message=record.getMessage()[:LONGEST_MESSAGE], leftOut=self._left_out)
        self._next, self._left_out = now + PAUSE_SECONDS, 0


@contextmanager
def library_logs(clock: Clock) -> Iterator[None]:
    logger, handler = logging.getLogger("opentelemetry"), LibraryLogHandler(clock)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)

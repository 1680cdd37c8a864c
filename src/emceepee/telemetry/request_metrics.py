"""Counts and durations of requests by outcome: recorded as they end, reported on demand."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from emceepee.telemetry.journal import BegunRequest, SpanObserver
from emceepee.telemetry.label_values import OTHER, LabelValues
from emceepee.telemetry.spans import Span, SpanKind, SpanStatus, SpanWatch
from emceepee.wire.json_types import JsonObject

# Seconds. The last ones are for tasks, which may take half an hour.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
MOST_SERVERS = 100  # with their own label value; configurations hardly ever have so many servers
MOST_NAMES_PER_SERVER = 100  # so that one server, or a caller that invents names, leaves room for the others
MOST_SERIES = 1000


class Series:
    """The requests of one kind, server and name."""

    __slots__ = ("buckets", "kind", "name", "seconds", "server", "statuses")

    def __init__(self, kind: SpanKind, server: str, name: str) -> None:
        self.kind, self.server, self.name = kind, server, name
        self.statuses: dict[SpanStatus, int] = {}
        self.seconds = 0.0
        self.buckets = [0] * (len(BOUNDS) + 1)


class RequestMetrics(SpanWatch, SpanObserver):
    """Observes all requests of a process. It stores nothing per request, so one object watches them all."""

    __slots__ = ("_known", "_names", "_series", "_servers")

    def __init__(self, servers: Iterable[str] = ()) -> None:
        """`servers` always have their own label values, even after many other names."""
        self._servers = LabelValues(MOST_SERVERS)
        for server in servers:
            self._servers.value_of(server)
        self._names: dict[tuple[SpanKind, str], LabelValues] = {}
        self._series: dict[tuple[SpanKind, str, str], Series] = {}
        self._known: dict[tuple[SpanKind, str | None, str], Series] = {}  # by their original names

    def __iter__(self) -> Iterator[Series]:
        return iter(list(self._series.values()))

    def begin(self, begun: BegunRequest) -> SpanWatch:
        return self

    def ended(self, span: Span, result: JsonObject | None) -> None:
        seconds = span.ended or 0.0
        series = self._known.get((span.kind, span.server, span.name)) or self._find(span)
        series.statuses[span.status] = series.statuses.get(span.status, 0) + 1
        series.seconds += seconds
        series.buckets[bisect_left(BOUNDS, seconds)] += 1

    def _find(self, span: Span) -> Series:
        kind, is_real = span.kind, _is_real(span)
        server = "" if span.server is None else self._servers.value_of(span.server, may_be_new=is_real)
        name = "" if kind is SpanKind.RESOURCE_READ else span.name  # one name for all: there are as many as resources
        names = self._names.get((kind, server))
        if names is None:
            names = self._names[kind, server] = LabelValues(MOST_NAMES_PER_SERVER)
        shown = names.value_of(name, may_be_new=is_real and len(self._series) < MOST_SERIES)
        series = self._series.get((kind, server, shown))
        if series is None:
            series = self._series[kind, server, shown] = Series(kind, server, shown)
        if OTHER not in (server, shown) and kind is not SpanKind.RESOURCE_READ:
            self._known[kind, span.server, span.name] = series
        return series


def _is_real(span: Span) -> bool:
    """Return whether its target exists, as far as its outcome shows: callers can use any name."""
    if span.kind is SpanKind.OWN_TOOL:
        return True
    if span.kind is SpanKind.PROTOCOL or span.server is None:
        return span.status is SpanStatus.SUCCESS
    return bool(span.phases)  # its server was called, or at least connected

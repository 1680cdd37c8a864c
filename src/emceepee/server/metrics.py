"""Prometheus metrics of this process, most of them collected on request."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from emceepee import __version__
from emceepee.backends.backend_metrics import BackendMetrics
from emceepee.clock import Clock
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.state.connection.connection_state import ConnectionStatus
from emceepee.state.task import TaskStatus
from emceepee.store.commit_statistics import CommitStatistics
from emceepee.store.store import Store
from emceepee.telemetry.loop_lag import LoopLag
from emceepee.telemetry.request_metrics import BOUNDS, RequestMetrics

if TYPE_CHECKING:
    from prometheus_client import Metric

METRICS_PATH = "/metrics"
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
SHORTEST_SECONDS = 1.0  # between two scans of all sessions; an earlier request gets the same text again
_REQUEST_LABELS = ("kind", "server", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSources:
    """The sources of the metrics."""

    requests: RequestMetrics
    directory: SessionDirectory
    backends: BackendMetrics
    store: Store
    lag: LoopLag
    clock: Clock


class Metrics:
    """The metrics text of one process. The label `replica` in every line distinguishes several processes."""

    def __init__(self, sources: MetricSources, *, replica: str = "0") -> None:
        from prometheus_client import CollectorRegistry, ProcessCollector  # here: most processes export no metrics

        self._sources, self._replica = sources, replica
        self._process = ProcessCollector(registry=None)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._text, self._read_at = b"", float("-inf")

    @contextmanager
    def following(self) -> Iterator[None]:
        """Run the measurements that no other part makes, within the context."""
        self._sources.lag.start()
        try:
            yield
        finally:
            self._sources.lag.close()

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        now = self._sources.clock.monotonic()
        if now - self._read_at >= SHORTEST_SECONDS:
            self._text, self._read_at = generate_latest(self._registry), now
        return self._text

    def collect(self) -> Iterator["Metric"]:
        """Yield all metrics, as a collector of `prometheus_client`."""
        for family in (*self._own(), *self._process.collect()):
            for index, sample in enumerate(family.samples):
                family.samples[index] = sample._replace(labels={**sample.labels, "replica": self._replica})
            yield family

    def _own(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        yield from self._requests()
        yield from self._sessions()
        yield from self._happened()
        yield GaugeMetricFamily(
            "emceepee_event_loop_lag_seconds",
            "Largest lag of the event loop in the last minute.",
            value=self._sources.lag.worst,
        )
        info = GaugeMetricFamily("emceepee_build_info", "The running version.", labels=("version",))
        info.add_metric((__version__,), 1)
        yield info

    def _requests(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        count = CounterMetricFamily(
            "emceepee_requests", "Finished requests of callers.", labels=(*_REQUEST_LABELS, "status")
        )
        duration = HistogramMetricFamily(
            "emceepee_request_duration_seconds",
            "Duration of requests, from their arrival to their result.",
            labels=_REQUEST_LABELS,
        )
        bounds = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")
        for series in self._sources.requests:
            labels = (str(series.kind), series.server, series.name)
            for status, number in series.statuses.items():
                count.add_metric((*labels, str(status)), number)
            buckets = list(zip(bounds, map(float, accumulate(series.buckets)), strict=True))
            duration.add_metric(labels, buckets, series.seconds)
        yield count
        yield duration

    def _sessions(self) -> "Iterator[Metric]":
        from prometheus_client.core import GaugeMetricFamily

        sessions = self._sources.directory.sessions
        yield GaugeMetricFamily("emceepee_sessions", "Sessions held by this process.", value=len(sessions))
        yield GaugeMetricFamily(
            "emceepee_calls_in_flight",
            "Calls to servers without a result yet, including tasks.",
            value=sum(len(session.calls) for session in sessions),
        )
        yield GaugeMetricFamily(
            "emceepee_questions_waiting",
            "Questions from servers that wait for an answer.",
            value=sum(len(session.questions.open()) for session in sessions if session.questions.is_any_open),
        )
        states = Counter(connection.state.status for session in sessions for connection in session.connections)
        yield _by_value(
            "emceepee_server_connections",
            "Connections of sessions to servers.",
            "state",
            {status: states[status] for status in ConnectionStatus},
        )
        tasks = Counter(task.status for session in sessions for task in session.tasks.all())
        yield _by_value(
            "emceepee_tasks",
            "Running tasks, and stored finished tasks.",
            "status",
            {status: tasks[status] for status in TaskStatus},
        )

    def _happened(self) -> "Iterator[Metric]":
        from prometheus_client.core import CounterMetricFamily, SummaryMetricFamily

        backends = self._sources.backends
        restarts = CounterMetricFamily(
            "emceepee_server_restarts", "Restarts of servers' processes.", labels=("server",)
        )
        refreshes = CounterMetricFamily(
            "emceepee_token_refreshes", "Attempts to refresh tokens for servers, by outcome.", labels=("outcome",)
        )
        for family, counts in ((restarts, backends.restarts), (refreshes, backends.refreshes)):
            for value, number in counts.items():
                family.add_metric((value,), number)
            yield family
        figures = getattr(self._sources.store, "commit_statistics", None)  # only for engines that commit
        if isinstance(figures, CommitStatistics):
            yield SummaryMetricFamily(
                "emceepee_store_commit_duration_seconds",
                "Commits to the store, and their total duration.",
                count_value=figures.count,
                sum_value=figures.total_seconds,
            )


def _by_value(
    name: str, words: str, label: str, numbers: "dict[ConnectionStatus, int] | dict[TaskStatus, int]"
) -> "Metric":
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, words, labels=(label,))
    pairs: Iterable[tuple[str, int]] = ((str(value), number) for value, number in numbers.items())
    for value, number in pairs:
        family.add_metric((value,), number)
    return family

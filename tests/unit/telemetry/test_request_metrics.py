"""Requests are counted by kind, server, name, and status, with a limited number of series."""

from emceepee.ids import Ulids
from emceepee.telemetry.journal import Journal, SpanBudget
from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.request_metrics import (
    BOUNDS,
    MOST_NAMES_PER_SERVER,
    MOST_SERIES,
    MOST_SERVERS,
    RequestMetrics,
    Series,
)
from emceepee.telemetry.spans import PhaseKind, SpanKind, SpanStatus, phase, served
from support.fakes.clock import FakeClock

MANY = 10_000


class Requests:
    """A journal whose requests are observed."""

    def __init__(self, *servers: str) -> None:
        self.clock, self.figures = FakeClock(), RequestMetrics(servers)
        room = SpanBudget(10, (self.figures,))
        self.journal = Journal(room, self.clock, Ulids(lambda: 0), most=10, changed=lambda: None)

    def end(
        self,
        name: str,
        server: str | None = "one",
        kind: SpanKind = SpanKind.TOOL_CALL,
        *,
        is_error: bool = False,
        was_asked: bool = True,
    ) -> None:
        span = self.journal.begin(kind, name, server, {})
        if was_asked and server is not None:
            with served(span), phase(PhaseKind.CALL, server):
                pass
        span.replied({"isError": True} if is_error else {})

    def series(self, server: str = "one") -> dict[str, Series]:
        return {series.name: series for series in self.figures if series.server == server}


async def test_requests_are_counted_by_status_and_duration() -> None:
    requests = Requests()
    span = requests.journal.begin(SpanKind.TOOL_CALL, "slow", "one", {})
    with served(span), phase(PhaseKind.CALL, "one"):
        await requests.clock.advance(0.3)
    span.replied({})
    requests.end("slow", is_error=True)
    series = requests.series()["slow"]
    assert series.statuses == {SpanStatus.SUCCESS: 1, SpanStatus.ERROR: 1}
    assert (series.buckets[0], series.buckets[BOUNDS.index(0.5)], sum(series.buckets)) == (1, 1, 2)
    assert round(series.seconds, 3) == 0.3


def test_a_server_with_ten_thousand_names_uses_only_its_share_of_series() -> None:
    requests = Requests("calm")
    for number in range(MANY):
        requests.end(f"tool-{number}")
    requests.end("read", "calm")
    assert len(requests.series()) == MOST_NAMES_PER_SERVER + 1
    assert requests.series()[OTHER].statuses[SpanStatus.SUCCESS] == MANY - MOST_NAMES_PER_SERVER
    assert set(requests.series("calm")) == {"read"}


def test_request_series_are_limited_for_many_servers_with_many_tools() -> None:
    requests = Requests()
    for number in range(MANY):
        requests.end(f"tool-{number}", f"server-{number % 1000}")
    assert len({series.server for series in requests.figures}) <= MOST_SERVERS + 1
    assert len(list(requests.figures)) <= MOST_SERIES + MOST_SERVERS + 1
    assert len(requests.figures._known) <= MOST_SERIES


def test_invented_names_do_not_use_up_request_series() -> None:
    requests = Requests()
    for number in range(1000):
        requests.end(f"tool-{number}", f"server-{number}", is_error=True, was_asked=False)
        requests.end(f"method/{number}", None, SpanKind.PROTOCOL, is_error=True)
    requests.end("real", "late")
    requests.end("tools/list", None, SpanKind.PROTOCOL)
    assert set(requests.series("late")) == {"real"}
    assert set(requests.series("")) == {OTHER, "tools/list"}
    assert set(requests.series(OTHER)) == {OTHER}


def test_calls_of_unknown_tools_share_one_request_series() -> None:
    requests = Requests()
    for number in range(1000):
        requests.end(f"tool-{number}", None, SpanKind.UNKNOWN_TOOL, is_error=True)
    [series] = requests.figures
    assert (series.kind, series.name, series.statuses) == (SpanKind.UNKNOWN_TOOL, OTHER, {SpanStatus.ERROR: 1000})


def test_resource_urls_are_not_request_labels() -> None:
    requests = Requests()
    requests.end("file:///home/me/secret.txt", kind=SpanKind.RESOURCE_READ)
    requests.end("file:///home/me/other.txt", kind=SpanKind.RESOURCE_READ)
    assert requests.series()[""].statuses == {SpanStatus.SUCCESS: 2}

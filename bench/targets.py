"""The targets, and whether a run met them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.contestants import DIRECT, EMCEEPEE, RELAY
from bench.measure import context, fan_out, growth, large_results, long_run, memory, replicas, start_up, state, wake
from bench.results import Cell, Kind, Results
from bench.work import MEDIUM, SMALL, Era, Size

LONG = 1_000_000  # calls; fewer say too little about growth
SLACK_BYTES = 1 << 20  # what an allocator does by itself
_BYTES = {"KB": 1 << 10, "MB": 1 << 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One target. `found` is None if it was not measured in this run."""

    target: str
    found: float | None
    limit: float
    unit: str
    is_least: bool = False  # the limit is a least, not a most

    @property
    def holds(self) -> bool | None:
        if self.found is None:
            return None
        return self.found >= self.limit if self.is_least else self.found <= self.limit

    @property
    def word(self) -> str:
        return {True: "pass", False: "MISS", None: "-"}[self.holds]


def verdicts(results: Results) -> list[Verdict]:
    return [*_rates(results), *_latencies(results), *_large_results(results), *_costs(results), *_growth(results)]


def _rates(results: Results) -> Iterator[Verdict]:
    for era in Era:
        found = _of_both(results, _small("http-http", era, 16), RELAY.name, lambda ours, other: ours.rate / other.rate)
        words = f"HTTP → HTTP, 16 callers, {era}: share of the bare relay's rate"
        yield Verdict(target=words, found=found, limit=0.6, unit="", is_least=True)


def _latencies(results: Results) -> Iterator[Verdict]:
    for shape, title, other, limit in (
        ("http-http", "HTTP → HTTP", RELAY, 0.3),
        ("stdio-stdio", "stdio → stdio", DIRECT, 0.45),
    ):
        for era in Era:
            found = _of_both(results, _small(shape, era, 1), other.name, lambda ours, than: ours.p50_ms - than.p50_ms)
            than = "the bare relay" if other is RELAY else "a direct call"
            words = f"{title}, one caller, {era}: p50 beyond {than}"
            yield Verdict(target=words, found=found, limit=limit, unit="ms")


def _large_results(results: Results) -> Iterator[Verdict]:
    for shape, title, callers in (("http-http", "HTTP → HTTP", 16), ("stdio-stdio", "stdio → stdio", 1)):
        small = results.cell(_small(shape, Era.HANDSHAKE, callers), EMCEEPEE.name)
        medium = results.cell(_kind(shape, Era.HANDSHAKE, callers, MEDIUM), EMCEEPEE.name)
        found = medium.rate / small.rate if small and medium else None
        words = f"{title}, {_crowd(callers)}: rate of 64 KB results, share of the small ones'"
        yield Verdict(target=words, found=found, limit=0.6, unit="", is_least=True)


def _costs(results: Results) -> Iterator[Verdict]:
    facts = [
        (memory.PART, memory.SESSION, 12.0, "KB"),
        *((memory.PART, memory.connection(era), 80.0, "KB") for era in Era),
        *((fan_out.PART, fan_out.idle_cpu(era), 0.5, "%") for era in Era),
        *((fan_out.PART, fan_out.opened(era), 4.0, "s") for era in Era),
        (wake.PART, wake.P99, 2.0, "ms"),
        (state.PART, state.ratio(state.PLAIN), 1.05, ""),
        (state.PART, state.ratio(state.DELIVERING), 1.3, ""),
        (state.PART, state.ratio(state.PROMOTED), 1.3, ""),
        (state.PART, state.ratio(state.PLAIN, state.REDIS), 1.1, ""),
        (state.PART, state.ratio(state.DELIVERING, state.REDIS), 1.6, ""),
        (state.PART, state.ratio(state.PROMOTED, state.REDIS), 1.6, ""),
        (large_results.PART, large_results.GREP, 1000.0, "ms"),
        (replicas.PART, replicas.CPU_SHARE, 1.1, ""),
        (replicas.PART, replicas.HOP, 0.5, "ms"),
        (start_up.PART, start_up.SHARE, 1.0, ""),
        (start_up.PART, start_up.COMMAND, 0.25, "s"),
        (start_up.PART, start_up.IDLE, 65.0, "MB"),
    ]
    for part, name, limit, unit in facts:
        found = results.value(part, name)
        if found is not None:
            found /= _BYTES.get(unit, 1)
        yield Verdict(target=name, found=found, limit=limit, unit=unit)
    found = results.value(replicas.PART, replicas.SHARE)
    yield Verdict(target=replicas.SHARE, found=found, limit=1.4, unit="", is_least=True)
    found = results.value(context.PART, context.SAVED)
    yield Verdict(target="context saved by code mode", found=found, limit=85.0, unit="%", is_least=True)


def _growth(results: Results) -> Iterator[Verdict]:
    for part, (first, *_, last) in growth.COUNTS.items():
        before, after = (results.value(part, growth.cpu(part, count)) for count in (first, last))
        found = (after / before - 1) * 100 if before and after else None
        words = f"CPU a call grows from {first} to {growth.alive(part, last)}"
        yield Verdict(target=words, found=found, limit=15.0, unit="%")
    calls, grown = (results.value(long_run.PART, name) for name in (long_run.CALLS, long_run.GROWN))
    found = grown / 1024 if calls and grown is not None and calls >= LONG else None
    yield Verdict(target=f"memory grown over {LONG:,} calls", found=found, limit=SLACK_BYTES / 1024, unit="KB")


def _crowd(callers: int) -> str:
    return "one caller" if callers == 1 else f"{callers} callers"


def _kind(shape: str, era: Era, callers: int, size: Size) -> Kind:
    return Kind(shape, era, callers, size.tool)


def _small(shape: str, era: Era, callers: int) -> Kind:
    return _kind(shape, era, callers, SMALL)


def _of_both(results: Results, kind: Kind, other: str, compare: Callable[[Cell, Cell], float]) -> float | None:
    ours, theirs = results.cell(kind, EMCEEPEE.name), results.cell(kind, other)
    return compare(ours, theirs) if ours and theirs else None

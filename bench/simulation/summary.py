"""The results of a simulation, as tables for a terminal."""

from collections.abc import Iterator

from bench.report import table
from bench.simulation.scenario import Scenario
from bench.simulation.tally import WAITED_SECONDS, Phase, Requests, Tally, Way, percentiles


def summarize(scenario: Scenario, tally: Tally) -> str:
    return "\n".join([*_blocks(scenario, tally)])


def _blocks(scenario: Scenario, tally: Tally) -> Iterator[str]:
    yield f"## Balanced {scenario.balancing}\n"
    yield _requests(tally)
    yield _takeovers(tally)
    yield _load(scenario, tally)
    yield _checks(tally)


def _requests(tally: Tally) -> str:
    phases = [tally.requests[phase] for phase in Phase]
    rows: list[list[str]] = [["requests served", *(f"{each.count:,}" for each in phases)]]
    rows += [[str(way), *(_share(each.served[way], each.count) for each in phases)] for way in Way]
    rows += [
        ["hops per request", *(f"{each.hops_per_request:.3f}" for each in phases)],
        ["two hops or more", *(_share(_more_than_one(each), each.count) for each in phases)],
        ["wrong guesses", *(f"{each.wrong_guesses:,}" for each in phases)],
        [f"waited {WAITED_SECONDS:g} s or more", *(f"{len(each.waits):,}" for each in phases)],
        ["… p50, p99, longest", *(_seconds(percentiles(each.waits)) for each in phases)],
        ["told that their replica was lost", *(f"{each.told_lost:,}" for each in phases)],
        ["cut with the replica they were sent to", *(f"{each.cut:,}" for each in phases)],
        ["refused with 503", *(f"{each.refused:,}" for each in phases)],
    ]
    return table(["requests, by when they were sent", *Phase], rows)


def _takeovers(tally: Tally) -> str:
    served, late = (sorted(values) for values in (tally.takeovers, tally.late_timers))
    rows = [
        ["the loss until a session was served again", f"{len(served):,}", *_row(served)],
        ["due, or the loss, until a timer fired", f"{len(late):,}", *_row(late)],
    ]
    return table(["from", "counted", "p1", "p50", "p99", "longest"], rows)


def _load(scenario: Scenario, tally: Tally) -> str:
    """Whole seconds: before the loss, from then until all is settled, and the rest."""
    loss, settled = int(scenario.loss_at), int(scenario.loss_at + scenario.settled_after)
    spans = [range(int(2 * scenario.lease_seconds), loss), range(loss, settled), range(settled, int(scenario.seconds))]
    rows = []
    for kind in tally.kinds:
        steady, during, after = (tally.rates(kind, span) for span in spans)
        rows.append([kind, f"{sum(steady) / len(steady):,.0f}", f"{max(during):,}", f"{max(after):,}"])
    return table(["asked of the store, per second", "before", "peak during", "peak after"], rows)


def _checks(tally: Tally) -> str:
    rows: list[tuple[str, int]] = [
        ("sessions of lost replicas that nobody served again", tally.never_served),
        ("sessions that were forgotten, and requests that did not find theirs", _forgotten(tally)),
        ("requests served by one that did not hold the session any more", tally.stale_serves),
        ("commits that fencing refused", tally.fenced_commits),
        ("timers that fired twice", tally.fired_twice),
        ("timers of lost replicas that never fired", tally.never_fired),
    ]
    return table(["", "count"], [[what, f"{count:,}"] for what, count in rows])


def _forgotten(tally: Tally) -> int:
    return len(tally.forgotten) + sum(each.unknown for each in tally.requests.values())


def _more_than_one(requests: Requests) -> int:
    return sum(times for hops, times in requests.hops.items() if hops > 1)


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def _row(values: list[float]) -> list[str]:
    return [f"{value:.2f} s" for value in percentiles(values, (0.01, 0.5, 0.99, 1.0))]


def _seconds(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values) + " s"

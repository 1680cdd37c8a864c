"""The rules for runs under faults: each rule finds its violation, and a fault explains only what it may."""

from typing import Any

import pytest

from support.faults.findings import Findings, Rule
from support.faults.ledger import Ledger
from support.faults.timeline import STORE, Fault, FaultKind, Span, Timeline


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(Timeline())


def reply(*events: dict[str, Any]) -> dict[str, Any]:
    return {"content": [], "structuredContent": {"events_since_last_response": list(events)}}


def event(event_id: str, kind: str = "server_added", **data: Any) -> dict[str, Any]:
    return {"id": event_id, "type": kind, "data": data}


def asked(moment: float) -> Span:
    return Span(moment, moment + 0.1)


def found(ledger: Ledger, *kept: str) -> list[Rule]:
    findings = Findings()
    ledger.check(kept, findings)
    return list(findings.rules)


def add_fault(ledger: Ledger, kind: FaultKind, began: float, ended: float) -> None:
    target = STORE if kind in (FaultKind.STORE_KILL, FaultKind.STORE_PAUSE) else 0
    ledger.timeline.faults.append(Fault(kind, target, began, ended))


def test_promises_that_are_delivered_once_break_no_rule_of_the_ledger(ledger: Ledger) -> None:
    ledger.timers["t1"], ledger.tasks["k1"], ledger.notes["note://1"] = asked(0), asked(1), asked(2)
    ledger.hear(reply(event("e1", "timer_expired", timerId="t1"), event("e2", "task_failed", taskId="k1")), asked(3))
    ledger.hear(reply(event("e3", "notification", params={"uri": "note://1"})), asked(4))
    assert (found(ledger, "e1", "e2", "e3"), ledger.missing) == ([], {})


def test_an_undelivered_promise_is_reported_as_lost(ledger: Ledger) -> None:
    ledger.timers["t1"], ledger.tasks["k1"], ledger.notes["note://1"] = asked(0), asked(1), asked(2)
    add_fault(ledger, FaultKind.KILL, 0, 5)
    assert (found(ledger), len(ledger.lost)) == ([Rule.PROMISES_KEPT], 3)


def test_only_a_process_that_ends_while_the_store_is_away_may_lose_promises(ledger: Ledger) -> None:
    ledger.timers["t1"] = asked(1)
    add_fault(ledger, FaultKind.STORE_PAUSE, 0, 5)
    assert found(ledger) == [Rule.PROMISES_KEPT]
    add_fault(ledger, FaultKind.KILL, 6, 7)
    assert found(ledger) == [Rule.PROMISES_KEPT]
    add_fault(ledger, FaultKind.KILL, 3, 4)
    assert found(ledger) == []


def test_the_ledger_finds_undelivered_stored_events_and_delivered_missing_ones(
    ledger: Ledger,
) -> None:
    ledger.hear(reply(event("e1")), asked(0))
    assert found(ledger, "e2") == [Rule.EVENTS_TOLD, Rule.EVENTS_KEPT]


@pytest.mark.parametrize(
    ("kind", "began", "is_explained"),
    [
        (FaultKind.KILL, 0.5, True),
        (FaultKind.PAUSE, 0.5, True),
        (FaultKind.STORE_KILL, 0.5, True),
        (FaultKind.STOP, 0.5, False),
        (FaultKind.KILL, 5.0, False),  # long after the first delivery was saved
        (FaultKind.KILL, 9.0, False),  # after the second delivery
    ],
)
def test_a_repeated_event_is_explained_only_by_a_fault_before_its_delivery_was_saved(
    ledger: Ledger, kind: FaultKind, began: float, *, is_explained: bool
) -> None:
    ledger.hear(reply(event("e1")), asked(0))
    ledger.hear(reply(event("e1")), asked(8))
    add_fault(ledger, kind, began, began + 0.1)
    assert found(ledger, "e1") == ([] if is_explained else [Rule.TOLD_ONCE])


def test_an_event_may_be_repeated_on_a_stream_that_the_caller_cut(ledger: Ledger) -> None:
    ledger.hear(reply(event("e1")), Span(0, 3))
    ledger.hear(reply(event("e1")), asked(1))
    assert found(ledger, "e1") == [Rule.TOLD_ONCE]
    ledger.cuts.append(Span(0, 3))
    assert found(ledger, "e1") == []


def test_no_fault_explains_a_repeated_event_whose_delivery_was_committed(ledger: Ledger) -> None:
    ledger.hear(reply(event("e1")), asked(0))
    ledger.hear_of_a_commit(asked(0.2))
    add_fault(ledger, FaultKind.KILL, 0.5, 0.6)
    ledger.hear(reply(event("e1")), asked(2))
    assert found(ledger, "e1") == [Rule.TOLD_ONCE]


def test_a_commit_does_not_cover_deliveries_of_another_process_before_a_fault(ledger: Ledger) -> None:
    ledger.hear(reply(event("e1")), asked(0))
    add_fault(ledger, FaultKind.KILL, 0.15, 0.16)
    ledger.hear_of_a_commit(asked(0.2))
    ledger.hear(reply(event("e1")), asked(2))
    assert found(ledger, "e1") == []


@pytest.mark.parametrize(("began", "is_explained"), [(3.0, True), (5.0, False)])
def test_a_process_that_fails_before_it_reports_a_read_reply_may_cause_a_repeated_event(
    ledger: Ledger, began: float, *, is_explained: bool
) -> None:
    ledger.hear(reply(event("e1")), asked(0), 0)
    ledger.hear_of_a_commit(asked(0.2), 0)
    ledger.hear(reply(event("e1")), asked(8), 1)
    add_fault(ledger, FaultKind.KILL, began, began + 0.1)
    assert found(ledger, "e1") == ([] if is_explained else [Rule.TOLD_ONCE])


def test_the_ledger_finds_timers_that_fire_twice_and_tasks_that_end_twice(ledger: Ledger) -> None:
    ledger.timers["t1"], ledger.tasks["k1"] = asked(0), asked(0)
    for moment, number in ((1, 1), (3, 3)):
        fired = event(f"e{number}", "timer_expired", timerId="t1")
        ledger.hear(reply(fired, event(f"e{number + 1}", "task_failed", taskId="k1")), asked(moment))
    add_fault(ledger, FaultKind.KILL, 2, 2.1)
    kept = ("e1", "e2", "e3", "e4")
    assert found(ledger, *kept) == [Rule.TIMERS_ONCE, Rule.TASKS_ONCE]
    add_fault(ledger, FaultKind.STORE_PAUSE, 0.5, 2.5)  # so that the first one could not be saved
    assert found(ledger, *kept) == []


def test_the_ledger_finds_skipped_and_repeated_rounds_of_an_interval(ledger: Ledger) -> None:
    ledger.intervals["t1"] = asked(0)
    rounds = [event(f"e{at}", "timer_expired", timerId="t1", fireCount=count) for at, count in enumerate((1, 2, 2, 4))]
    for moment, each in enumerate(rounds):
        ledger.hear(reply(each), asked(moment))
    assert found(ledger, *(each["id"] for each in rounds)) == [Rule.TIMERS_ONCE, Rule.PROMISES_KEPT]

"""Promises of emceepee to one caller under faults, and the events that this caller received."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from support.faults.findings import Findings, Rule
from support.faults.timeline import Span, Timeline
from support.sessions.replies import told_events

TASK_ENDS = {"task_completed", "task_failed", "task_cancelled", "task_expired"}
SAVED_AFTER = 1.0  # seconds: a delivery mark is committed a tenth of a second after its reply, or a little later
READ_AFTER = 4.0  # seconds: until a process that passed a reply back has found out that it was read, and has said so


@dataclass(slots=True)
class Ledger:
    """Promised is what a reply said; each is known by its id, with the request that it answered."""

    timeline: Timeline
    timers: dict[str, Span] = field(default_factory=dict)
    intervals: dict[str, Span] = field(default_factory=dict)
    notes: dict[str, Span] = field(default_factory=dict)
    tasks: dict[str, Span] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)  # of tasks: what each one's result will say
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    heard: dict[str, list[Span]] = field(default_factory=lambda: defaultdict(list))
    cuts: list[Span] = field(default_factory=list)  # streams that the caller itself cut, until it had the rest
    saved: dict[str, float] = field(default_factory=dict)  # events whose delivery mark is committed, and since when
    _fresh: list[tuple[str, int | None]] = field(default_factory=list)  # since it was last known what is in the store
    _tellers: dict[tuple[str, Span], int | None] = field(default_factory=dict)

    def hear(self, result: dict[str, Any], asked: Span, teller: int | None = None) -> None:
        """The events in a reply. `teller` is the number of the process that may have passed it back for another."""
        structured = result.get("structuredContent")
        groups = structured.get("events", []) if isinstance(structured, dict) and "triggers" in structured else []
        for event in [*told_events(result), *(event for group in groups for event in group["events"])]:
            assert self.events.setdefault(event["id"], event)["type"] == event["type"]
            self.heard[event["id"]].append(asked)
            self._fresh.append((event["id"], teller))
            self._tellers[event["id"], asked] = teller

    def hear_of_a_commit(self, asked: Span, teller: int | None = None) -> None:
        """Record that the events of this reply, and all earlier ones from the same process, are in the store."""
        for event_id, told_by in self._fresh:
            span = Span(self.heard[event_id][0].began, asked.ended)
            if told_by == teller and not self._disturbances(span):
                self.saved.setdefault(event_id, asked.ended)
        self._fresh.clear()

    def of_type(self, *types: str) -> list[dict[str, Any]]:
        return [event for event in self.events.values() if event["type"] in types]

    @property
    def completed(self) -> list[str]:
        """The tasks that are said to have a result."""
        return [event["data"]["taskId"] for event in self.of_type("task_completed")]

    @property
    def missing(self) -> dict[str, Span]:
        """Return the promised events that have not arrived yet."""
        ended = {event["data"]["taskId"] for event in self.of_type(*TASK_ENDS)}
        fired = {event["data"]["timerId"] for event in self.of_type("timer_expired")}
        told = {event["data"].get("params", {}).get("uri") for event in self.of_type("notification")}
        pairs = ((self.timers, fired), (self.tasks, ended), (self.notes, told))
        return {name: span for promised, seen in pairs for name, span in promised.items() if name not in seen}

    @property
    def lost(self) -> dict[str, Span]:
        """Return the missing events that no fault explains."""
        return {name: span for name, span in self.missing.items() if not self.timeline.explains_loss(span)}

    @property
    def repeated(self) -> int:
        return sum(len(hearings) - 1 for hearings in self.heard.values())

    # At the end.

    def check(self, kept: Iterable[str], findings: Findings) -> None:
        """`kept` are the ids of all events that emceepee has."""
        known = set(kept)
        for name, span in self.lost.items():
            findings.add(Rule.PROMISES_KEPT, f"{name}, promised at {span.ended:.3f}")
        untold = sorted(known - self.heard.keys())
        findings.require(not untold, Rule.EVENTS_TOLD, f"happened, and was reported to no caller: {untold}")
        for event_id in sorted(self.heard.keys() - known):
            if not self.may_be_lost(event_id):
                findings.add(Rule.EVENTS_KEPT, f"{self._told(event_id)}")
        for event_id in self.heard:
            self._check_repeated(event_id, findings)
        self._check_timers(findings)
        self._check_tasks(findings)

    def may_be_lost(self, event_id: str) -> bool:
        """Return whether the event was delivered only while it could not be saved."""
        return all(map(self.timeline.explains_loss, self.heard[event_id]))

    def _check_repeated(self, event_id: str, findings: Findings) -> None:
        """Between two replies that carried an event lies a fault, soon after the first, and nothing was saved.

        A fault of the process that relayed the first delivery also explains it: if that process dies before it
        confirms that the reply was read, the event is delivered again.
        """
        for one, other in pairwise(sorted(self.heard[event_id])):
            if self._fell_before_it_was_read(event_id, one):
                continue
            between = self._disturbances(Span(one.began, other.ended))
            soon = self._disturbances(self.timeline.after(one, SAVED_AFTER))
            findings.require(between and soon, Rule.TOLD_ONCE, f"without a fault: {self._told(event_id)}")
            saved = self.saved.get(event_id)
            is_saved = saved is not None and saved <= other.began
            findings.require(not is_saved, Rule.TOLD_ONCE, f"although its delivery was known: {self._told(event_id)}")

    def _fell_before_it_was_read(self, event_id: str, told: Span) -> bool:
        teller = self._tellers[event_id, told]
        faults = self.timeline.unclean(self.timeline.after(told, READ_AFTER))
        return teller is not None and any(fault.target == teller for fault in faults)

    def _check_timers(self, findings: Findings) -> None:
        fired: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in self.of_type("timer_expired"):
            fired[event["data"]["timerId"]].append(event)
        for timer in self.timers:
            self._require_one(fired[timer], Rule.TIMERS_ONCE, findings)
        for timer in self.intervals:
            rounds: dict[int, list[dict[str, Any]]] = defaultdict(list)
            for event in fired[timer]:
                rounds[event["data"]["fireCount"]].append(event)
            for events in rounds.values():
                self._require_one(events, Rule.TIMERS_ONCE, findings)
            skipped = sorted(set(range(1, max(rounds, default=0) + 1)) - rounds.keys())
            findings.require(not skipped, Rule.PROMISES_KEPT, f"rounds of interval {timer} are lost: {skipped}")

    def _check_tasks(self, findings: Findings) -> None:
        ends: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for event in self.of_type(*TASK_ENDS):
            ends[event["data"]["taskId"]].append(event)
        for events in ends.values():
            self._require_one(events, Rule.TASKS_ONCE, findings)

    def _require_one(self, events: list[dict[str, Any]], rule: Rule, findings: Findings) -> None:
        """Require one event of this kind. A repetition is allowed only if earlier ones could not be saved."""
        told = sorted((span, event["id"]) for event in events for span in self.heard[event["id"]])
        for first, event_id in told:
            if event_id != told[-1][1] and not self.timeline.explains_loss(first):
                findings.add(rule, f"twice: {[self._told(event['id']) for event in events]}")
                return

    def _disturbances(self, span: Span) -> list[object]:
        return [*self.timeline.unclean(span), *(cut for cut in self.cuts if cut.meets(span))]

    def _told(self, event_id: str) -> str:
        spans = ", ".join(f"{span.began:.3f}-{span.ended:.3f}" for span in self.heard[event_id])
        return f"{self.events[event_id]} told in [{spans}]"


def count(ledgers: Iterable[Ledger]) -> Counter[str]:
    """Count the promises and events of all ledgers."""
    told: Counter[str] = Counter()
    for ledger in ledgers:
        told["events"] += len(ledger.events)
        told["events told again after a fault"] += ledger.repeated
        told["timers"] += len(ledger.timers)
        told["notifications promised"] += len(ledger.notes)
        told["tasks promised"] += len(ledger.tasks)
        told["tasks completed"] += len(ledger.completed)
        told["rounds of intervals"] += len(ledger.of_type("timer_expired")) - len(ledger.timers)
    return told

"""What one caller was promised by an emceepee that is killed again and again, and what it heard of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from support.sessions.replies import told_events

TASK_ENDS = {"task_completed", "task_failed", "task_cancelled", "task_expired"}


class Moment(NamedTuple):
    """When a request was sent: by which process it was answered, and how many streams its caller had cut by then."""

    process: int
    cuts: int


@dataclass(slots=True)
class Ledger:
    """Promised is what a reply said; each is known by its id."""

    timers: set[str] = field(default_factory=set)
    intervals: set[str] = field(default_factory=set)
    notes: set[str] = field(default_factory=set)
    tasks: dict[str, str] = field(default_factory=dict)  # and the id of each one's call
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    heard: dict[str, list[Moment]] = field(default_factory=lambda: defaultdict(list))
    told: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))  # by each process, in whole replies
    saved: set[tuple[int, str]] = field(default_factory=set)  # that it was told by that process, is in the store

    def hear(self, result: dict[str, Any], asked: Moment, *, was_cut: bool = False) -> None:
        """The events in a reply."""
        structured = result.get("structuredContent")
        groups = structured.get("events", []) if isinstance(structured, dict) and "triggers" in structured else []
        for event in [*told_events(result), *(event for group in groups for event in group["events"])]:
            assert self.events.setdefault(event["id"], event)["type"] == event["type"]
            self.heard[event["id"]].append(asked)
            if not was_cut:
                self.told[asked.process].add(event["id"])

    def of_type(self, *types: str) -> list[dict[str, Any]]:
        return [event for event in self.events.values() if event["type"] in types]

    @property
    def completed(self) -> list[str]:
        """The tasks that are said to have a result."""
        return [event["data"]["taskId"] for event in self.of_type("task_completed")]

    @property
    def missing(self) -> set[str]:
        """What was promised to be told, and was not yet."""
        ended = {event["data"]["taskId"] for event in self.of_type(*TASK_ENDS)}
        fired = {event["data"]["timerId"] for event in self.of_type("timer_expired")}
        told = {event["data"].get("params", {}).get("uri") for event in self.of_type("notification")}
        return (self.timers - fired) | (self.tasks.keys() - ended) | (self.notes - told)

    @property
    def repeated(self) -> int:
        return sum(len(hearings) - 1 for hearings in self.heard.values())

    def check(self, kept: Iterable[str]) -> None:
        """At the end. `kept` are the ids of all events that emceepee has."""
        assert not self.missing, "lost"
        assert set(kept) - self.heard.keys() == set(), "happened, and was told to nobody"
        assert self.heard.keys() - set(kept) == set(), "was told, and is forgotten"
        self._check_repeated()
        fired = Counter(event["data"]["timerId"] for event in self.of_type("timer_expired"))
        assert all(fired[timer] == 1 for timer in self.timers), "a timer fired twice"
        for timer in self.intervals:
            rounds = [event["data"] for event in self.of_type("timer_expired") if event["data"]["timerId"] == timer]
            counted = sorted(data["fireCount"] for data in rounds)
            assert counted == list(range(1, len(rounds) + 1)), f"rounds of an interval are lost or twice: {counted}"
        ends = Counter(event["data"]["taskId"] for event in self.of_type(*TASK_ENDS))
        assert not ends or max(ends.values()) == 1, "a task ended twice"

    def _check_repeated(self) -> None:
        """Between two replies that carried the same event lies a fault, and nothing was saved since the first."""
        for event_id, moments in self.heard.items():
            for one, other in pairwise(sorted(moments)):
                assert one != other, f"told twice without a fault: {self.events[event_id]}"
                is_saved = (one.process, event_id) in self.saved
                assert not is_saved, f"told twice, though it was known to be told: {self.events[event_id]}"

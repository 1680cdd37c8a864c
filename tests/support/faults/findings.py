"""Findings of a test under faults. Each one names the broken rule."""

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Rule(StrEnum):
    """A rule that must hold under every fault."""

    PROMISES_KEPT = "every promise of a reply is carried out and reported"
    EVENTS_TOLD = "every stored event is reported"
    EVENTS_KEPT = "every reported event stays stored"
    TOLD_ONCE = "an event is reported twice only after a fault"
    TIMERS_ONCE = "a timer fires once"
    TASKS_ONCE = "a task ends once"
    CALLS_ONCE = "a call runs once at most"
    RIGHT_ANSWERS = "an answer is right, and an error clear"
    ANSWERED = "a request is answered, or its connection ended, within its bound"
    SESSIONS_KEPT = "a session that nobody ended is found"
    SMOOTH_STOPS = "where processes only stop in order, every request is answered at once"
    NO_STALE_COMMITS = "only the holder of a session changes it"
    SESSIONS_RECOVER = "when the faults are over, every session works, from everywhere"
    NOTHING_LEFT = "no process is left"


@dataclass(slots=True)
class Findings:
    """Empty at the end of a good run."""

    found: list[tuple[Rule, str]] = field(default_factory=list)

    def add(self, rule: Rule, text: str) -> None:
        self.found.append((rule, text))

    def require(self, holds: object, rule: Rule, text: str) -> bool:
        if not holds:
            self.add(rule, text)
        return bool(holds)

    @property
    def rules(self) -> Counter[Rule]:
        return Counter(rule for rule, _ in self.found)

    def __str__(self) -> str:
        return "".join(f"\n- {rule}: {text}" for rule, text in self.found) or "nothing"

"""Which faults there were and when, so that a rule can ask whether one of them explains what a caller saw."""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

STORE = -1  # in place of the number of a process


class FaultKind(StrEnum):
    """A kind of fault. Its value is the name of its count."""

    KILL = "kills"
    PAUSE = "pauses"
    STOP = "clean stops"
    STORE_KILL = "kills of the store"
    STORE_PAUSE = "pauses of the store"


CLEAN = frozenset({FaultKind.STOP})
OF_STORE = frozenset({FaultKind.STORE_KILL, FaultKind.STORE_PAUSE})


class Span(NamedTuple):
    """From one moment of the loop's clock to another: a request from its sending to the end of its answer."""

    began: float
    ended: float

    def meets(self, other: "Span") -> bool:
        return self.began <= other.ended and other.began <= self.ended


@dataclass(slots=True)
class Fault:
    """`ended` is infinite until it has."""

    kind: FaultKind
    target: int
    began: float
    ended: float = math.inf


@dataclass(slots=True)
class Timeline:
    """`aftermath`: seconds for which a fault of the store is felt after it is back, on a machine that is not late."""

    aftermath: float = 0.0
    late: Callable[[Span], float] = lambda _: 0.0
    """Seconds by which the machine was late then."""
    faults: list[Fault] = field(default_factory=list)

    @contextmanager
    def fault(self, kind: FaultKind, target: int) -> Iterator[Fault]:
        """While the block runs."""
        begun = Fault(kind, target, moment())
        self.faults.append(begun)
        try:
            yield begun
        finally:
            begun.ended = moment()

    def before(self, span: Span, seconds: float) -> Span:
        """With the seconds before it, on a machine that is not late."""
        return Span(span.began - seconds - self.late(Span(span.began - seconds, span.began)), span.ended)

    def after(self, span: Span, seconds: float) -> Span:
        """With the seconds after it, on a machine that is not late."""
        return Span(span.began, span.ended + seconds + self.late(Span(span.ended, span.ended + seconds)))

    def felt(self, fault: Fault) -> Span:
        """Until what it did to others is over, as far as that is known."""
        span = Span(fault.began, fault.ended)
        return self.after(span, self.aftermath) if fault.kind in OF_STORE and fault.ended < math.inf else span

    def unclean(self, span: Span) -> list[Fault]:
        """The faults within it; a clean stop is none."""
        return [fault for fault in self.meeting(span) if fault.kind not in CLEAN]

    def meeting(self, span: Span) -> list[Fault]:
        return [fault for fault in self.faults if self.felt(fault).meets(span)]

    def of(self, target: int, span: Span) -> list[Fault]:
        return [fault for fault in self.meeting(span) if fault.target == target]

    def store_was_away(self, span: Span) -> bool:
        """Then a reply promised no more than with state in memory."""
        return any(fault.kind in OF_STORE for fault in self.meeting(span))

    def explains_loss(self, told: Span) -> bool:
        """Whether what a reply promised then may be lost: the store was away, and a process ended or lost its lease."""
        away = [fault for fault in self.meeting(told) if fault.kind in OF_STORE]
        return any(
            self.felt(other).meets(Span(told.began, self.felt(fault).ended))
            for fault in away
            for other in self.faults
            if other.kind not in OF_STORE
        )

    def is_paused(self, target: int) -> bool:
        """Whether it stands still at this moment."""
        paused = (fault for fault in self.faults if fault.target == target and fault.kind is FaultKind.PAUSE)
        return any(fault.ended == math.inf for fault in paused)

    def seconds_paused(self, target: int, span: Span) -> float:
        """For how much of it the process stood still."""
        paused = (fault for fault in self.of(target, span) if fault.kind is FaultKind.PAUSE)
        return sum(min(fault.ended, span.ended) - max(fault.began, span.began) for fault in paused)


def moment() -> float:
    return asyncio.get_running_loop().time()

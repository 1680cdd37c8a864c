"""Which calls a question may be of, where the transport does not say which one asked."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from emceepee.sessions.call import Call
from emceepee.telemetry.spans import Phase, PhaseKind, open_phase


class QuestionOrigins:
    """While it is entered, its calls show as waiting; those that end before the question has its answer did not ask.

    question opens: A, B, C ── B answered ──▶ A, C ── A answered ──▶ C, surely
    """

    __slots__ = ("_phases", "_server", "conversations")

    def __init__(self, server: str, calls: Iterable[Call] = ()) -> None:
        self._server = server
        self._phases: dict[Call, Phase | None] = dict.fromkeys(calls)
        self.conversations = _conversations(self._phases)  # which see it in full; empty: all of the session

    def __repr__(self) -> str:
        return f"<QuestionOrigins {list(self._phases)}>"

    @property
    def calls(self) -> Sequence[Call]:
        return list(self._phases)

    @property
    def only(self) -> Call | None:
        """Return the call that surely asked, or None."""
        return next(iter(self._phases)) if len(self._phases) == 1 else None

    def includes(self, call_id: str) -> bool:
        return any(call.call_id == call_id for call in self._phases)

    def __enter__(self) -> Self:
        for call in self._phases:
            self._phases[call] = open_phase(call.span, self._kind, self._server)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for phase in self._phases.values():
            if phase is not None:
                phase.__exit__(kind, error, at)
        self._phases.clear()

    def rule_out(self, call: Call) -> None:
        """Forget a call that ended while the question waits: it is not the one that asked."""
        if call not in self._phases:
            return
        phase = self._phases.pop(call)
        if phase is not None:
            phase.withdraw()
        if self._phases:
            self.conversations = _conversations(self._phases)
        for other in self._phases.values():
            if other is not None:
                other.change(self._kind)

    @property
    def _kind(self) -> PhaseKind:
        return PhaseKind.WAITING if len(self._phases) == 1 else PhaseKind.MAYBE_WAITING


def _conversations(calls: Iterable[Call]) -> frozenset[object]:
    """Return the conversations of the calls, or none if that of any of them is unknown."""
    found = frozenset(call.conversation for call in calls)
    return frozenset() if None in found else found

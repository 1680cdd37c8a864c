"""Track which calls may have asked a question if the transport does not identify the call."""

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from emceepee.sessions.call import Call
from emceepee.telemetry.spans import Phase, PhaseKind, open_phase


class QuestionOrigins:
    """Show the calls as waiting inside the context. A call that ends before the question is answered did not ask it.

    question opens: A, B, C ── B answered ──▶ A, C ── A answered ──▶ C, surely
    """

    __slots__ = ("_phases", "_server", "conversations")

    def __init__(self, server: str, calls: Iterable[Call] = ()) -> None:
        self._server = server
        self._phases: dict[Call, Phase | None] = dict.fromkeys(calls)
        self.conversations = _conversations(self._phases)  # see the question in full; empty means all

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
        """Remove a call that ended while the question is open: it did not ask."""
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
    """Return the conversations of the calls, or an empty set if one of them is unknown."""
    found = frozenset(call.conversation for call in calls)
    return frozenset() if None in found else found

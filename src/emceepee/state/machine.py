"""A transition table that guards the code and draws its own diagram."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

S = TypeVar("S", bound=StrEnum)


class ForbiddenMove(Exception):
    """A record's table does not allow the requested transition. Nothing has changed."""


@dataclass(frozen=True, slots=True)
class Move(Generic[S]):
    """One allowed transition and its cause."""

    source: S
    target: S
    why: str


class Machine(Generic[S]):
    """All transitions that one kind of record allows."""

    def __init__(
        self, name: str, description: str, *, begins: tuple[S, str], moves: Iterable[Move[S]], ends: str
    ) -> None:
        """`begins` is the first state and the event that creates it; `ends` describes the end of a settled record."""
        self.name, self.description = name, description
        self.initial, self._born = begins
        self.moves = tuple(moves)
        self._ends = ends
        self._allowed = {(move.source, move.target) for move in self.moves}
        self._left = {move.source for move in self.moves}

    def allows(self, source: S, target: S) -> bool:
        return (source, target) in self._allowed

    def check(self, source: S, target: S) -> None:
        """Raises: ForbiddenMove."""
        if not self.allows(source, target):
            raise ForbiddenMove(f"{self.name}: {source} does not lead to {target}")

    def is_final(self, state: S) -> bool:
        return state not in self._left

    def mermaid(self) -> str:
        """Return the table as a Mermaid state diagram."""
        finals = [state for state in type(self.initial) if self.is_final(state)]
        lines = [f"[*] --> {self.initial} : {self._born}"]
        lines += [f"{move.source} --> {move.target} : {move.why}" for move in self.moves]
        lines += [f"{state} --> [*] : {self._ends}" for state in finals]
        return "stateDiagram-v2\n" + "\n".join(f"    {line}" for line in lines)

"""How much is measured, and on whom."""

import sys
from dataclasses import dataclass

from bench.contestants import Contestant
from bench.work import Era


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The command line, understood."""

    contestants: tuple[Contestant, ...]
    parts: tuple[str, ...]
    rounds: int
    seconds: float
    is_quick: bool
    long_calls: int

    @property
    def eras(self) -> tuple[Era, ...]:
        """Of the backends, where the era matters less."""
        return (Era.HANDSHAKE,) if self.is_quick else tuple(Era)

    def has(self, contestant: Contestant) -> bool:
        return contestant in self.contestants


def progress(words: str) -> None:
    print(words, file=sys.stderr, flush=True)

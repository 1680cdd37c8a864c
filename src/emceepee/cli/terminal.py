"""Terminal output and prompts: colors only on a terminal, questions only if a user can answer."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from emceepee.terminal_text import printable

DONE, FAILED, USAGE = 0, 1, 2
MOST_ASKED = 5  # attempts, if the answers are neither yes nor no
TYPE_Y_OR_N = "Type y or n."
_DIFF_COLORS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))


class Painted(str):
    """Text that is safe for a terminal, including its colors.

    An f-string turns it into a plain string, and `say` then escapes its colors. Pass it as a separate argument.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """Applies colors, if they are enabled."""

    is_on: bool

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str] = os.environ) -> "Paint":
        is_plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
        return cls(is_on=stream.isatty() and not is_plain)

    def bold(self, text: str) -> Painted:
        return self._painted(text, "1")

    def good(self, text: str) -> Painted:
        return self._painted(text, "32")

    def bad(self, text: str) -> Painted:
        return self._painted(text, "31")

    def faint(self, text: str) -> Painted:
        return self._painted(text, "2")

    def diff(self, text: str) -> Painted:
        return Painted("".join(self._diff_line(line) for line in text.splitlines(keepends=True)))

    def _diff_line(self, line: str) -> str:
        color = next((color for start, color in _DIFF_COLORS if line.startswith(start)), None)
        return printable(line) if color is None else f"{self._painted(line.rstrip(chr(10)), color)}\n"

    def _painted(self, text: str, color: str) -> Painted:
        safe = printable(text)
        return Painted(f"\x1b[{color}m{safe}\x1b[0m" if self.is_on else safe)


def rendered(*parts: str) -> str:
    """Return the parts as one text, safe for a terminal: only `Painted` parts keep control sequences."""
    return "".join(part if isinstance(part, Painted) else printable(part) for part in parts)


def say(*parts: str) -> None:
    """Write a line to standard output."""
    sys.stdout.write(f"{rendered(*parts)}\n")


def complain(problem: object) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"emceepee: {printable(str(problem))}\n")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Ask at the terminal, and return whether the answer is yes. No answer means no."""
    for _ in range(MOST_ASKED):
        sys.stdout.write(f"{printable(question)} [y/N] ")
        sys.stdout.flush()
        answer = sys.stdin.readline()
        if not answer:
            sys.stdout.write("\n")
        if (is_yes := read_yes_or_no(answer, default=False)) is not None:
            return is_yes
        say(TYPE_Y_OR_N)
    return False


def read_yes_or_no(answer: str, *, default: bool) -> bool | None:
    """Return True for yes, False for no, and None for other answers. An empty answer is the default."""
    word = answer.strip().lower()
    return default if not word else {"y": True, "yes": True, "n": False, "no": False}.get(word)

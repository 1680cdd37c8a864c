"""What commands say to people: color on a terminal only, questions only where someone can answer."""

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

DONE, FAILED, USAGE = 0, 1, 2
_DIFF_COLORS = (("+++", "1"), ("---", "1"), ("@@", "36"), ("+", "32"), ("-", "31"))
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Paint:
    """Colors, if there are any."""

    is_on: bool

    @classmethod
    def of(cls, stream: TextIO, environment: Mapping[str, str] = os.environ) -> "Paint":
        is_plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
        return cls(is_on=stream.isatty() and not is_plain)

    def bold(self, text: str) -> str:
        return self._painted(text, "1")

    def good(self, text: str) -> str:
        return self._painted(text, "32")

    def bad(self, text: str) -> str:
        return self._painted(text, "31")

    def faint(self, text: str) -> str:
        return self._painted(text, "2")

    def diff(self, text: str) -> str:
        return "".join(self._diff_line(line) for line in text.splitlines(keepends=True))

    def _diff_line(self, line: str) -> str:
        color = next((color for start, color in _DIFF_COLORS if line.startswith(start)), None)
        line = printable(line)
        return line if color is None else f"{self._painted(line.rstrip(chr(10)), color)}\n"

    def _painted(self, text: str, color: str) -> str:
        return f"\x1b[{color}m{text}\x1b[0m" if self.is_on else text


def printable(text: str) -> str:
    """Without what would move the cursor: names and files come from elsewhere."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def complain(text: object) -> None:
    sys.stderr.write(f"emceepee: {text}\n")


def can_ask() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Whether the one at the terminal says yes."""
    sys.stdout.write(f"{question} [y/N] ")
    sys.stdout.flush()
    answer = sys.stdin.readline()
    if not answer:
        sys.stdout.write("\n")
    return answer.strip().lower() in ("y", "yes")

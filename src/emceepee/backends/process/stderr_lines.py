"""Excerpts of a process's standard error, limited to the lines that explain its failure.

The cause is often far from the end: a stack trace or the whole help text follows it. So an excerpt contains the first
lines, the first lines that look like an error, and the last lines. A mark shows where lines are omitted.
"""

import re
from collections.abc import Sequence

from emceepee.state.ring import Ring

LINES_KEPT = 200
LONGEST_LINE = 300  # characters; longer lines are cut
LINES_SHOWN = 10
FIRST_SHOWN = 2
ERRORS_SHOWN = 3
_ERROR = re.compile(
    r"error|exception|fatal|panic|abort|fail|missing|required|invalid|denied|unauthori[sz]ed|forbidden|expired"
    r"|not (?:found|set|defined|allowed|supported)|no such|cannot|can't|could not|unable",
    re.IGNORECASE,
)


class StderrLines:
    """The newest lines, without blank ones."""

    def __init__(self) -> None:
        self._lines: Ring[str] = Ring(LINES_KEPT)
        self._count = 0

    def append(self, line: str) -> None:
        if line.strip():
            self._lines.append(line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…")
            self._count += 1

    def excerpt(self) -> list[str]:
        """Return at most `LINES_SHOWN` lines, with marks for omitted lines."""
        return stderr_excerpt(list(self._lines), before=self._count - len(self._lines))

    def sentence(self) -> str:
        """Return the excerpt as one line of a message."""
        lines = self.excerpt()
        return f"its stderr: {' | '.join(lines)}" if lines else "its stderr was empty"


def stderr_excerpt(lines: Sequence[str], *, most: int = LINES_SHOWN, before: int = 0) -> list[str]:
    """Return at most `most` of the lines, in order. `before` counts earlier lines that are no longer stored."""
    shown = _selected_lines(lines, most, has_start=before == 0)
    excerpt: list[str] = []
    left_out = before
    for number, line in enumerate(lines):
        if number not in shown:
            left_out += 1
            continue
        if left_out:
            excerpt.append(f"({left_out} lines left out)" if left_out > 1 else "(1 line left out)")
            left_out = 0
        excerpt.append(line)
    return excerpt


def _selected_lines(lines: Sequence[str], most: int, *, has_start: bool) -> set[int]:
    """Return the numbers of the lines to show."""
    if len(lines) <= most:
        return set(range(len(lines)))
    # An indented line belongs to a stack trace or a quotation. The first line of that explains more.
    errors = [number for number, line in enumerate(lines) if not line[:1].isspace() and _ERROR.search(line)]
    shown = set(range(FIRST_SHOWN)) if has_start else set()
    shown.update(errors[: min(ERRORS_SHOWN, most - FIRST_SHOWN - 1)])
    for number in reversed(range(len(lines))):
        if len(shown) >= most:
            break
        shown.add(number)
    return shown

"""Regular expressions from untrusted sources. RE2 never backtracks; size and work are bounded here."""

from typing import Any

import re2

LONGEST_PATTERN = 1000  # characters
MOST_WORK = 10_000_000  # steps, at some ten nanoseconds each: the size of the program times the length of the text
_MEMORY = 1 << 20  # bytes that one compiled pattern may take
WINDOW_STEPS = 20_000_000  # of one search in a long text, which blocks the event loop
SMALLEST_WINDOW, LARGEST_WINDOW = 16 << 10, 1 << 20  # bytes


class BadPattern(Exception):
    """An unusable pattern; `fragment` is the part that RE2 names, if any."""

    def __init__(self, problem: str, fragment: str = "") -> None:
        super().__init__(problem)
        self.fragment = fragment


class TooMuchWork(Exception):
    """The pattern is too large to search for in this much text."""


class Work:
    """The search work that one call may spend."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def spend(self, steps: int) -> None:
        """Raises: TooMuchWork."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork


def _compile(pattern: str | bytes, **settings: bool) -> Any:
    """Raises: BadPattern."""
    options = re2.Options()
    options.log_errors = False  # else RE2 would write to our standard error and bypass the log
    options.max_mem = _MEMORY
    for name, value in settings.items():
        setattr(options, name, value)
    try:
        return re2.compile(pattern, options=options)  # this caches recent patterns
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        problem, _, fragment = said.partition(": ")
        raise BadPattern(problem, fragment) from None


def _refuse_long(text: str) -> None:
    if len(text) > LONGEST_PATTERN:
        raise BadPattern(f"it is longer than {LONGEST_PATTERN} characters")


def _size(compiled: Any) -> int:
    return max(int(compiled.programsize), int(compiled.reverseprogramsize), 1)


class Regex:
    """A compiled pattern, unanchored."""

    def __init__(self, text: str) -> None:
        """Raises: BadPattern."""
        _refuse_long(text)
        self._compiled = _compile(text)
        self._size = _size(self._compiled)
        self._fits_all = text in ("", ".*")

    def search(self, text: str, work: Work) -> bool:
        """Raises: TooMuchWork."""
        if self._fits_all:
            return True
        work.spend(self._size * (len(text) + 1))
        return self._compiled.search(text) is not None


class LineRegex:
    """A compiled pattern for long UTF-8 texts. It matches only within lines."""

    def __init__(self, text: str) -> None:
        """Raises: BadPattern."""
        _refuse_long(text)
        _compile(text)  # so that errors quote the caller's pattern without the wrapper added below
        self._compiled = _compile(b"(?m:%b)" % text.encode("utf-8", "replace"), never_nl=True)
        # The bytes searched at once: a pattern whose automaton does not fit into memory takes a step per instruction
        # and byte.
        self.window_bytes = max(min(WINDOW_STEPS // _size(self._compiled), LARGEST_WINDOW), SMALLEST_WINDOW)

    def search(self, data: bytes, position: int) -> tuple[int, int] | None:
        """Return the start and end of the first match from `position` on. Anchors see the text before it."""
        found = self._compiled.search(data, position)
        return None if found is None else found.span()

"""Regular expressions that others wrote. RE2 cannot be made to backtrack; here it is also kept small and quick."""

import re2

LONGEST_PATTERN = 1000  # characters
MOST_WORK = 10_000_000  # steps, at some ten nanoseconds each: the size of the program times the length of the text
_MEMORY = 1 << 20  # bytes that one compiled pattern may take


class BadPattern(Exception):
    """It cannot be used; `fragment` is the part that RE2 names, if it names one."""

    def __init__(self, problem: str, fragment: str = "") -> None:
        super().__init__(problem)
        self.fragment = fragment


class TooMuchWork(Exception):
    """So large a pattern is not searched for in so much text."""


class Work:
    """What one call may have searched."""

    def __init__(self) -> None:
        self._left = MOST_WORK

    def spend(self, steps: int) -> None:
        """Raises: TooMuchWork."""
        self._left -= steps
        if self._left < 0:
            raise TooMuchWork


class Regex:
    """A compiled pattern, unanchored."""

    def __init__(self, text: str) -> None:
        """Raises: BadPattern."""
        if len(text) > LONGEST_PATTERN:
            raise BadPattern(f"it is longer than {LONGEST_PATTERN} characters")
        options = re2.Options()
        options.log_errors = False  # which would go to our standard error, past the log
        options.max_mem = _MEMORY
        try:
            self._compiled = re2.compile(text, options=options)  # which keeps the last ones
        except re2.error as error:
            said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
            problem, _, fragment = said.partition(": ")
            raise BadPattern(problem, fragment) from None
        self._size = max(int(self._compiled.programsize), int(self._compiled.reverseprogramsize), 1)
        self._fits_all = text in ("", ".*")

    def search(self, text: str, work: Work) -> bool:
        """Raises: TooMuchWork."""
        if self._fits_all:
            return True
        work.spend(self._size * (len(text) + 1))
        return self._compiled.search(text) is not None

"""Regular expressions from a model, matched in time that grows with the text and not with the pattern's malice."""

import re
import warnings
from typing import Protocol, cast

import re2

from emceepee.errors import InvalidArguments

LONGEST_PATTERN = 1000
_MEMORY = 4 << 20  # what one compiled pattern may take


class Pattern(Protocol):
    """A compiled pattern, unanchored."""

    def search(self, text: str) -> object | None: ...


def compile_pattern(argument: str, text: str) -> Pattern:
    """Raises: InvalidArguments, naming the argument and where in it the trouble is."""
    if len(text) > LONGEST_PATTERN:
        raise _bad(argument, f"it is longer than {LONGEST_PATTERN} characters", LONGEST_PATTERN)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except re.error as error:
        raise _bad(argument, f"{error.msg} at position {error.pos}", error.pos or 0) from None
    except (OverflowError, RecursionError):
        raise _bad(argument, "it is too large at position 0", 0) from None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return cast(Pattern, re2.compile(text, options=options))
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        position = max(text.find(said.rpartition(": ")[2]), 0)
        raise _bad(argument, f"not supported at position {position} ({said})", position) from None


def _bad(argument: str, problem: str, position: int) -> InvalidArguments:
    return InvalidArguments(
        f"{argument} is not a usable regular expression: {problem}. Lookarounds and backreferences are not available.",
        details={"argument": argument, "position": position},
    )

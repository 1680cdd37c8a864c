"""Regular expressions from a model, matched in time linear in the text, so that a pattern cannot cause ReDoS."""

from emceepee.errors import InvalidArguments
from emceepee.state.regex import LONGEST_PATTERN, BadPattern, LineRegex, Regex, TooMuchWork, Work

__all__ = ["LONGEST_PATTERN", "Pattern", "compile_line_pattern", "compile_pattern"]


class Pattern:
    """A compiled pattern, unanchored. It belongs to one call."""

    def __init__(self, argument: str, regex: Regex) -> None:
        self._argument, self._regex, self._work = argument, regex, Work()

    def search(self, text: str) -> bool:
        """Raises: InvalidArguments if the pattern is too large for the amount of text to search."""
        try:
            return self._regex.search(text, self._work)
        except TooMuchWork:
            raise _bad(self._argument, "it is too large for so many names, at position 0", 0) from None


def compile_pattern(argument: str, text: str) -> Pattern:
    """Raises: InvalidArguments, with the argument's name and the position of the mistake."""
    try:
        return Pattern(argument, Regex(text))
    except BadPattern as error:
        raise _unusable(argument, text, error) from None


def compile_line_pattern(argument: str, text: str) -> LineRegex:
    """Compile a pattern for the lines of a long text. Raises: InvalidArguments, like `compile_pattern`."""
    try:
        return LineRegex(text)
    except BadPattern as error:
        raise _unusable(argument, text, error) from None


def _unusable(argument: str, text: str, error: BadPattern) -> InvalidArguments:
    position = _position(text, error)
    return _bad(argument, f"{error} at position {position}", position)


def _position(text: str, error: BadPattern) -> int:
    """Return the position of the part that RE2 reports. For an unmatched parenthesis, RE2 reports the whole pattern."""
    if len(text) > LONGEST_PATTERN:
        return LONGEST_PATTERN
    if error.fragment == text:
        return _unpaired(text)
    return max(text.find(error.fragment), 0)


def _unpaired(text: str) -> int:
    """Return the position of the unmatched parenthesis."""
    opened: list[int] = []
    is_escaped = in_class = False
    for position, letter in enumerate(text):
        if is_escaped:
            is_escaped = False
        elif letter == "\\":
            is_escaped = True
        elif in_class:
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
        elif letter == "(":
            opened.append(position)
        elif letter == ")":
            if not opened:
                return position
            opened.pop()
    return opened[-1] if opened else 0


def _bad(argument: str, problem: str, position: int) -> InvalidArguments:
    return InvalidArguments(
        f"{argument} is not a usable regular expression: {problem}. Lookarounds and backreferences are not available.",
        details={"argument": argument, "position": position},
    )

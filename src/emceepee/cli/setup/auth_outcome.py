"""Results and errors of `emceepee auth`."""

from dataclasses import dataclass
from typing import Any

DONE, FAILED, USAGE = 0, 1, 2
EXIT_CODES = "Exit codes: 0 success, 1 failure, 2 invalid flags or configuration."


class AuthError(Exception):
    """The command failed; the message describes what to do, and `code` is the exit code."""

    def __init__(self, words: str, *, code: int = USAGE) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthOutcome:
    """The result: `facts` for JSON output, `text` for people."""

    facts: dict[str, Any]
    text: str
    code: int = DONE

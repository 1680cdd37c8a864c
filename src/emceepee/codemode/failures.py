"""The reason why a script ended without a result, expressed in terms of the script's own source."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic_monty import MontyError, MontyTypingError, SourceRange

MOST_PROBLEMS = 5  # in the error of a rejected script
MOST_READ = 500  # read for a script that needs inserted awaits
LONGEST_MESSAGE = 4000  # characters
_NOT_IMPORTED = ("unresolved-import", "unresolved-attribute")
_NOT_AWAITED = ("unused-awaitable", "CoroutineType")
_TOP_LEVEL_RETURN = "`return` statement outside of a function"


class ScriptFailure(Exception):
    """A failure that the caller receives in the `error` field."""

    def __init__(self, name: str, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.name, self.line = name, line

    def body(self) -> JsonObject:
        message = str(self)
        message = message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + "…"
        return {"name": self.name, "message": message} | ({} if self.line is None else {"line": self.line})


def failure_of(
    error: "MontyError", *, before: int, seconds: float, hints: Mapping[str, str] = MappingProxyType({})
) -> ScriptFailure:
    """Convert a sandbox error for the caller.

    `before` is the number of lines before the script's own source, and `seconds` its compute limit. `renamed` maps
    servers that the script may have imported under their own names to the names of their modules.
    """
    from pydantic_monty import MontyCrashedError, MontySyntaxError, MontyTypingError

    if isinstance(error, MontyTypingError):
        return _refusal(problems_of(error), before, hints)
    if isinstance(error, MontyCrashedError):
        if error.timed_out:
            return ScriptFailure("TimeoutError", f"The script computed for more than {seconds:g} s, so it was ended.")
        return ScriptFailure("SandboxCrashed", "The process that ran the script ended unexpectedly. Nothing else did.")
    name, _, message = str(error).partition(": ")
    if isinstance(error, MontySyntaxError):
        name, message = "SyntaxError", str(error)
    frames = error.traceback() if hasattr(error, "traceback") else []
    own = [frame.line - before for frame in frames if frame.filename.startswith("<python-input")]
    if name == "TimeoutError" and "time limit exceeded" in message:
        message = f"The script computed for more than {seconds:g} s, so it was ended."
    return ScriptFailure(name, message, own[-1] if own and own[-1] > 0 else None)


def line_at(source: str, place: "SourceRange", *, before: int) -> int | None:
    """Return the script's own line for a place in its source, or None for code that the script itself executes."""
    if not place.filename.startswith("<python-input"):
        return None
    line = source.encode("utf-8", "replace")[: place.start].count(b"\n") + 1 - before
    return line if line > 0 else None


def problems_of(error: "MontyTypingError") -> list[JsonObject]:
    """Return the first problems that the type check found, as data: at most `MOST_READ`."""
    found: list[JsonObject] = []
    text = error.display()
    read, position = json.JSONDecoder().raw_decode, 0
    try:
        while len(found) < MOST_READ and (position := text.find("{", position)) >= 0:
            item, position = read(text, position)
            found.append(item)
    except ValueError:
        return [{"message": str(error)[:LONGEST_MESSAGE]}]
    return [item for item in found if item.get("severity") == "error"] or [{"message": text[:LONGEST_MESSAGE]}]


def only_returns(problems: list[JsonObject]) -> bool:
    """Return whether the only problem is a top-level `return`, which is accepted as the script's result."""
    return bool(problems) and all(item.get("message") == _TOP_LEVEL_RETURN for item in problems)


def with_awaits(code: str, problems: list[JsonObject]) -> str | None:
    """Insert `await` before the calls that lack it. Return None if the code has other problems."""
    places: list[Any] = [item.get("location") for item in problems if item.get("code") == _NOT_AWAITED[0]]
    if not places or len(places) < len(problems):
        return None
    lines = code.split("\n")
    for place in sorted(places, key=lambda place: (place["row"], place["column"]), reverse=True):
        row, column = place["row"] - 1, place["column"] - 1
        if not (0 <= row < len(lines) and 0 <= column < len(lines[row])):
            return None
        lines[row] = f"{lines[row][:column]}await {lines[row][column:]}"
    return "\n".join(lines)


def _refusal(problems: list[JsonObject], before: int, hints: Mapping[str, str]) -> ScriptFailure:
    told = [item for item in problems if item.get("message") != _TOP_LEVEL_RETURN] or problems
    # With a syntax error, imports are not resolved, and all imported names would be reported as missing.
    unread = [item for item in told if item.get("code") == "invalid-syntax"]
    told = unread or told
    lines = [_line_of(item, before) for item in told]
    words = [
        f"line {line}: {item.get('message')}" if line else str(item.get("message"))
        for item, line in zip(told, lines, strict=True)
    ]
    rest = len(words) - MOST_PROBLEMS
    text = "; ".join(words[:MOST_PROBLEMS]) + (f"; and {rest} more" if rest > 0 else "")
    if any(_is_not_awaited(item) for item in told):
        text += ". Calls are coroutines: write await before each."
    for name, hint in hints.items():
        if any(item.get("code") in _NOT_IMPORTED and f"`{name}`" in str(item.get("message")) for item in told):
            text += f". {hint}"
    return ScriptFailure(
        "SyntaxError" if unread else "TypeError", f"The script was not run. {text}", lines[0] if lines else None
    )


def _is_not_awaited(problem: JsonObject) -> bool:
    return problem.get("code") == _NOT_AWAITED[0] or _NOT_AWAITED[1] in str(problem.get("message"))


def _line_of(problem: JsonObject, before: int) -> int | None:
    place: Any = problem.get("location")
    row = place.get("row") if isinstance(place, dict) else None
    return row - before if isinstance(row, int) and row > before else None

"""Errors for a caller: a few conditions, each with a stable code and a sentence with the next step."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import StrEnum
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from emceepee.surface import call_to
from emceepee.wire.json_types import JsonObject

_LISTED_NAMES = 10
LONGEST_NAME = 100  # characters: a longer name is no slip of someone's fingers, and is cut where it is shown
MOST_COMPARED, MOST_COMPARED_CLOSELY = 1000, 50  # names: a close look is a hundred times as costly as a glance
_ALIKE = 0.6
MOST_PROBLEMS = 20  # in one error
DOCS_URL = "https://emceepee.github.io/emceepee/"  # mkdocs.yml and pyproject.toml say the same
HELP_URL = f"{DOCS_URL}errors/"  # below it, a page for each code


class ErrorCode(StrEnum):
    """The codes a caller can rely on; each value's docstring is its entry in the reference."""

    SESSION_NOT_FOUND = "TOOL_ERR_SESSION_NOT_FOUND"
    """The session named is unknown or has ended."""
    SERVER_NOT_FOUND = "TOOL_ERR_SERVER_NOT_FOUND"
    """No server has that name."""
    TOOL_NOT_FOUND = "TOOL_ERR_NOT_FOUND"
    """The server has no such tool."""
    EXECUTION_FAILED = "TOOL_ERR_EXECUTION_FAILED"
    """The server answered with a protocol error, or could not be connected."""
    TIMEOUT = "TOOL_ERR_TIMEOUT"
    """No answer came in the time given."""
    SERVER_DISCONNECTED = "TOOL_ERR_SERVER_DISCONNECTED"
    """The connection to the server is gone, or broke during the call."""
    LOGIN_NEEDED = "TOOL_ERR_LOGIN_NEEDED"
    """The server wants a login first, which a person does in a browser. `list_servers` has the address."""
    INVALID_ARGUMENTS = "ERR_INVALID_ARGUMENTS"
    """An argument is missing, unknown or of the wrong kind."""
    TASK_NOT_FOUND = "ERR_TASK_NOT_FOUND"
    """No task has that id (any more)."""
    REQUEST_NOT_FOUND = "ERR_REQUEST_NOT_FOUND"
    """No such request is waiting: answered, expired or never there."""
    TIMER_NOT_FOUND = "ERR_TIMER_NOT_FOUND"
    """No timer has that id (any more)."""
    RESULT_NOT_FOUND = "ERR_RESULT_NOT_FOUND"
    """No large result has that handle (any more)."""
    LIMIT_EXCEEDED = "ERR_LIMIT_EXCEEDED"
    """A limit of this session or installation is reached."""
    NOT_ALLOWED = "ERR_NOT_ALLOWED"
    """The operator's or the server's configuration forbids it."""
    UNSUPPORTED = "ERR_UNSUPPORTED"
    """The server does not offer this part of the protocol."""

    @property
    def help_url(self) -> str:
        """The page about it."""
        return f"{HELP_URL}{self}.html"


class EmceepeeError(Exception):
    """A failure meant for the caller: `str(error)` is the sentence, `code` what a program reads."""

    code = ErrorCode.EXECUTION_FAILED

    def __init__(self, message: str, *, code: ErrorCode | None = None, details: JsonObject | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.details: JsonObject = details or {}

    def body(self) -> JsonObject:
        """As it is kept with what failed."""
        return {"code": str(self.code), "message": str(self), "details": self.details}

    def reply_body(self) -> JsonObject:
        """Return the error for a caller, with the address of the page about its code."""
        return {**self.body(), "details": {**self.details, "help": self.code.help_url}}


def caught(error: EmceepeeError) -> EmceepeeError:
    """Remove the traceback and the cause. They refer to every frame on the way, with all its arguments; if one of these
    frames stores the error in a variable, only the garbage collector could free them.
    """
    chain: list[BaseException | None] = [error]
    while chain:
        if (one := chain.pop()) is not None:
            chain += (one.__cause__, one.__context__)
            one.__traceback__ = one.__cause__ = one.__context__ = None
    return error


class Problem(NamedTuple):
    """One mistake in a caller's input: an entry of `details.problems`.

    `field` is None for a problem of no field in particular. `code` is the schema keyword that is violated, None if
    there is none, or "more" if the list is cut off.
    """

    field: str | None
    code: str | None
    message: str

    def __str__(self) -> str:
        return self.message if self.field is None else f"{self.field}: {self.message}"


class InvalidArguments(EmceepeeError):
    """The caller's arguments do not fit."""

    code = ErrorCode.INVALID_ARGUMENTS


class NotAllowed(EmceepeeError):
    """A rule of the configuration forbids it."""

    code = ErrorCode.NOT_ALLOWED


class Unsupported(EmceepeeError):
    """The backend does not offer it."""

    code = ErrorCode.UNSUPPORTED


class ExecutionFailed(EmceepeeError):
    """The backend was asked and refused, or could not be brought up to be asked."""

    code = ErrorCode.EXECUTION_FAILED


class LinksNeeded(ExecutionFailed):
    """The user has to open links before the backend runs the request. Each is the parameters of an elicitation."""

    def __init__(self, message: str, *, details: JsonObject, links: tuple[JsonObject, ...]) -> None:
        super().__init__(message, details=details)
        self.links = links


class BackendDisconnected(EmceepeeError):
    """There is no connection to ask on, or it broke while asking."""

    code = ErrorCode.SERVER_DISCONNECTED


class LoginNeeded(BackendDisconnected):
    """The backend lets nobody in before a person has logged in. Nothing ran."""

    code = ErrorCode.LOGIN_NEEDED


class TimedOut(EmceepeeError):
    """The time given passed without an answer."""

    code = ErrorCode.TIMEOUT


_FORGOTTEN = (
    "Servers added in an earlier run are gone: state is in memory, and ends with the process. To keep servers, start "
    "emceepee with `--attach auto` or `--state sqlite`."
)


class UnknownBackend(EmceepeeError):
    """No server is configured under that name."""

    code = ErrorCode.SERVER_NOT_FOUND

    def __init__(self, name: str, *, known: Iterable[str], are_forgotten: bool = False) -> None:
        """`are_forgotten`: servers that were added before this process started are not known any more."""
        known = sorted(known)
        near = near_names(name, known)
        hint = _did_you_mean(near) or (f"Known: {_shortened(known)}. " if known else "No server is configured yet. ")
        message = f'No server is called "{cut_name(name)}". {hint}Add one with {call_to("add_server")}.'
        if are_forgotten and not near:
            message += f" {_FORGOTTEN}"
        super().__init__(message, details={"server": cut_name(name), "near": near, "known": known[:_LISTED_NAMES]})


class DisabledBackend(UnknownBackend):
    """The server is configured, and disabled."""

    def __init__(self, name: str, *, remedy: str) -> None:
        message = f'Server "{name}" is disabled. {remedy}'
        EmceepeeError.__init__(self, message, details={"server": name, "disabled": True})


class UnknownTool(EmceepeeError):
    """The server lists no tool of that name, and refused the call."""

    code = ErrorCode.TOOL_NOT_FOUND

    def __init__(
        self, name: str, *, backend: str, known: Iterable[str], answer: str, whole: JsonObject | None = None
    ) -> None:
        """`answer` is what the server said; `whole` is that as it came, for `details`."""
        known = sorted(known)
        near = near_names(name, known)
        hint = _did_you_mean(near) or (f"It has: {_shortened(known)}. " if known else "It lists no tools. ")
        name = cut_name(name)
        shown = f"{hint}{call_to('list_tools')} shows them."
        message = f'Server "{backend}" has no tool "{name}". {shown} The server said: {answer}'
        super().__init__(message, details={"server": backend, "tool": name, "near": near} | (whole or {}))


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The names someone may have meant, best first: alike in spelling, or one holding the other."""
    if len(name) > LONGEST_NAME:
        return []
    short = (candidate for candidate in known if len(candidate) <= LONGEST_NAME)
    by_folded = {candidate.casefold(): candidate for candidate in islice(short, MOST_COMPARED)}
    folded = name.casefold()
    alike = _alike(folded, by_folded)
    holding = [key for key in by_folded if key not in alike and folded and (folded in key or key in folded)]
    return [by_folded[key] for key in [*alike, *holding][:5]]


def _alike(name: str, candidates: Iterable[str]) -> list[str]:
    matcher = SequenceMatcher(b=name)
    glanced_at: list[tuple[float, str]] = []
    for candidate in candidates:
        matcher.set_seq1(candidate)
        if matcher.real_quick_ratio() >= _ALIKE and (upper_bound := matcher.quick_ratio()) >= _ALIKE:
            glanced_at.append((upper_bound, candidate))
    found: list[tuple[float, str]] = []
    for _, candidate in nlargest(MOST_COMPARED_CLOSELY, glanced_at):
        matcher.set_seq1(candidate)
        found.append((matcher.ratio(), candidate))
    return [candidate for ratio, candidate in nlargest(5, found) if ratio >= _ALIKE]


def cut_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _did_you_mean(near: list[str]) -> str:
    return f"Did you mean {' or '.join(near)}? " if near else ""


def _shortened(names: list[str]) -> str:
    rest = len(names) - _LISTED_NAMES
    return ", ".join(map(cut_name, names[:_LISTED_NAMES])) + (f" and {rest} more" if rest > 0 else "")

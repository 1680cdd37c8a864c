"""Errors for callers. Each has a stable code, and a message that names the next step."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import StrEnum
from heapq import nlargest
from itertools import islice
from typing import NamedTuple

from emceepee.surface import call_to
from emceepee.wire.json_types import JsonObject

_LISTED_NAMES = 10
LONGEST_NAME = 100  # characters: a longer name is no typing error; messages show only its beginning
MOST_COMPARED, MOST_COMPARED_CLOSELY = 1000, 50  # names: an exact comparison costs a hundred times more
_ALIKE = 0.6
MOST_PROBLEMS = 20  # in one error
DOCS_URL = "https://emceepee.github.io/emceepee/"  # the same address as in mkdocs.yml and pyproject.toml
HELP_URL = f"{DOCS_URL}errors/"  # the directory with one page per code


class ErrorCode(StrEnum):
    """The stable error codes. The docstring of each value is its entry in the reference."""

    SESSION_NOT_FOUND = "TOOL_ERR_SESSION_NOT_FOUND"
    """The session is unknown or has ended."""
    SERVER_NOT_FOUND = "TOOL_ERR_SERVER_NOT_FOUND"
    """No server has that name."""
    TOOL_NOT_FOUND = "TOOL_ERR_NOT_FOUND"
    """The server has no such tool."""
    EXECUTION_FAILED = "TOOL_ERR_EXECUTION_FAILED"
    """The server answered with a protocol error, or emceepee could not connect to it."""
    TIMEOUT = "TOOL_ERR_TIMEOUT"
    """The server did not answer within the timeout."""
    SERVER_DISCONNECTED = "TOOL_ERR_SERVER_DISCONNECTED"
    """There is no connection to the server, or the connection was lost during the call."""
    LOGIN_NEEDED = "TOOL_ERR_LOGIN_NEEDED"
    """The server requires a login in a browser. `list_servers` returns the address."""
    INVALID_ARGUMENTS = "ERR_INVALID_ARGUMENTS"
    """An argument is missing, unknown, or of the wrong type."""
    TASK_NOT_FOUND = "ERR_TASK_NOT_FOUND"
    """No task has that id, or the task is no longer stored."""
    REQUEST_NOT_FOUND = "ERR_REQUEST_NOT_FOUND"
    """No open request has that id: it was answered, it expired, or it never existed."""
    TIMER_NOT_FOUND = "ERR_TIMER_NOT_FOUND"
    """No timer has that id, or the timer is no longer stored."""
    RESULT_NOT_FOUND = "ERR_RESULT_NOT_FOUND"
    """No large result has that handle, or the result is no longer stored."""
    LIMIT_EXCEEDED = "ERR_LIMIT_EXCEEDED"
    """A limit of this session or installation is reached."""
    NOT_ALLOWED = "ERR_NOT_ALLOWED"
    """The configuration of the operator or of the server does not allow the request."""
    UNSUPPORTED = "ERR_UNSUPPORTED"
    """The server does not offer this part of the protocol."""

    @property
    def help_url(self) -> str:
        """Return the address of the page about this code."""
        return f"{HELP_URL}{self}.html"


class EmceepeeError(Exception):
    """A failure to report to the caller: `str(error)` is the message, and `code` is for programs."""

    code = ErrorCode.EXECUTION_FAILED

    def __init__(self, message: str, *, code: ErrorCode | None = None, details: JsonObject | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code
        self.details: JsonObject = details or {}

    def body(self) -> JsonObject:
        """Return the error in the form in which records store it."""
        return {"code": str(self.code), "message": str(self), "details": self.details}

    def reply_body(self) -> JsonObject:
        """Return the error for a caller, with the address of the page about its code."""
        return {**self.body(), "details": {**self.details, "help": self.code.help_url}}


def caught(error: EmceepeeError) -> EmceepeeError:
    """Remove the traceback and the cause, and return the error.

    The traceback refers to every frame and its arguments. If one of these frames stores the error in a variable, they
    form a reference cycle, which only the garbage collector can free.
    """
    chain: list[BaseException | None] = [error]
    while chain:
        if (one := chain.pop()) is not None:
            chain += (one.__cause__, one.__context__)
            one.__traceback__ = one.__cause__ = one.__context__ = None
    return error


class Problem(NamedTuple):
    """One mistake in a caller's input: an entry of `details.problems`.

    `field` is None if the problem concerns no single field. `code` is the violated schema keyword, None if no keyword
    applies, or "more" if the list is cut off.
    """

    field: str | None
    code: str | None
    message: str

    def __str__(self) -> str:
        return self.message if self.field is None else f"{self.field}: {self.message}"


class InvalidArguments(EmceepeeError):
    """The caller's arguments are invalid."""

    code = ErrorCode.INVALID_ARGUMENTS


class NotAllowed(EmceepeeError):
    """A rule of the configuration forbids the request."""

    code = ErrorCode.NOT_ALLOWED


class Unsupported(EmceepeeError):
    """The backend does not support the request."""

    code = ErrorCode.UNSUPPORTED


class ExecutionFailed(EmceepeeError):
    """The backend refused the request, or could not be started or connected."""

    code = ErrorCode.EXECUTION_FAILED


class LinksNeeded(ExecutionFailed):
    """The user has to open links before the backend runs the request. Each is the parameters of an elicitation."""

    def __init__(self, message: str, *, details: JsonObject, links: tuple[JsonObject, ...]) -> None:
        super().__init__(message, details=details)
        self.links = links


class BackendDisconnected(EmceepeeError):
    """There is no connection to the backend, or it was lost during the request."""

    code = ErrorCode.SERVER_DISCONNECTED


class LoginNeeded(BackendDisconnected):
    """The backend rejects all requests until a person logs in. The request did not run."""

    code = ErrorCode.LOGIN_NEEDED


class TimedOut(EmceepeeError):
    """The timeout expired before the answer."""

    code = ErrorCode.TIMEOUT


_FORGOTTEN = (
    "Servers added in an earlier run are gone: state is in memory, and ends with the process. To keep servers, start "
    "emceepee with `--attach auto` or `--state sqlite`."
)


class UnknownBackend(EmceepeeError):
    """No server is configured under that name."""

    code = ErrorCode.SERVER_NOT_FOUND

    def __init__(self, name: str, *, known: Iterable[str], are_forgotten: bool = False) -> None:
        """`are_forgotten`: the servers that were added before this process started are lost."""
        known = sorted(known)
        near = near_names(name, known)
        hint = _did_you_mean(near) or (f"Known: {_shortened(known)}. " if known else "No server is configured yet. ")
        message = f'No server is called "{cut_name(name)}". {hint}Add one with {call_to("add_server")}.'
        if are_forgotten and not near:
            message += f" {_FORGOTTEN}"
        super().__init__(message, details={"server": cut_name(name), "near": near, "known": known[:_LISTED_NAMES]})


class DisabledBackend(UnknownBackend):
    """The server is configured but disabled."""

    def __init__(self, name: str, *, remedy: str) -> None:
        message = f'Server "{name}" is disabled. {remedy}'
        EmceepeeError.__init__(self, message, details={"server": name, "disabled": True})


class UnknownTool(EmceepeeError):
    """The server refused the call and lists no tool of that name."""

    code = ErrorCode.TOOL_NOT_FOUND

    def __init__(
        self, name: str, *, backend: str, known: Iterable[str], answer: str, whole: JsonObject | None = None
    ) -> None:
        """`answer` is the server's error message. `whole` is its complete error, for `details`."""
        known = sorted(known)
        near = near_names(name, known)
        hint = _did_you_mean(near) or (f"It has: {_shortened(known)}. " if known else "It lists no tools. ")
        name = cut_name(name)
        shown = f"{hint}{call_to('list_tools')} shows them."
        message = f'Server "{backend}" has no tool "{name}". {shown} The server said: {answer}'
        super().__init__(message, details={"server": backend, "tool": name, "near": near} | (whole or {}))


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """Return likely intended names, best first: similar names, then names that contain it or that it contains."""
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

"""The phases of one request on a timeline. Other modules need only one context manager, `phase`.

The context variable of the running task identifies the request, so no code passes it down.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self

from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.observer_guard import ObserverGuard
from emceepee.telemetry.redaction import MASK, public_start
from emceepee.telemetry.value_preview import preview
from emceepee.wire.codec import decode, encode
from emceepee.wire.json_types import JsonObject

log = EventLog("requests")
MOST_PHASES = 200  # per request: a list over many servers has several phases per server
LONGEST_ERROR = 300
LONGEST_NAME = 200
KEPT_BYTES = 2 << 10  # approximate bytes of arguments and of results: a thousand should fit into a processor's cache


class SpanKind(StrEnum):
    """The purpose of a request."""

    TOOL_CALL = "tool_call"
    """A backend's tool."""
    RESOURCE_READ = "resource_read"
    """A backend's resource."""
    PROMPT_GET = "prompt_get"
    """A backend's prompt."""
    OWN_TOOL = "own_tool"
    """Another of emceepee's own tools."""
    UNKNOWN_TOOL = "unknown_tool"
    """A call of an unknown tool. Only observers see it."""
    PROTOCOL = "protocol"
    """Any other request of the protocol."""


class SpanStatus(StrEnum):
    """The status of a request."""

    PENDING = "pending"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class PhaseKind(StrEnum):
    """The ways in which a request spends its time."""

    CONNECTING = "connecting"
    """emceepee is connecting to the backend first."""
    CALL = "call"
    """The backend works on the request."""
    RETRY = "retry"
    """The backend works on the second attempt, because it certainly did not run the first."""
    WAITING = "waiting"
    """The backend waits for a person's or a client's answer."""
    MAYBE_WAITING = "maybe_waiting"
    """The backend waits for an answer, and this is one of the requests that may have asked the question."""


class SpanWatch:
    """An observer's view of one request. It has no reference to the span, which references it."""

    __slots__ = ()

    def became_task(self, span: "Span") -> None:
        """The caller received a task, and the request continues as that task."""

    def ended(self, span: "Span", result: JsonObject | None) -> None: ...


class Phase:
    """A part of a request's time; a context manager. `ended` is None while it is open."""

    __slots__ = ("_span", "began", "ended", "kind", "server")

    def __init__(self, span: "Span", kind: PhaseKind, server: str) -> None:
        self._span, self.kind, self.server = span, kind, server
        self.began = 0.0
        self.ended: float | None = None

    def __enter__(self) -> Self:
        self.began = self._span.elapsed()
        self._span.phases.append(self)
        self._span.touch()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.ended = self._span.elapsed()
        self._span.touch()
        del self._span  # the span has this phase among its phases: a reference cycle would need the garbage collector

    def change(self, kind: PhaseKind) -> None:
        """Change the kind of an open phase, from its beginning."""
        if self.kind is not kind:
            self.kind = kind
            self._span.touch()

    def withdraw(self) -> None:
        """Remove an open phase that turned out to belong to another request."""
        self._span.phases.remove(self)
        self._span.touch()
        del self._span


class Span:
    """One request from its arrival to its reply, or to the end of its task. Times are seconds after `at`."""

    __slots__ = (
        "_arguments",
        "_monotonic",
        "_result",
        "_touched",
        "_zero",
        "at",
        "ended",
        "error",
        "is_cut",
        "is_private",
        "kind",
        "name",
        "number",
        "parent",
        "phases",
        "progress",
        "revision",
        "server",
        "span_id",
        "status",
        "task_id",
        "watches",
    )

    def __init__(
        self,
        kind: SpanKind,
        name: str,
        server: str | None,
        arguments: JsonObject,
        *,
        at: datetime,
        monotonic: Callable[[], float],
        touched: "Callable[[Span], None]",
    ) -> None:
        self.kind, self.name, self.at = kind, _short(name), at
        self.server = None if server is None else _short(server)
        self._arguments, self.is_cut = _packed(arguments)
        self.is_private = False  # its result may contain an answer to a question
        self.status = SpanStatus.PENDING
        self.phases: list[Phase] = []
        self.ended: float | None = None
        self.error: str | None = None
        self._result = b"null"
        self.task_id: str | None = None
        self.progress: JsonObject | None = None
        self.span_id = ""  # set on first view
        self.parent: str | None = None  # the id of the request that this one is a part of
        self.number = self.revision = 0  # set by the journal
        self.watches: tuple[SpanWatch, ...] = ()
        self._monotonic, self._touched = monotonic, touched
        self._zero = monotonic()

    def __repr__(self) -> str:
        return f"<Span {self.kind} {self.name} {self.status}>"

    @property
    def arguments(self) -> Any:
        return decode(self._arguments)

    @property
    def result(self) -> Any:
        return decode(self._result)

    def elapsed(self) -> float:
        return self._monotonic() - self._zero

    def touch(self) -> None:
        """Notify readers of a change."""
        self._touched(self)

    def became_task(self, task_id: str) -> None:
        self.task_id = task_id
        self.touch()
        for watch in self.watches:
            with ObserverGuard(watch):
                watch.became_task(self)

    def progressed(self, progress: JsonObject) -> None:
        self.progress, _ = preview(progress, KEPT_BYTES)
        self.touch()

    def replied(self, result: JsonObject) -> None:
        """Record the result, as an error if it is marked as one."""
        if self.is_private:
            result = {"content": [{"type": "text", "text": MASK}], "isError": bool(result.get("isError"))}
        if result.get("isError"):
            self.failed(_first_text(result), result)
        else:
            self._end(SpanStatus.SUCCESS, result)

    def failed(self, error: str, result: JsonObject | None = None) -> None:
        self.error = _short(error, LONGEST_ERROR)
        self._end(SpanStatus.ERROR, result)

    def cancelled(self) -> None:
        self._end(SpanStatus.CANCELLED, None)

    def _end(self, status: SpanStatus, result: JsonObject | None) -> None:
        if self.ended is not None:
            return
        self.ended = self.elapsed()
        self.status = status
        self._result, is_cut = _packed(result)
        self.is_cut = self.is_cut or is_cut
        self.touch()
        if self.watches:
            self._tell_watches(result)
        if log.is_debugging():
            log.debug(
                "request_done",
                type=str(self.kind),
                name=self.name,
                server=self.server,
                status=str(status),
                durationMs=round(self.ended * 1000, 1),
            )

    def _tell_watches(self, result: JsonObject | None) -> None:
        watches, self.watches = self.watches, ()
        for watch in watches:
            with ObserverGuard(watch):
                watch.ended(self, result)


class _NoPhase:
    """Stands for a phase of work outside of any request."""

    __slots__ = ()

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, at: object) -> None: ...


_NO_PHASE = _NoPhase()
_current: ContextVar[Span | None] = ContextVar("span", default=None)


def current() -> Span | None:
    """Return the request of the current context."""
    return _current.get()


def serve(span: Span | None) -> None:
    """Assign further work in this context, and contexts copied from it, to the request."""
    _current.set(span)


@contextmanager
def served(span: Span | None) -> Iterator[None]:
    """Like `serve`, until the context manager exits."""
    token = _current.set(span)
    try:
        yield
    finally:
        _current.reset(token)


def phase(kind: PhaseKind, server: str) -> Phase | _NoPhase:
    """`with phase(PhaseKind.CALL, "github"): …` adds a phase to the current request, if any."""
    return _phase_of(_current.get(), kind, server)


def open_phase(span: Span | None, kind: PhaseKind, server: str) -> Phase | None:
    """Begin a phase of the given request; None if it is not recorded."""
    phase = _phase_of(span, kind, server)
    return phase.__enter__() if isinstance(phase, Phase) else None


def _phase_of(span: Span | None, kind: PhaseKind, server: str) -> Phase | _NoPhase:
    if span is None or span.ended is not None or len(span.phases) >= MOST_PHASES:
        return _NO_PHASE
    return Phase(span, kind, server)


def _short(text: str, most: int = LONGEST_NAME) -> str:
    """Cut a long text after removing its secrets: in a cut URL they might not be recognizable."""
    return text if len(text) <= most else f"{public_start(text, most - 1)}…"


def _packed(value: JsonObject | None) -> tuple[bytes, bool]:
    """Encode as one block of memory. A thousand stored requests would otherwise be ten thousand scattered objects."""
    small, is_cut = preview(value, KEPT_BYTES)
    try:
        return encode(small), is_cut
    except RecursionError:
        return encode("…"), True


def _first_text(result: JsonObject) -> str:
    content = result.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return str(first.get("text", "")) if isinstance(first, dict) else ""

"""One request to a backend, with the objects that carry out its state's effects. `state/call_step.py` has the rules."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError, InvalidArguments
from emceepee.sessions.asker import Asker
from emceepee.sessions.records import RecordKind
from emceepee.state.call_step import WAITING, CallStage, CallState
from emceepee.state.limits import Limits
from emceepee.telemetry.spans import Span
from emceepee.wire.json_types import JsonObject

IMPATIENT_SECONDS = 1.0  # a tool with a shorter timeout expects the call to take long
_FINISHED = CallStage.FINISHED  # an enum attribute lookup is slow
RETENTION_SECONDS = 60.0  # how long a backend is asked to keep a finished result
OnProgress = Callable[[JsonObject], None]


class Named(Protocol):
    """The part of a server's settings that a call needs."""

    @property
    def name(self) -> str: ...


class Callee(Protocol):
    """The target of a call: the connection to a backend, or a script that runs here."""

    @property
    def spec(self) -> Named: ...

    async def request(self, method: str, params: JsonObject, *, origin: Any, plan: Any) -> JsonObject:
        """Return the raw result. Raises: EmceepeeError."""
        ...

    async def follow(self, task: BackendTask, *, origin: Any) -> JsonObject: ...

    def leave_task(self, origin: Any) -> None:
        """Leave the task to another process, which will resume the call."""
        ...


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Call:
    """`released` is resolved when the waiting tool may return: the outcome is there, or the call was promoted.

    `finished` exists only for promoted calls. It is resolved when nothing more will come from the backend.
    """

    connection: Callee
    method: str
    params: JsonObject
    tool: str
    arguments: JsonObject
    ttl: timedelta
    state: CallState = WAITING
    on_progress: OnProgress | None = None
    span: Span | None = None
    asker: Asker | None = None  # the caller's connection, if its client supports native questions
    conversation: object | None = None  # the conversation that made the call, if several share its session
    call_id: str | None = None  # also the id of its task; assigned on demand
    released: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    finished: "asyncio.Future[None] | None" = None
    runner: "asyncio.Task[None] | None" = None
    started_at: float = 0.0  # by the monotonic clock
    patience: float = 0.0  # seconds that the tool waits at most
    backend_task: BackendTask | None = None  # the task that the backend runs for the call
    is_unsent: bool = False  # stored as not sent, until a link sends it
    is_resumed: bool = False  # another process started it
    is_stored: bool = False  # another process could resume it
    stored_as: RecordKind = RecordKind.BACKEND_TASK  # the kind of its stored record

    def __repr__(self) -> str:
        task = f" task={self.call_id}" if self.state.has_task else ""
        return f"<Call {self.server} {self.tool} {self.state.stage}{task}>"

    @property
    def seconds(self) -> float:
        """Return the longest time that the call may take."""
        return self.patience + self.ttl.total_seconds() + RETENTION_SECONDS

    @property
    def is_impatient(self) -> bool:
        return self.patience < IMPATIENT_SECONDS

    @property
    def can_be_stored(self) -> bool:
        """Whether there is anything to resume from."""
        return self.stored_as is not RecordKind.BACKEND_TASK or self.backend_task is not None or self.is_unsent

    @property
    def server(self) -> str:
        return self.connection.spec.name

    def release_memory(self) -> None:
        """Drop the runner and the large data of an ended call, which would form a reference cycle.

        The arguments of an undelivered result stay: an unread reply becomes a task with them.
        """
        self.runner = self.on_progress = None
        self.is_unsent = False
        self.params = {}
        state = self.state
        if state.has_task or state.stage is not _FINISHED:
            self.arguments = {}

    def result(self) -> JsonObject:
        """The backend's raw result. Raises: EmceepeeError."""
        outcome = self.state.outcome
        if isinstance(outcome, EmceepeeError):
            raise outcome
        if outcome is None:
            raise EmceepeeError("The call was cancelled before it had a result.")
        return outcome


def patience(limits: Limits, spec: BackendSpec, timeout: float | None, *, is_quiet: bool) -> float:
    """Return the tool's wait in seconds. With `is_quiet`, its caller gets no progress and may stop after a minute."""
    if timeout is not None:
        if timeout > limits.longest_call_seconds:
            most = round(limits.longest_call_seconds * 1000)
            raise InvalidArguments(f"timeout_ms may be at most {most}.", details={"most": most})
        return timeout
    if spec.timeout is not None:
        return spec.timeout
    return min(limits.call_seconds, limits.quiet_call_seconds) if is_quiet else limits.call_seconds


def time_to_live(limits: Limits, seconds: float | None) -> timedelta:
    """Return how long the call may take once it is a task."""
    if seconds is None:
        return timedelta(seconds=limits.task_ttl_seconds)
    if seconds > limits.longest_task_ttl_seconds:
        most = round(limits.longest_task_ttl_seconds * 1000)
        raise InvalidArguments(f"task_ttl_ms may be at most {most}.", details={"most": most})
    return timedelta(seconds=seconds)

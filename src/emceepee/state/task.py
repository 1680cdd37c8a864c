"""A call that became a task, as a transition table and a record."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from emceepee.state.machine import Machine, Move
from emceepee.wire.json_types import JsonObject


class TaskStatus(StrEnum):
    """The status of a task."""

    WORKING = "working"
    """The call is running."""
    COMPLETED = "completed"
    """The call has its result."""
    FAILED = "failed"
    """The call failed; `error` gives the reason."""
    CANCELLED = "cancelled"
    """The caller cancelled the task."""
    EXPIRED = "expired"
    """The time to live ended before the call."""


LET_GO = "its result was dropped to make room for newer ones"
LONGEST_MESSAGE = 1000
_S = TaskStatus
TASK = Machine(
    "proxy_task_states",
    "A task: a call that did not finish in time, or whose server asked a question",
    begins=(_S.WORKING, "A call does not finish in time, or its server asks a question"),
    moves=[
        Move(_S.WORKING, _S.COMPLETED, "The server returns a result"),
        Move(_S.WORKING, _S.FAILED, "The server returns an error, or its connection is lost"),
        Move(_S.WORKING, _S.CANCELLED, "cancel_task"),
        Move(_S.WORKING, _S.EXPIRED, "The time to live has passed"),
    ],
    ends="Forgotten after the retention",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Task:
    """A task record. It is frozen: every transition returns the next record, or raises ForbiddenMove."""

    task_id: str
    server: str
    tool: str
    method: str
    arguments: JsonObject
    created_at: datetime
    updated_at: datetime
    ttl: timedelta
    retention: timedelta
    status: TaskStatus = TaskStatus.WORKING
    message: str | None = None
    progress: JsonObject | None = None
    result: JsonObject | None = None
    error: JsonObject | None = None

    def __repr__(self) -> str:
        return f"<Task {self.task_id} {self.server} {self.tool} {self.status}>"

    @property
    def has_ended(self) -> bool:
        return TASK.is_final(self.status)

    @property
    def expires_at(self) -> datetime:
        return self.created_at + self.ttl

    @property
    def next_deadline(self) -> datetime:
        """When time changes something: the task expires, or an ended task is removed."""
        return self.updated_at + self.retention if self.has_ended else self.expires_at

    def is_due(self, now: datetime) -> bool:
        return now >= self.next_deadline

    def completed(self, result: JsonObject, at: datetime) -> "Task":
        return replace(self._ended(TaskStatus.COMPLETED, at), result=result)

    def failed(self, error: JsonObject, at: datetime) -> "Task":
        return replace(self._ended(TaskStatus.FAILED, at, _cut(str(error.get("message")))), error=error)

    def cancelled(self, at: datetime) -> "Task":
        return self._ended(TaskStatus.CANCELLED, at, "cancelled by the caller")

    def expired(self, at: datetime) -> "Task":
        return self._ended(TaskStatus.EXPIRED, at, "outlived its time to live")

    def with_progress(self, progress: JsonObject, at: datetime) -> "Task":
        """Return the task with the server's latest progress; an ended task is unchanged."""
        if self.has_ended:
            return self
        words = progress.get("message")
        return replace(
            self, progress=progress, updated_at=at, message=_cut(words) if isinstance(words, str) else self.message
        )

    def with_message(self, message: str, at: datetime) -> "Task":
        """Return the task with the server's latest status message; an ended task is unchanged."""
        return self if self.has_ended else replace(self, message=_cut(message), updated_at=at)

    def without_result(self) -> "Task":
        """Return the task without its large parts, to free memory. Its outcome remains."""
        error = self.error and {key: self.error.get(key) for key in ("code", "message")} | {"details": {}}
        message = self.message if self.result is None else LET_GO
        return replace(self, arguments={}, result=None, error=error, progress=None, message=message)

    def _ended(self, status: TaskStatus, at: datetime, message: str | None = None) -> "Task":
        TASK.check(self.status, status)
        return replace(self, status=status, updated_at=at, message=message)


def _cut(words: str) -> str:
    return words if len(words) <= LONGEST_MESSAGE else words[: LONGEST_MESSAGE - 1] + "…"

"""Parses a backend's messages about its own tasks, in either era, into one type.

2025-11-25    tools/call {task} → {task}            tasks/get → task        tasks/result → the result, once available
2026-07-28    tools/call → resultType "task", task  tasks/get → task with its result, its error, or its questions
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.wire.json_types import JsonObject

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
RELATED_TASK = "io.modelcontextprotocol/related-task"
STATUS_CHANGED = "notifications/tasks/status"
TASK_METHODS = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})  # of 2026-07-28, routed by task
LONGEST_TASK_ID = 1000  # characters
LONGEST_MESSAGE = 1000
MOST_QUESTIONS = 100  # in one answer


class RemoteStatus(StrEnum):
    """The status of a task at its backend."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self not in (RemoteStatus.WORKING, RemoteStatus.INPUT_REQUIRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A backend's report about a task. The last three fields are for 2026-07-28 only."""

    status: RemoteStatus
    message: str | None = None
    interval: float | None = None  # seconds between polls, as requested by the backend
    questions: Mapping[str, JsonObject] = field(default_factory=dict)
    result: JsonObject | None = None
    error: JsonObject | None = None


class CreatedTask(dict[str, Any]):
    """A backend's answer to a call that it runs as its own task.

    `token` is the task's progress token. Only 2025-11-25 has it.
    """

    token: str | None = None


def is_created(result: JsonObject, method: str) -> bool:
    """Return whether a 2026-07-28 backend answered a call with a task."""
    return result.get("resultType") == "task" and method == "tools/call"


def as_created(result: JsonObject, token: str) -> JsonObject:
    """Mark the answer of a 2025-11-25 backend as a `CreatedTask` with `token`, if it is a task."""
    if not isinstance(result.get("task"), dict):
        return result
    created = CreatedTask(result)
    created.token = token
    return created


def read_created(created: CreatedTask, *, is_modern: bool) -> tuple[str, Snapshot]:
    """Return the id and the status of the task. Raises: LinkError."""
    status_object = created if is_modern else created["task"]
    task_id = status_object.get("taskId")
    if not isinstance(task_id, str) or not 0 < len(task_id) <= LONGEST_TASK_ID:
        raise LinkError(LinkFailure.PROTOCOL, "it began a task of its own without a usable taskId")
    return task_id, read_snapshot(status_object, is_modern=is_modern)


def read_snapshot(status_object: JsonObject, *, is_modern: bool) -> Snapshot:
    """Raises: LinkError."""
    status = status_object.get("status")
    if not isinstance(status, str):
        raise LinkError(LinkFailure.PROTOCOL, "it reported a task without its status")
    message = status_object.get("statusMessage")
    return Snapshot(
        # An unknown status cannot be final, because the specification fixes the set of final ones.
        status=RemoteStatus(status) if status in set(RemoteStatus) else RemoteStatus.WORKING,
        message=message[:LONGEST_MESSAGE] if isinstance(message, str) and message else None,
        interval=_seconds(status_object.get("pollIntervalMs" if is_modern else "pollInterval")),
        questions=_questions(status_object.get("inputRequests")) if is_modern else {},
        result=_mapping(status_object.get("result")) if is_modern else None,
        error=_mapping(status_object.get("error")) if is_modern else None,
    )


def related_task(params: JsonObject) -> str | None:
    """Return the task that a message of a backend names, or None."""
    meta = params.get("_meta")
    related = meta.get(RELATED_TASK) if isinstance(meta, dict) else None
    task_id = related.get("taskId") if isinstance(related, dict) else None
    return task_id if isinstance(task_id, str) else None


def without_related_task(result: JsonObject) -> JsonObject:
    """Return the result without its task's id, which has no meaning for a caller."""
    meta = result.get("_meta")
    if not isinstance(meta, dict) or RELATED_TASK not in meta:
        return result
    rest = {key: value for key, value in meta.items() if key != RELATED_TASK}
    return {key: value for key, value in result.items() if key != "_meta"} | ({"_meta": rest} if rest else {})


def _seconds(milliseconds: Any) -> float | None:
    is_number = isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool)
    return milliseconds / 1000 if is_number and math.isfinite(milliseconds) and milliseconds > 0 else None


def _questions(asked: Any) -> dict[str, JsonObject]:
    if not isinstance(asked, dict):
        return {}
    return {key: item for key, item in list(asked.items())[:MOST_QUESTIONS] if isinstance(item, dict)}


def _mapping(value: Any) -> JsonObject | None:
    return value if isinstance(value, dict) else None

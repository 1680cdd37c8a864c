"""Finds out which tasks of a server belong to one session of a shared link, from the session's own requests."""

from collections.abc import Awaitable

from emceepee.backends.link import RpcError
from emceepee.backends.tasks.task_messages import (
    LONGEST_TASK_ID,
    STATUS_CHANGED,
    RemoteStatus,
    is_created,
    related_task,
)
from emceepee.wire.json_types import JsonObject

MOST_TASKS = 1000  # far more than a session runs at once; beyond that, the oldest are dropped
CALL, STATUS, PROGRESS = "tools/call", "tasks/get", "notifications/progress"
_LAST_WORDS = ("tasks/result", "tasks/cancel")  # after their answers, the server sends no more messages about the task
_FINAL = frozenset(status for status in RemoteStatus if status.is_final)


class OwnTasks:
    """The ids of a session's tasks, and their progress tokens. Each is remembered until its task ends."""

    def __init__(self) -> None:
        self._tokens: set[str] = set()  # includes calls whose task is not known yet
        self._by_id: dict[str, str | None] = {}  # the progress token of each task

    def __len__(self) -> int:
        return len(self._by_id)

    def are_meant(self, method: str, params: JsonObject) -> bool:
        """Return whether a message of the server is about one of these tasks."""
        if method == PROGRESS:
            token = params.get("progressToken")
            return isinstance(token, str) and token in self._tokens
        task_id = named_task(method, params)
        return task_id is not None and task_id in self._by_id

    async def learn(self, method: str, params: JsonObject, asking: Awaitable[JsonObject]) -> JsonObject:
        """Return the answer to a session's request, after recording a task in it in the same turn of the event loop.

        Raises:
            RpcError, LinkError
        """
        token = _token(method, params)
        if token is not None:
            self._tokens.add(token)
        answer: JsonObject | None = None
        try:
            answer = await asking
        except RpcError:
            answer = {}
            raise
        finally:
            if method == CALL:
                self._learn_of_call(params, token, answer or {})
            elif answer is not None and isinstance(task_id := params.get("taskId"), str):
                self._learn_of_task(method, task_id, answer)
        return answer

    def _learn_of_call(self, params: JsonObject, token: str | None, answer: JsonObject) -> None:
        task_id = _created_id(params, answer)
        if task_id is not None:
            self._remember(task_id, token)
        elif token is not None:
            self._tokens.discard(token)

    def _learn_of_task(self, method: str, task_id: str, answer: JsonObject) -> None:
        if method in _LAST_WORDS or (method == STATUS and answer.get("status") in _FINAL):
            self._forget(task_id)
        elif method == STATUS:
            self._remember(task_id, None)  # another process or an earlier link began it

    def _remember(self, task_id: str, token: str | None) -> None:
        self._by_id.setdefault(task_id, token)
        if len(self._by_id) > MOST_TASKS:
            self._forget(next(iter(self._by_id)))

    def _forget(self, task_id: str) -> None:
        if (token := self._by_id.pop(task_id, None)) is not None:
            self._tokens.discard(token)


def named_task(method: str, params: JsonObject) -> str | None:
    """Return the task that a server's message names, or None."""
    task_id = params.get("taskId") if method == STATUS_CHANGED else related_task(params)
    return task_id if isinstance(task_id, str) else None


def _token(method: str, params: JsonObject) -> str | None:
    """Return the progress token of a call that is to become a task (2025-11-25 only), or None."""
    meta = params.get("_meta") if method == CALL and "task" in params else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str) else None


def _created_id(params: JsonObject, answer: JsonObject) -> str | None:
    """Return the id of the task that a call has become, or None."""
    created = answer if is_created(answer, CALL) else answer.get("task") if "task" in params else None
    task_id = created.get("taskId") if isinstance(created, dict) else None
    return task_id if isinstance(task_id, str) and len(task_id) <= LONGEST_TASK_ID else None

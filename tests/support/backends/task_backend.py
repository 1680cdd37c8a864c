"""A scripted backend that runs calls as tasks of its own, in either era. The test decides how each of them goes on."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from emceepee.backends.link import RpcError
from emceepee.backends.tasks.task_messages import RELATED_TASK
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.asking import NAME_FORM

INTERVAL = 0.5  # seconds between two polls, as it wants it
DONE: JsonObject = {"content": [{"type": "text", "text": "dug"}]}
FORM: JsonObject = {"message": "Your name?", "requestedSchema": NAME_FORM}
QUESTION: JsonObject = {"method": "elicitation/create", "params": FORM}


@dataclass
class RemoteTask:
    """How a task stands, as the next answer will say."""

    task_id: str
    call: JsonObject
    status: str = "working"
    message: str | None = None
    questions: JsonObject = field(default_factory=dict)
    result: JsonObject | None = None
    error: JsonObject | None = None
    answers: JsonObject = field(default_factory=dict)

    def complete(self, **result: Any) -> None:
        self.status, self.result = "completed", result or DONE

    def fail(self, **error: Any) -> None:
        self.status, self.error = "failed", error

    def ask(self, *keys: str) -> None:
        """As a backend of 2026-07-28 does."""
        self.status, self.questions = "input_required", dict.fromkeys(keys, QUESTION)


class TaskBackend(ScriptedBackend):
    """Tools are named as they are run: `required`, `optional`, and in 2026-07-28 every call is a task."""

    def __init__(self, *, modern: bool = False, is_process: bool = False) -> None:
        super().__init__(modern=modern, is_process=is_process)
        self.tasks: list[RemoteTask] = []
        self._ids = itertools.count(1)
        tools = [
            {"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": name}}
            for name in ("required", "optional", "forbidden")
        ]
        extra: JsonObject = {"tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}
        self.facts.capabilities |= {} if modern else extra
        self.answers |= {
            "tools/list": lambda _: {"tools": tools},
            "tasks/get": self._tell,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
        }
        if modern:
            self.answers["tools/call"] = self._begin

    @property
    def task(self) -> RemoteTask:
        return self.tasks[-1]

    def begin(self, call: JsonObject) -> RemoteTask:
        self.tasks.append(RemoteTask(f"remote-{next(self._ids)}", call))
        return self.task

    def counted(self, method: str) -> int:
        return [seen for seen, _ in self.seen].count(method)

    def push(self) -> None:
        """Tell of the newest task unasked, as a backend of 2025-11-25 may."""
        self.link.listener.handle_notification("notifications/tasks/status", self._view(self.task), None)

    def request(self, key: int | str) -> bool:
        """Ask something about the newest task, as a backend of 2025-11-25 does. False if it is the link's to answer."""
        asked = FORM | {"_meta": {RELATED_TASK: {"taskId": self.task.task_id}}}
        return self.link.listener.take_request(key, "elicitation/create", asked) is not None

    def forget(self) -> None:
        """As after a restart."""
        self.tasks.clear()

    async def begin_asked(self) -> RemoteTask:
        """The next call of 2025-11-25 must be one that asks for a task, and becomes one."""
        asked = await self.next_asked()
        assert "task" in asked.params, "it was called as any other"
        task = self.begin(asked.params)
        asked.reply(task=self._view(task))
        return task

    def _begin(self, params: JsonObject) -> JsonObject:
        return {"resultType": "task"} | self._view(self.begin(params))

    def _tell(self, params: JsonObject) -> JsonObject:
        view = self._view(self._find(params))
        return ({"resultType": "complete"} if self.facts.is_modern else {}) | view

    def _update(self, params: JsonObject) -> JsonObject:
        task = self._find(params)
        task.answers |= params["inputResponses"]
        for key in params["inputResponses"]:
            task.questions.pop(key, None)
        if not task.questions and task.status == "input_required":
            task.status = "working"
        return {"resultType": "complete"}

    def _cancel(self, params: JsonObject) -> JsonObject:
        self._find(params).status = "cancelled"
        return {"resultType": "complete"} if self.facts.is_modern else self._view(self._find(params))

    def _find(self, params: JsonObject) -> RemoteTask:
        for task in self.tasks:
            if task.task_id == params["taskId"]:
                return task
        raise RpcError({"code": INVALID_PARAMS, "message": "Task not found"})

    def _view(self, task: RemoteTask) -> JsonObject:
        at = "2026-01-01T00:00:00Z"
        view: JsonObject = {"taskId": task.task_id, "status": task.status, "createdAt": at, "lastUpdatedAt": at}
        if task.message is not None:
            view["statusMessage"] = task.message
        if not self.facts.is_modern:
            return view | {"ttl": 60_000, "pollInterval": INTERVAL * 1000}
        view |= {"ttlMs": 60_000, "pollIntervalMs": INTERVAL * 1000}
        told = {"result": task.result, "error": task.error, "inputRequests": task.questions or None}
        return view | {key: value for key, value in told.items() if value is not None}

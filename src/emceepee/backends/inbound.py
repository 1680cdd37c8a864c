"""What a backend sends of its own accord: questions get an answer, always; notifications go to the listener."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from emceepee.backends.link import LinkError, Listener, RpcError
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner

logger = logging.getLogger(__name__)

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603

Reply = Callable[[JsonObject], Awaitable[None]]


class Inbound:
    """Serves the backend's requests, each in a task of its own, and forgets the withdrawn ones."""

    def __init__(self, listener: Listener, tasks: TaskOwner, reply: Reply) -> None:
        self._listener, self._tasks, self._reply = listener, tasks, reply
        self._serving: dict[Any, asyncio.Task[None]] = {}

    def receive(self, message: JsonObject, origin: object | None) -> "asyncio.Task[None] | None":
        """Take one message that has a `method`; if it is a question, the task that answers it."""
        method, key = message["method"], message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            return None
        if isinstance(key, int | str):
            task = self._tasks.spawn(self._serve(key, method, params, origin), name=method)
            self._serving[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
            return task
        if method == "notifications/cancelled":
            withdrawn = params.get("requestId")
            if isinstance(withdrawn, int | str) and (task_ := self._serving.get(withdrawn)):
                task_.cancel()
        else:
            self._listener.notified(method, params, origin)
        return None

    def _forget(self, key: Any, task: "asyncio.Task[None]") -> None:
        if self._serving.get(key) is task:  # a careless backend may have used the id twice
            del self._serving[key]

    async def _serve(self, key: Any, method: str, params: JsonObject, origin: object | None) -> None:
        try:
            answer: JsonObject = {
                "result": {} if method == "ping" else await self._listener.asked(method, params, origin)
            }
        except RpcError as refusal:
            answer = {"error": refusal.error}
        except Exception:
            # The backend must not wait for ever because we failed.
            logger.exception("answering the backend's %s failed", method)
            answer = {"error": {"code": INTERNAL_ERROR, "message": "Internal error"}}
        try:
            await self._reply({"jsonrpc": "2.0", "id": key, **answer})
        except LinkError as error:
            logger.debug("the backend's %s could not be answered: %s", method, error)

"""Unsolicited messages of a backend: every question gets an answer, and notifications go to the listener."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from emceepee.backends.link import LinkError, Listener, RpcError
from emceepee.lifecycle import TaskOwner
from emceepee.wire.codec import Unreadable
from emceepee.wire.json_rpc import SERVER_ERROR, error_message, result_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR, PARSE_ERROR

logger = logging.getLogger(__name__)

LONGEST_ID = 1000  # characters; longer ids are treated as invalid

Reply = Callable[[JsonObject], Awaitable[None]]


class InboundMessages:
    """Serves the backend's requests, each in its own task, and cancels withdrawn ones.

    At most `most` requests are served at once, and further requests are refused. Backpressure: while refusals wait to
    be written (`is_crowded`), the link stops reading, which bounds the memory used for a backend that does not read.
    """

    def __init__(self, listener: Listener, tasks: TaskOwner, reply: Reply, *, most: int) -> None:
        self._listener, self._tasks, self._reply, self._most = listener, tasks, reply, most
        self._serving: set[asyncio.Task[None]] = set()
        self._by_id: dict[Any, asyncio.Task[None]] = {}
        self._refused: deque[JsonObject] = deque()  # the errors to send
        self.is_crowded = False  # a plain attribute: links read it after every message
        self._room: asyncio.Future[None] | None = None  # set while a link waits for room

    async def wait_for_room(self) -> None:
        """Wait until enough refusals have been sent."""
        while self.is_crowded:
            if self._room is None:
                self._room = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)

    def receive(self, message: JsonObject, origin: object | None) -> "asyncio.Task[None] | None":
        """Handle one message that has a `method`. Return the task that answers it if it is a request."""
        method, key = message["method"], message.get("id")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(key, str) and len(key) > LONGEST_ID:
            return None
        if isinstance(method, Unreadable) and isinstance(key, int | str):
            self._refuse(error_message(key, PARSE_ERROR, f"Parse error: the request is {method}"))
        if not isinstance(method, str):
            return None
        if isinstance(key, int | str):
            if (taken := self._listener.take_request(key, method, params)) is not None:
                self._by_id[key] = taken
                taken.add_done_callback(lambda done: self._forget(key, done))
                return None
            if len(self._serving) >= self._most:
                words = f"{self._most} requests of yours are being served; ask again later"
                self._refuse(error_message(key, SERVER_ERROR, words))
                return None
            task = self._tasks.spawn(self._serve(key, method, params, origin), name=method)
            self._serving.add(task)
            self._by_id[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
            return task
        if method == "notifications/cancelled":
            withdrawn = params.get("requestId")
            if isinstance(withdrawn, int | str) and (task_ := self._by_id.get(withdrawn)):
                task_.cancel()
        else:
            self._listener.handle_notification(method, params, origin)
        return None

    def _forget(self, key: Any, task: "asyncio.Task[None]") -> None:
        self._serving.discard(task)
        if self._by_id.get(key) is task:  # some backends reuse an id
            del self._by_id[key]

    def _refuse(self, refusal: JsonObject) -> None:
        self._refused.append(refusal)
        self.is_crowded = len(self._refused) >= self._most
        if len(self._refused) == 1:
            self._tasks.spawn(self._answer_refused(), name="refusals")

    async def _answer_refused(self) -> None:
        while self._refused:
            await self._answer(self._refused[0], "refused request")
            self._refused.popleft()
            self.is_crowded = len(self._refused) >= self._most
            if self._room is not None and not self.is_crowded:
                self._room.set_result(None)
                self._room = None

    async def _serve(self, key: Any, method: str, params: JsonObject, origin: object | None) -> None:
        try:
            result = {} if method == "ping" else await self._listener.handle_request(method, params, origin)
            answer = result_message(key, result)
        except RpcError as refusal:
            answer = {"jsonrpc": "2.0", "id": key, "error": refusal.error}
        except Exception:
            # A bug of ours must not leave the backend waiting forever.
            logger.exception("answering the backend's %s failed", method)
            answer = error_message(key, INTERNAL_ERROR, "Internal error")
        await self._answer(answer, method)

    async def _answer(self, message: JsonObject, method: str) -> None:
        try:
            await self._reply(message)
        except LinkError as error:
            logger.debug("the backend's %s could not be answered: %s", method, error)

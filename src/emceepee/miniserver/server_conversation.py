"""A server's conversation with one client, in either era. Messages arrive by `receive` and leave by a channel."""

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from emceepee.lifecycle import TaskOwner
from emceepee.miniserver.server_hello import (
    ServerHello,
    handshake_result,
    log_level,
    modern_result,
    unsupported_version,
)
from emceepee.wire.json_rpc import (
    InvalidMessage,
    Notification,
    ProtocolError,
    Request,
    RequestId,
    Response,
    cancelled_id,
    classify,
    error_message,
    modern_capabilities,
    notification_message,
    progress_token,
    request_message,
    result_message,
)
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import SUBSCRIPTION_ID_META_KEY

PROGRESS, LOGGED, UPDATED = "notifications/progress", "notifications/message", "notifications/resources/updated"
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
# The subscription key of each change notification.
_WISHES = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}


class Channel(Protocol):
    """The destination of the messages of one request."""

    @property
    def takes_questions(self) -> bool:
        """Whether questions can be sent to the client on it."""
        ...

    def send(self, message: JsonObject) -> None: ...

    async def drain(self) -> None:
        """Wait while the reader is behind (backpressure)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    request_id: RequestId
    wanted: JsonObject
    channel: Channel


class ServerConversation(ABC):
    """A conversation. Subclasses implement `serve` for the server's own requests."""

    def __init__(self, hello: ServerHello, *, name: str) -> None:
        """`hello` is the server's description of itself, and `name` the prefix of the ids of its questions."""
        self._hello, self._name = hello, name
        self._capabilities: JsonObject = {}  # of a handshake-era client
        self._tasks = TaskOwner(name)
        # By task, because the request ids of several clients in one conversation may be equal.
        self._requests: dict[asyncio.Task[None], RequestId] = {}
        self._listeners: dict[asyncio.Task[None], _Listener] = {}
        self._asked: dict[RequestId, asyncio.Future[JsonObject]] = {}
        self._ids = count(1)

    @abstractmethod
    async def serve(self, request: Request, channel: Channel) -> None:
        """Answer one of the server's own requests with `send_result`. Raises: ProtocolError, sent as the answer."""

    def begin(self) -> None:  # noqa: B027 # most servers have nothing to do then
        """Called when a handshake-era client has sent `initialize`."""

    # Incoming messages.

    def receive(self, value: Any, channel: Channel) -> "asyncio.Task[None] | None":
        """Process one message. Return the task that answers it, if it is a request."""
        match classify(value):
            case Request() as request:
                return self.start(request, channel)
            case InvalidMessage() as invalid:
                channel.send(invalid.reply)
            case message:
                self.take(message)
        return None

    def start(self, request: Request, channel: Channel) -> "asyncio.Task[None]":
        """Return the task that answers the request on the channel; a cancelled task sends no answer."""
        task = self._tasks.spawn(self._serve(request, channel), name=request.method)
        self._requests[task] = request.request_id
        task.add_done_callback(self._requests.pop)
        return task

    def take(self, message: Notification | Response) -> None:
        """Process a message that needs no answer."""
        if isinstance(message, Response):
            answer = None if message.request_id is None else self._asked.pop(message.request_id, None)
            if answer is not None and not answer.done():
                answer.set_result(message.message)
        elif message.method == "notifications/cancelled" and (meant := cancelled_id(message)) is not None:
            found = (task for task, key in reversed(self._requests.items()) if key == meant)
            if (newest := next(found, None)) is not None:
                newest.cancel()

    async def finish(self, *, within: float) -> None:
        """Wait for running requests, except listeners."""
        waiting = [task for task in self._requests if task not in self._listeners]
        if waiting:
            await asyncio.wait(waiting, timeout=within)

    def end_listens(self) -> None:
        """End all subscriptions to changes."""
        for task in list(self._listeners):
            task.cancel()

    def cancel_requests(self) -> None:
        for task in list(self._requests):
            task.cancel()

    async def close(self) -> None:
        await self._tasks.close()

    async def _serve(self, request: Request, channel: Channel) -> None:
        refusal = unsupported_version(request.params)
        if refusal is not None:
            channel.send({"jsonrpc": "2.0", "id": request.request_id, "error": refusal})
        elif request.method == "initialize":
            declared = (request.params or {}).get("capabilities")
            self._capabilities = declared if isinstance(declared, dict) else {}
            self.begin()
            channel.send(result_message(request.request_id, self._hello.initialized(request.params)))
        elif request.method == LISTEN:
            await self._listen(request, channel)
        elif request.method == "server/discover":
            self.send_result(request, self._hello.discovered(), channel)
        elif request.method == "ping":
            self.send_result(request, {}, channel)
        else:
            try:
                await self.serve(request, channel)
            except ProtocolError as error:
                channel.send(error_message(request.request_id, error.code, str(error), error.data))
        await channel.drain()

    def send_result(self, request: Request, result: JsonObject, channel: Channel) -> None:
        is_modern = modern_capabilities(request.params) is not None
        made = modern_result(request.method, result, self._hello.info) if is_modern else handshake_result(result)
        channel.send(result_message(request.request_id, made))

    # Outgoing messages besides answers.

    def capabilities_of(self, request: Request, channel: Channel) -> JsonObject:
        """Return the client's declared capabilities for questions during this request."""
        modern = modern_capabilities(request.params)
        if modern is not None:
            return modern
        return self._capabilities if channel.takes_questions else {}

    async def ask(self, questions: dict[str, JsonObject], channel: Channel) -> dict[str, JsonObject]:
        """Ask a handshake-era client all questions at once. Return its responses by the same keys."""
        waiting: dict[str, tuple[RequestId, asyncio.Future[JsonObject]]] = {}
        for key, question in questions.items():
            number: RequestId = f"{self._name}-{next(self._ids)}"
            waiting[key] = number, asyncio.get_running_loop().create_future()
            self._asked[number] = waiting[key][1]
            channel.send(request_message(number, question["method"], question["params"]))
        try:
            return {key: await answer for key, (_, answer) in waiting.items()}
        finally:
            for number, _ in waiting.values():
                self._asked.pop(number, None)

    def notify(self, method: str, params: JsonObject, request: Request, channel: Channel) -> None:
        """Send a notification of a request as its era requires: a modern change notification goes to listeners."""
        is_modern = modern_capabilities(request.params) is not None
        if method == PROGRESS:
            if (token := progress_token(request.params)) is not None:
                channel.send(notification_message(PROGRESS, {**params, "progressToken": token}))
        elif is_modern and (method in _WISHES or method == UPDATED):
            self._tell_listeners(method, params)
        elif not is_modern or method != LOGGED or log_level(request.params) is not None:
            channel.send(notification_message(method, params))

    async def _listen(self, request: Request, channel: Channel) -> None:
        wanted = (request.params or {}).get("notifications")
        wanted = wanted if isinstance(wanted, dict) else {}
        meta = {SUBSCRIPTION_ID_META_KEY: request.request_id}
        task = asyncio.current_task()
        assert task is not None  # each request runs in a task
        self._listeners[task] = _Listener(request_id=request.request_id, wanted=wanted, channel=channel)
        channel.send(notification_message(ACKNOWLEDGED, {"notifications": wanted, "_meta": meta}))
        try:
            await asyncio.get_running_loop().create_future()  # wait until cancelled
        finally:
            del self._listeners[task]

    def _tell_listeners(self, method: str, params: JsonObject) -> None:
        for listener in list(self._listeners.values()):
            uris = listener.wanted.get("resourceSubscriptions")
            is_followed = isinstance(uris, list) and params.get("uri") in uris
            if listener.wanted.get(_WISHES.get(method, "")) or (method == UPDATED and is_followed):
                meta = {SUBSCRIPTION_ID_META_KEY: listener.request_id}
                listener.channel.send(notification_message(method, {**params, "_meta": meta}))

"""The recorded server, spoken to by one client in either era. Messages come by `receive`, and go out by a channel."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

from emceepee.clock import Clock
from emceepee.json_rpc import (
    InvalidMessage,
    Notification,
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
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.protocol import INVALID_PARAMS, SUBSCRIPTION_ID_META_KEY
from emceepee.replay.eras import (
    Hello,
    can_answer,
    handshake_result,
    modern_result,
    unsupported_version,
    wants_logs,
)
from emceepee.replay.recording import Exchange, Notice, Questions, Recording
from emceepee.replay.script import NotRecorded, Script

# Before an answer that follows notifications: some clients lose those that are read together with it.
BREATH_SECONDS = 0.02
STATE_PREFIX = "emceepee-replay"
PROGRESS, LOGGED = "notifications/progress", "notifications/message"
LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
# Which wish of a listener a change belongs to.
_WISHES = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
UPDATED = "notifications/resources/updated"
# They change nothing about what was recorded, so that anyone may ask.
_ALWAYS_DONE = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


class Channel(Protocol):
    """Where what belongs to one request goes."""

    @property
    def takes_questions(self) -> bool:
        """Whether the client can be asked by it."""
        ...

    def send(self, message: JsonObject) -> None: ...

    async def drain(self) -> None:
        """Wait while whoever reads is behind."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listener:
    request_id: RequestId
    wanted: JsonObject
    channel: Channel


class Conversation:
    """`says` is for the person who runs it; `is_instant`: nothing takes the time that it took."""

    def __init__(
        self, recording: Recording, clock: Clock, *, is_instant: bool, says: Callable[[str], None] = lambda _: None
    ) -> None:
        self._script, self._hello = Script(recording), Hello(recording.hello)
        self._clock, self._is_instant, self._says = clock, is_instant, says
        self._capabilities: JsonObject = {}  # of a client of the handshake era
        self._tasks = TaskOwner("replay")
        # By tasks: where several clients share a conversation, their ids are the same.
        self._requests: dict[asyncio.Task[None], RequestId] = {}
        self._listeners: dict[asyncio.Task[None], _Listener] = {}
        self._asked: dict[RequestId, asyncio.Future[None]] = {}
        self._ids = count(1)

    def receive(self, value: Any, channel: Channel) -> "asyncio.Task[None] | None":
        """Take one message; if it is a request, the task that answers it."""
        match classify(value):
            case Request() as request:
                return self.start(request, channel)
            case InvalidMessage() as invalid:
                channel.send(invalid.reply)
            case message:
                self.take(message)
        return None

    def start(self, request: Request, channel: Channel) -> "asyncio.Task[None]":
        """The task that answers it by the channel; one that is cancelled answers nothing."""
        task = self._tasks.spawn(self._serve(request, channel), name=request.method)
        self._requests[task] = request.request_id
        task.add_done_callback(self._requests.pop)
        return task

    def take(self, message: Notification | Response) -> None:
        """What is not answered."""
        if isinstance(message, Response):
            answer = None if message.request_id is None else self._asked.pop(message.request_id, None)
            if answer is not None and not answer.done():
                answer.set_result(None)
        elif message.method == "notifications/cancelled" and (meant := cancelled_id(message)) is not None:
            found = (task for task, key in reversed(self._requests.items()) if key == meant)
            if (newest := next(found, None)) is not None:
                newest.cancel()

    async def finish(self, *, within: float) -> None:
        """Wait for what is being answered."""
        waiting = [task for task in self._requests if task not in self._listeners]
        if waiting:
            await asyncio.wait(waiting, timeout=within)

    def end_listens(self) -> None:
        """Whoever listens for changes hears of no more."""
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
            self._script.restart()
            channel.send(result_message(request.request_id, self._hello.initialized(request.params)))
        elif request.method == LISTEN:
            await self._listen(request, channel)
        elif request.method == "server/discover":
            self._send_result(request, self._hello.discovered(), channel)
        elif request.method in _ALWAYS_DONE:
            self._send_result(request, {}, channel)
        else:
            await self._replay(request, channel)
        await channel.drain()

    # What was recorded.

    async def _replay(self, request: Request, channel: Channel) -> None:
        params = request.params or {}
        try:
            index, done = self._find(request.method, params)
        except NotRecorded as error:
            self._says(str(error))
            channel.send(error_message(request.request_id, error.code, str(error)))
            return
        exchange = self._script.exchange(index)
        for number, step in enumerate(exchange.steps[done:], done + 1):
            await self._wait(step.wait)
            if isinstance(step, Notice):
                self._notify(step, request, channel)
            elif (modern := modern_capabilities(params)) is not None:
                if asked := self._answerable(step, modern):
                    self._send_result(request, _input_required(asked, f"{STATE_PREFIX}:{index}:{number}"), channel)
                    return
            else:
                capabilities = self._capabilities if channel.takes_questions else {}
                await self._ask(self._answerable(step, capabilities), channel)
            await channel.drain()
        if self._is_instant and exchange.steps:
            await self._clock.sleep(BREATH_SECONDS)
        await self._wait(exchange.wait)
        self._end(request, exchange, channel)
        if exchange.later:
            self._tasks.spawn(self._go_on(exchange.later, request, channel), name="later")

    def _find(self, method: str, params: JsonObject) -> tuple[int, int]:
        """The exchange, and how many of its steps are done. Raises: NotRecorded."""
        state = params.get("requestState")
        if state is None:
            return self._script.next(method, params), 0
        prefix, *numbers = str(state)[:100].split(":")
        if prefix == STATE_PREFIX and len(numbers) == 2 and all(each.isdecimal() for each in numbers):
            index, done = map(int, numbers)
            exchange = self._script.resume(index, method, params)
            if exchange is not None and done <= len(exchange.steps):
                return index, done
        raise NotRecorded(INVALID_PARAMS, "requestState is none of this replay: send back the one that came.")

    def _answerable(self, questions: Questions, capabilities: JsonObject) -> dict[str, JsonObject]:
        """Those that the client can be asked; the others are left out, and the call goes on as it did."""
        for question in questions.asked.values():
            if not can_answer(capabilities, question):
                self._says(f"{question['method']} was left out: the client does not say that it can answer it")
        return {key: question for key, question in questions.asked.items() if can_answer(capabilities, question)}

    async def _ask(self, questions: dict[str, JsonObject], channel: Channel) -> None:
        """Whatever the client answers, the recording goes on."""
        waiting: dict[RequestId, asyncio.Future[None]] = {}
        for question in questions.values():
            key: RequestId = f"replay-{next(self._ids)}"
            waiting[key] = self._asked[key] = asyncio.get_running_loop().create_future()
            channel.send(request_message(key, question["method"], question["params"]))
        try:
            if waiting:
                await asyncio.wait(waiting.values())
        finally:
            for asked in waiting:
                self._asked.pop(asked, None)

    def _end(self, request: Request, exchange: Exchange, channel: Channel) -> None:
        if exchange.result is not None:
            self._send_result(request, exchange.result, channel)
        else:
            channel.send({"jsonrpc": "2.0", "id": request.request_id, "error": exchange.error or {}})

    def _send_result(self, request: Request, result: JsonObject, channel: Channel) -> None:
        is_modern = modern_capabilities(request.params) is not None
        made = modern_result(request.method, result, self._hello.info) if is_modern else handshake_result(result)
        channel.send(result_message(request.request_id, made))

    async def _go_on(self, notices: list[Notice], request: Request, channel: Channel) -> None:
        for notice in notices:
            await self._wait(notice.wait)
            if notice.method != PROGRESS:  # of a request that has ended
                self._notify(notice, request, channel)
                await channel.drain()

    async def _wait(self, seconds: float) -> None:
        if not self._is_instant and seconds > 0:
            await self._clock.sleep(seconds)

    # Notifications.

    def _notify(self, notice: Notice, request: Request, channel: Channel) -> None:
        is_modern = modern_capabilities(request.params) is not None
        if notice.method == PROGRESS:
            if (token := progress_token(request.params)) is not None:
                channel.send(notification_message(PROGRESS, {**notice.params, "progressToken": token}))
        elif is_modern and (notice.method in _WISHES or notice.method == UPDATED):
            self._tell_listeners(notice)
        elif not is_modern or notice.method != LOGGED or wants_logs(request.params):
            channel.send(notification_message(notice.method, notice.params))

    async def _listen(self, request: Request, channel: Channel) -> None:
        wanted = (request.params or {}).get("notifications")
        wanted = wanted if isinstance(wanted, dict) else {}
        meta = {SUBSCRIPTION_ID_META_KEY: request.request_id}
        task = asyncio.current_task()
        assert task is not None  # each request is served by one
        self._listeners[task] = _Listener(request_id=request.request_id, wanted=wanted, channel=channel)
        channel.send(notification_message(ACKNOWLEDGED, {"notifications": wanted, "_meta": meta}))
        try:
            await asyncio.get_running_loop().create_future()  # until it is cancelled
        finally:
            del self._listeners[task]

    def _tell_listeners(self, notice: Notice) -> None:
        for listener in list(self._listeners.values()):
            uris = listener.wanted.get("resourceSubscriptions")
            is_followed = isinstance(uris, list) and notice.params.get("uri") in uris
            if listener.wanted.get(_WISHES.get(notice.method, "")) or (notice.method == UPDATED and is_followed):
                params = {**notice.params, "_meta": {SUBSCRIPTION_ID_META_KEY: listener.request_id}}
                listener.channel.send(notification_message(notice.method, params))


def _input_required(asked: dict[str, JsonObject], state: str) -> JsonObject:
    return {"resultType": "input_required", "inputRequests": dict(asked), "requestState": state}

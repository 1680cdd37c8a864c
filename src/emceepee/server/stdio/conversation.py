"""One caller on one two-way line: requests answered each in its own task, in whichever era the caller opened."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server

from emceepee.codec import Unreadable, decode
from emceepee.framing import TooLongLine
from emceepee.json_rpc import (
    INVALID_REQUEST,
    PARSE_ERROR,
    REQUEST_CANCELLED,
    SHUTTING_DOWN,
    InvalidMessage,
    Notification,
    Request,
    RequestId,
    Response,
    classify,
    error_message,
    progress_token,
    result_message,
)
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.dispatch import CallTool, call_tool
from emceepee.server.eras import Era, HandshakeEra, era_for, error_for
from emceepee.server.events_feed import EventsFeed
from emceepee.server.request_context import RunningRequest, cancel_request, client_label
from emceepee.server.request_spans import protocol_span
from emceepee.server.sdk_server import CallerState
from emceepee.sessions.session import Session
from emceepee.tools.declaration import Caller

PROBES = ("initialize", "server/discover")  # with which a client may only look who is there, and leave
Send = Callable[[JsonObject | list[JsonObject]], None]


class Conversation:
    """Feed it lines with `hear`; it speaks through `send`."""

    def __init__(
        self, sdk_server: Server[CallerState], session: Session, send: Send, call_tool: CallTool = call_tool
    ) -> None:
        self._sdk_server, self._session, self._send, self._call_tool = sdk_server, session, send, call_tool
        self._state = CallerState(EventsFeed(session.activity), send)
        self._era: Era | None = None
        self._tasks = TaskOwner("requests")
        self._running: dict[RequestId, RunningRequest] = {}
        self._is_draining = False

    async def hear(self, line: bytes | TooLongLine) -> None:
        """Take one line. Only `initialize` is awaited here: what follows it must find it done."""
        if isinstance(line, TooLongLine):
            self._send(error_message(line.message_id, INVALID_REQUEST, "Invalid request: the line is too long"))
            return
        try:
            value = decode(line)
        except ValueError as error:
            self._send(_parse_error(line, error))
            return
        if isinstance(value, list):
            self._hear_batch(value)
            return
        match classify(value):
            case Request(method="initialize") as request:
                if (reply := await self._reply(request, RunningRequest())) is not None:
                    self._send(reply)
            case Request() as request:
                self._start(request)
            case Notification() as notice:
                self._hear_notice(notice)
            case InvalidMessage(reply):
                self._send(reply)
            case Response():
                pass  # nothing was asked, so it answers nothing

    async def finish(self, *, within: float) -> None:
        """Let what is running come to its end, but not for longer than `within` seconds."""
        if running := [
            running_request.task for running_request in self._running.values() if running_request.task is not None
        ]:
            await asyncio.wait(running, timeout=within)

    async def drain(self, *, finish: float, let_go: float, hurried: asyncio.Event) -> None:
        """Nothing new begins. What runs has `finish` seconds, or until `hurried`; then whoever waits is told so."""
        self._is_draining = True
        hurry = self._tasks.spawn(hurried.wait(), name="hurry")
        running = asyncio.ensure_future(self.finish(within=finish))
        await asyncio.wait({running, hurry}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        self._session.calls.stop()
        await self.finish(within=let_go)
        for request_id, running_request in list(self._running.items()):
            running_request.cancel()
            self._send(error_message(request_id, REQUEST_CANCELLED, SHUTTING_DOWN))

    async def close(self) -> None:
        await self._tasks.close()

    def _start(self, request: Request) -> None:
        running_request = RunningRequest()

        async def serve() -> None:
            if (reply := await self._reply(request, running_request)) is not None:
                self._send(reply)

        self._track(request.request_id, running_request, self._tasks.spawn(serve(), name=request.method))

    def _track(self, request_id: RequestId, running_request: RunningRequest, task: "asyncio.Task[Any]") -> None:
        running_request.task = task
        self._running[request_id] = running_request

        def forget(_: "asyncio.Task[Any]") -> None:
            if self._running.get(request_id) is running_request:  # a careless caller may have used the id twice
                del self._running[request_id]

        task.add_done_callback(forget)

    async def _reply(self, request: Request, running_request: RunningRequest) -> JsonObject | None:
        """The response; None if the caller cancelled the request, for then it expects none."""
        if self._is_draining:
            return error_message(request.request_id, INVALID_REQUEST, SHUTTING_DOWN)
        era = self._era
        if era is None:
            era = self._era = era_for(request, self._sdk_server, self._state)
        if self._session.label is None:
            self._session.label = client_label(request.params)
        if (refusal := era.refusal(request)) is not None:
            return refusal
        if request.method not in PROBES:
            self._session.wake()
        try:
            if request.method == "tools/call":
                result = era.finished(
                    await self._call_tool(request.params, self._session, self._caller(request, running_request))
                )
            else:
                with protocol_span(self._session, request.method):
                    result = await era.serve(request, self._send)
        except Exception as error:
            return error_for(request, error)
        return result_message(request.request_id, result)

    def _caller(self, request: Request, running_request: RunningRequest) -> Caller:
        token = progress_token(request.params)
        follow = self._state.follow_events if isinstance(self._era, HandshakeEra) else None
        if token is None:
            return Caller(on_call=running_request.record_call, follow_events=follow)

        def tell(params: JsonObject) -> None:
            told = params | {"progressToken": token}
            self._send({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})

        return Caller(on_progress=tell, on_call=running_request.record_call, follow_events=follow)

    def _hear_notice(self, notice: Notification) -> None:
        if notice.method == "notifications/cancelled":
            cancel_request(notice, self._running)
        elif self._era is not None:
            if notice.method == "notifications/initialized":
                self._session.wake()
            self._tasks.spawn(self._era.hear(notice), name=notice.method)

    # Batches: the 2025-03-26 version has them, no other does.

    def _hear_batch(self, values: list[Any]) -> None:
        if self._era is None or not self._era.has_batches or not values:
            self._send(error_message(None, INVALID_REQUEST, "Invalid request: a batch is not accepted here"))
            return
        if len(values) > (most := self._session.limits.batch_messages):
            words = f"Invalid request: the batch has {len(values)} messages, and may have {most}"
            self._send(error_message(None, INVALID_REQUEST, words))
            return
        self._tasks.spawn(self._serve_batch(values), name="batch")

    async def _serve_batch(self, values: list[Any]) -> None:
        replies: list[JsonObject] = []
        serving: list[asyncio.Task[JsonObject | None]] = []
        for value in values:
            match classify(value):
                case Request() as request:
                    running_request = RunningRequest()
                    task = self._tasks.spawn(self._reply(request, running_request), name=request.method)
                    self._track(request.request_id, running_request, task)
                    serving.append(task)
                case Notification() as notice:
                    self._hear_notice(notice)
                case InvalidMessage(reply):
                    replies.append(reply)
                case Response():
                    pass
        if serving:
            await asyncio.wait(serving)
        answered = [task.result() for task in serving if not task.cancelled()]
        replies += [reply for reply in answered if reply is not None]
        if replies:
            self._send(replies)


def _parse_error(line: bytes, error: ValueError) -> JsonObject:
    if isinstance(error, Unreadable):  # it was meant for us, and whoever asked waits for this id
        return error_message(TooLongLine.of(line).message_id, PARSE_ERROR, f"Parse error: the line is {error}")
    return error_message(None, PARSE_ERROR, "Parse error: the line is not JSON")

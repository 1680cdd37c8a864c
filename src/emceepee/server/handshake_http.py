"""One caller of the handshake era over HTTP: its session, its requests, its streams."""

import asyncio
from typing import Any

from mcp.server.lowlevel import Server

from emceepee.clock import Clock, milliseconds
from emceepee.codec import encode
from emceepee.guard.visitor import Visitor
from emceepee.ids import Ulids
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.asgi import Header, Receive, Send, refuse, respond
from emceepee.server.callers import MayAdd, Office, caller_for
from emceepee.server.dispatch import call_tool
from emceepee.server.events_feed import EventsFeed
from emceepee.server.exchange import PRIMED_SINCE, Exchange
from emceepee.server.kernel import CallerState
from emceepee.server.message_log import PUSH, MessageLog
from emceepee.server.messages import (
    INVALID_REQUEST,
    Answer,
    Invalid,
    Notice,
    Request,
    RequestId,
    classify,
    error_message,
    result_message,
)
from emceepee.server.peers import HandshakePeer, error_for
from emceepee.server.streams import kept_frames, while_there, write_stream
from emceepee.sessions.calls import Call
from emceepee.sessions.directory import SessionKey
from emceepee.sessions.session import Session

REQUEST_CANCELLED = -32800
CLOSING_SECONDS = 5.0


class HandshakeCaller:
    """Everything that one Mcp-Session-Id stands for on the wire."""

    def __init__(self, kernel: Server[CallerState], key: SessionKey, session: Session, visitor: Visitor) -> None:
        self.key, self.session, self.visitor = key, session, visitor
        self._clock: Clock = session.clock
        self._header: Header = (b"mcp-session-id", key.value.encode())
        ids = Ulids(lambda: milliseconds(self._clock.now()))
        self._log = MessageLog(self._clock, ids, session.limits)
        self._peer = HandshakePeer(kernel, CallerState(EventsFeed(session.activity), self._push))
        self._tasks = TaskOwner("http-caller")
        self._running: dict[RequestId, asyncio.Task[Any]] = {}
        self._exchanges: dict[str, Exchange] = {}  # those with a stream, by its name
        self._reader: asyncio.Task[Any] | None = None  # the GET that reads pushes; a newer one takes over
        self._pushed = 0  # the number of the last push that a reader got

    @property
    def is_open(self) -> bool:
        return self._peer.is_open

    def _push(self, message: JsonObject) -> None:
        self._log.append(PUSH, encode(message))

    # POST.

    async def post(
        self, value: Any, send: Send, receive: Receive, *, office: Office, may_add: MayAdd, streams: bool
    ) -> None:
        """Serve one decoded body."""
        self.session.touch()
        if isinstance(value, list):
            await self._batch(value, send, receive, office, may_add)
            return
        match classify(value):
            case Request() as request:
                exchange = self._exchange(send, receive, streams=streams)
                reply = await self._reply(request, exchange, office, may_add)
                await exchange.answer(reply)
                self._exchanges.pop(exchange.stream or "", None)
            case Notice() as notice:
                await self._hear(notice)
                await respond(send, 202, b"", self._header)
            case Answer():
                await respond(send, 202, b"", self._header)  # nothing was asked, so it answers nothing
            case Invalid(reply):
                await respond(send, 400, encode(reply), self._header, (b"content-type", b"application/json"))

    def _exchange(self, send: Send, receive: Receive, *, streams: bool) -> Exchange:
        return Exchange(
            self._log,
            send,
            receive,
            clock=self._clock,
            tasks=self._tasks,
            headers=(self._header,),
            primes=self._peer.is_open and self._peer.version >= PRIMED_SINCE,
            streams=streams,
            on_open=lambda exchange: self._exchanges.__setitem__(exchange.stream or "", exchange),
        )

    async def _reply(self, request: Request, exchange: Exchange, office: Office, may_add: MayAdd) -> JsonObject:
        if (refusal := self._peer.refusal(request)) is not None:
            return refusal
        task = asyncio.current_task()
        if task is not None:
            self._running[request.request_id] = task
        call: list[tuple[Session, Call]] = []
        try:
            if request.method == "tools/call":
                caller = caller_for(
                    request,
                    exchange.say,
                    office=office,
                    may_add=may_add,
                    is_gone=lambda: exchange.is_gone,
                    on_call=lambda session, started: call.append((session, started)),
                )
                result = await call_tool(request.params, self.session, caller)
                if call and exchange.is_gone:
                    session, started = call[0]
                    session.calls.keep(started)
            else:
                result = await self._peer.serve(request, exchange.say)
            return result_message(request.request_id, result)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()  # the caller's own wish: the exchange still ends in order
            return error_message(request.request_id, REQUEST_CANCELLED, "Request cancelled")
        except Exception as error:
            return error_for(request, error)
        finally:
            if self._running.get(request.request_id) is task:  # a careless caller may have used the id twice
                del self._running[request.request_id]

    async def _hear(self, notice: Notice) -> None:
        if notice.method == "notifications/cancelled":
            key = (notice.params or {}).get("requestId")
            if isinstance(key, int | str) and (task := self._running.get(key)) is not None:
                task.cancel()
        else:
            await self._peer.hear(notice)

    async def _batch(self, values: list[Any], send: Send, receive: Receive, office: Office, may_add: MayAdd) -> None:
        if not self._peer.has_batches or not values:
            await refuse(send, 400, INVALID_REQUEST, "Invalid request: a batch is not accepted here", self._header)
            return
        exchange = self._exchange(send, receive, streams=False)
        replies: list[JsonObject] = []
        requests: list[Request] = []
        for value in values:
            match classify(value):
                case Request() as request:
                    requests.append(request)
                case Notice() as notice:
                    await self._hear(notice)
                case Invalid(reply):
                    replies.append(reply)
                case Answer():
                    pass
        serving = [self._tasks.spawn(self._reply(item, exchange, office, may_add)) for item in requests]
        replies += [await task for task in serving]
        if replies:
            await exchange.answer(replies)
        else:
            await respond(send, 202, b"", self._header)

    # GET.

    async def get(self, last_event_id: str | None, send: Send, receive: Receive) -> None:
        """Replay and follow one stream: the one that the id is of, else what belongs to no request."""
        stream, after, exchange = PUSH, self._pushed, None
        if last_event_id is not None:
            found = self._log.find(last_event_id)
            if found is None:
                words = "Unknown Last-Event-ID: it is no longer kept. Open a fresh stream without it."
                await refuse(send, 400, INVALID_REQUEST, words, self._header)
                return
            stream, after, exchange = found.stream, found.number, self._exchanges.get(found.stream)
        if stream == PUSH:
            await self._take_over()
        if exchange is not None:
            exchange.attach(+1)
        self.session.open_streams += 1
        writing = write_stream(send, self._frames(stream, after), self._header)
        try:
            await while_there(writing, send, receive, self._tasks)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()  # a newer reader took over, or the session ends: this response ends in order
        finally:
            self.session.open_streams -= 1
            self.session.touch()
            if exchange is not None:
                exchange.attach(-1)
            if self._reader is asyncio.current_task():
                self._reader = None

    async def _take_over(self) -> None:
        """The newest reader wins: an older one may be a line that died without a word."""
        older, self._reader = self._reader, asyncio.current_task()
        if older is not None and not older.done():
            older.cancel()

    async def _frames(self, stream: str, after: int) -> Any:
        async for frame in kept_frames(self._noted(stream, after)):
            yield frame

    async def _noted(self, stream: str, after: int) -> Any:
        async for entry in self._log.follow(stream, after):
            yield entry
            if stream == PUSH and entry is not None:
                self._pushed = max(self._pushed, entry.number)

    # The end.

    def end_pushes(self) -> None:
        """Let the reader of what belongs to no request go."""
        if self._reader is not None:
            self._reader.cancel()

    def cancel_requests(self) -> None:
        for task in list(self._running.values()):
            task.cancel()

    async def close(self) -> None:
        self.cancel_requests()
        self.end_pushes()
        await self._tasks.close(within=CLOSING_SECONDS)

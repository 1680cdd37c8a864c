"""One caller of the handshake era over HTTP: its session, its requests, its streams."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server.lowlevel import Server

from emceepee.guard.visitor import Visitor
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.callers import Guest, Started, caller_for, cancel_request
from emceepee.server.dispatch import Tools
from emceepee.server.events_feed import EventsFeed
from emceepee.server.exchange import PRIMED_SINCE, Exchange, Taste
from emceepee.server.kernel import CallerState
from emceepee.server.message_log import PUSH
from emceepee.server.messages import (
    INVALID_REQUEST,
    REQUEST_CANCELLED,
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
from emceepee.server.refusal import refuse
from emceepee.server.replay import Replay
from emceepee.server.sight import watched
from emceepee.sessions.directory import SessionKey
from emceepee.sessions.session import Session
from emceepee.web.asgi import Header, Receive, Send, respond, respond_json

CLOSING_SECONDS = 5.0
LAST_WORDS_SECONDS = 1.0  # for the answers to requests that end with the session


class HandshakeCaller:
    """Everything that one Mcp-Session-Id stands for on the wire."""

    def __init__(
        self, kernel: Server[CallerState], tools: Tools, key: SessionKey, session: Session, visitor: Visitor
    ) -> None:
        self.key, self.session, self.visitor = key, session, visitor
        self._tools = tools
        self._header: Header = (b"mcp-session-id", key.value.encode())
        self._tasks = TaskOwner("http-caller")
        self._replay = Replay(session.clock, session.limits, self._tasks)
        self._state = CallerState(EventsFeed(session.activity), self._replay.push)
        self._peer = HandshakePeer(kernel, self._state)
        self._running: dict[RequestId, Started] = {}

    @property
    def is_open(self) -> bool:
        return self._peer.is_open

    # POST.

    async def post(self, value: Any, send: Send, receive: Receive, *, guest: Guest, taste: Taste) -> None:
        """Serve one decoded body."""
        self.session.touch()
        if isinstance(value, list):
            await self._batch(value, send, receive, guest)
            return
        match classify(value):
            case Request() as request:
                started = Started()
                exchange = self._exchange(send, receive, taste, on_abandoned=started.promote)
                reply = await self._reply(request, exchange, guest, started)
                if not await exchange.answer(reply, names_session=self._peer.is_open):
                    started.keep()
            case Notice() as notice:
                await self._hear(notice)
                await respond(send, 202, b"", self._header)
            case Answer():
                await respond(send, 202, b"", self._header)  # nothing was asked, so it answers nothing
            case Invalid(reply):
                await respond_json(send, 400, reply, self._header)

    def _exchange(
        self, send: Send, receive: Receive, taste: Taste, *, on_abandoned: Callable[[], object] | None = None
    ) -> Exchange:
        return Exchange(
            self._replay,
            send,
            receive,
            clock=self.session.clock,
            header=self._header,
            primes=self._peer.is_open and self._peer.version >= PRIMED_SINCE,
            taste=taste,
            on_abandoned=on_abandoned,
        )

    async def _reply(self, request: Request, exchange: Exchange, guest: Guest, started: Started) -> JsonObject:
        if (refusal := self._peer.refusal(request)) is not None:
            return refusal
        task = started.task = asyncio.current_task()
        self._running[request.request_id] = started
        try:
            if request.method == "tools/call":
                caller = caller_for(request, exchange, guest, started, self._state.follow_events)
                result = await self._tools.call(request.params, self.session, caller)
            else:
                with watched(self.session, request.method):
                    result = await self._peer.serve(request, exchange.say)
            return result_message(request.request_id, result)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()  # the caller's own wish, or the session ends: the exchange still ends in order
            return error_message(request.request_id, REQUEST_CANCELLED, "Request cancelled")
        except Exception as error:
            return error_for(request, error)
        finally:
            if self._running.get(request.request_id) is started:  # a careless caller may have used the id twice
                del self._running[request.request_id]

    async def _hear(self, notice: Notice) -> None:
        if notice.method == "notifications/cancelled":
            cancel_request(notice, self._running)
        else:
            await self._peer.hear(notice)

    async def _batch(self, values: list[Any], send: Send, receive: Receive, guest: Guest) -> None:
        if not self._peer.has_batches or not values:
            await refuse(send, 400, INVALID_REQUEST, "Invalid request: a batch is not accepted here", self._header)
            return
        exchange = self._exchange(send, receive, Taste(streams=False))
        replies: list[JsonObject] = []
        requests: list[tuple[Request, Started]] = []
        for value in values:
            match classify(value):
                case Request() as request:
                    requests.append((request, Started()))
                case Notice() as notice:
                    await self._hear(notice)
                case Invalid(reply):
                    replies.append(reply)
                case Answer():
                    pass
        serving = [self._tasks.spawn(self._reply(item, exchange, guest, started)) for item, started in requests]
        replies += [await task for task in serving]
        if not replies:
            await respond(send, 202, b"", self._header)
        elif not await exchange.answer(replies):
            for _, started in requests:
                started.keep()

    # GET.

    async def get(self, last_event_id: str | None, send: Send, receive: Receive) -> None:
        """Replay and follow one stream: the one that the id is of, else what belongs to no request."""
        found = None if last_event_id is None else self._replay.find(last_event_id)
        if last_event_id is not None and found is None:
            words = "Unknown Last-Event-ID: it is no longer kept. Open a fresh stream without it."
            await refuse(send, 400, INVALID_REQUEST, words, self._header)
            return
        self.session.open_streams += 1
        try:
            await self._replay.read(found, send, receive, self._header)
        finally:
            self.session.open_streams -= 1
            self.session.touch()

    # The end.

    def end_pushes(self) -> None:
        """Let the reader of what belongs to no request go."""
        self._replay.let_go(PUSH)

    def cancel_requests(self) -> None:
        for started in list(self._running.values()):
            started.cancel()

    async def close(self) -> None:
        self._state.follow_events(False)
        tasks = {started.task for started in self._running.values()} - {asyncio.current_task()}
        running = [task for task in tasks if task is not None]
        self.cancel_requests()
        if running:
            await asyncio.wait(running, timeout=LAST_WORDS_SECONDS)
        await self._tasks.close(within=CLOSING_SECONDS)

"""One caller of the handshake era over HTTP: its session, its requests, its streams."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from mcp.server.lowlevel import Server

from emceepee.json_rpc import (
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    InvalidMessage,
    Notification,
    Request,
    RequestId,
    Response,
    classify,
    error_message,
    result_message,
)
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.eras import HandshakeEra, error_for
from emceepee.server.events_feed import EventsFeed
from emceepee.server.http.exchange import PRIMED_SINCE, AcceptedTypes, Exchange
from emceepee.server.http.message_log import PUSH
from emceepee.server.http.replay import Replay
from emceepee.server.http.rpc_errors import send_rpc_error
from emceepee.server.request_context import AdmittedRequest, RunningRequest, caller_for, cancel_request
from emceepee.server.request_spans import protocol_span
from emceepee.server.sdk_server import CallerState
from emceepee.sessions.directory import KeyKind, SessionKey
from emceepee.sessions.session import Session
from emceepee.web.asgi import Connection, Header, Receive, Send, respond, respond_json

LAST_WORDS_SECONDS = 1.0  # for the answers to requests that end with the session


class HandshakeConnection:
    """Everything that one Mcp-Session-Id stands for on the wire."""

    def __init__(
        self, sdk_server: Server[CallerState], tools: Tools, connection_id: str, key: SessionKey, session: Session
    ) -> None:
        self.connection_id, self.key, self.session = connection_id, key, session
        self._tools = tools
        self._header: Header = (b"mcp-session-id", connection_id.encode())
        self._tasks = TaskOwner("http-caller")
        self._replay = Replay(session.clock, session.limits, self._tasks)
        self._state = CallerState(EventsFeed(session.activity), self._replay.push)
        self._era = HandshakeEra(sdk_server, self._state)
        self._running: dict[RequestId, RunningRequest] = {}
        self._posts = self._gets = 0  # being served just now
        self._ends_after_posts = False
        self.used_at = session.clock.monotonic()

    @property
    def is_open(self) -> bool:
        return self._era.is_open

    @property
    def owns_session(self) -> bool:
        """Whether no other connection can be in its session."""
        return self.key.kind is KeyKind.ID

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or a stream is read."""
        return self._posts > 0 or self._gets > 0

    # POST.

    async def post(
        self, value: Any, send: Send, receive: Receive, *, admitted: AdmittedRequest, accepted: AcceptedTypes
    ) -> None:
        """Serve one decoded body."""
        self.session.touch()
        self._posts += 1
        try:
            await self._post(value, send, receive, admitted, accepted)
        finally:
            self._posts -= 1
            self.used_at = self.session.clock.monotonic()
            if self._ends_after_posts and not self._posts:
                await self._tasks.close()

    async def _post(
        self, value: Any, send: Send, receive: Receive, admitted: AdmittedRequest, accepted: AcceptedTypes
    ) -> None:
        if isinstance(value, list):
            await self._batch(value, send, receive, admitted)
            return
        match classify(value):
            case Request() as request:
                running_request = RunningRequest()
                exchange = self._exchange(
                    send, receive, admitted.connection, accepted, on_abandoned=running_request.promote
                )
                reply = await self._reply(request, exchange, admitted, running_request)
                unread = running_request.keep if running_request.has_more_than_words else None
                if not await exchange.answer(reply, names_session=self._era.is_open, if_unread=unread):
                    running_request.keep()
            case Notification() as notice:
                await self._hear(notice)
                await respond(send, 202, b"", self._header)
            case Response():
                await respond(send, 202, b"", self._header)  # nothing was asked, so it answers nothing
            case InvalidMessage(reply):
                await respond_json(send, 400, reply, self._header)

    def _exchange(
        self,
        send: Send,
        receive: Receive,
        connection: Connection,
        accepted: AcceptedTypes,
        *,
        on_abandoned: Callable[[], object] | None = None,
    ) -> Exchange:
        return Exchange(
            self._replay,
            send,
            receive,
            connection=connection,
            clock=self.session.clock,
            header=self._header,
            primes=self._era.is_open and self._era.version >= PRIMED_SINCE,
            accepted=accepted,
            on_abandoned=on_abandoned,
        )

    async def _reply(
        self, request: Request, exchange: Exchange, admitted: AdmittedRequest, running_request: RunningRequest
    ) -> JsonObject:
        if (refusal := self._era.refusal(request)) is not None:
            return refusal
        task = running_request.task = asyncio.current_task()
        self._running[request.request_id] = running_request
        try:
            if request.method == "tools/call":
                caller = caller_for(request, exchange, admitted, running_request, self._state.follow_events)
                result = await self._tools.call(request.params, self.session, caller)
            else:
                with protocol_span(self.session, request.method):
                    result = await self._era.serve(request, exchange.say)
            return result_message(request.request_id, result)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()  # the caller's own wish, or the session ends: the exchange still ends in order
            return error_message(request.request_id, REQUEST_CANCELLED, "Request cancelled")
        except Exception as error:
            return error_for(request, error)
        finally:
            running_request.task = None  # from here on the answer is written, and cannot be cancelled
            if self._running.get(request.request_id) is running_request:  # a careless caller may have used the id twice
                del self._running[request.request_id]
            running_request.task = None  # what is left to do is to answer: nobody can call that off any more

    async def _hear(self, notice: Notification) -> None:
        if notice.method == "notifications/cancelled":
            cancel_request(notice, self._running)
        else:
            await self._era.hear(notice)

    async def _batch(self, values: list[Any], send: Send, receive: Receive, admitted: AdmittedRequest) -> None:
        if not self._era.has_batches or not values:
            await send_rpc_error(
                send, 400, INVALID_REQUEST, "Invalid request: a batch is not accepted here", self._header
            )
            return
        if len(values) > (most := self.session.limits.batch_messages):
            words = f"Invalid request: the batch has {len(values)} messages, and may have {most}"
            await send_rpc_error(send, 400, INVALID_REQUEST, words, self._header)
            return
        exchange = self._exchange(send, receive, admitted.connection, AcceptedTypes(streams=False))
        replies: list[JsonObject] = []
        requests: list[tuple[Request, RunningRequest]] = []
        for value in values:
            match classify(value):
                case Request() as request:
                    requests.append((request, RunningRequest()))
                case Notification() as notice:
                    await self._hear(notice)
                case InvalidMessage(reply):
                    replies.append(reply)
                case Response():
                    pass
        serving = [
            self._tasks.spawn(self._reply(item, exchange, admitted, running_request))
            for item, running_request in requests
        ]
        replies += [await task for task in serving]
        if not replies:
            await respond(send, 202, b"", self._header)
        elif not await exchange.answer(replies, if_unread=partial(_keep_all, requests)):
            _keep_all(requests)

    # GET.

    async def get(self, last_event_id: str | None, send: Send, receive: Receive) -> None:
        """Replay and follow one stream: the one that the id is of, else what belongs to no request."""
        found = None if last_event_id is None else self._replay.find(last_event_id)
        if last_event_id is not None and found is None:
            words = "Unknown Last-Event-ID: it is no longer kept. Open a fresh stream without it."
            await send_rpc_error(send, 400, INVALID_REQUEST, words, self._header)
            return
        self._gets += 1
        self.session.open_streams += 1
        try:
            await self._replay.read(found, send, receive, self._header)
        finally:
            self._gets -= 1
            self.used_at = self.session.clock.monotonic()
            self.session.open_streams -= 1
            self.session.touch()

    # The end.

    def end_pushes(self) -> None:
        """Let the reader of what belongs to no request go."""
        self._replay.let_go(PUSH)

    def cancel_requests(self) -> None:
        for running_request in list(self._running.values()):
            running_request.cancel()

    async def close(self, asking: "asyncio.Task[Any] | None" = None) -> None:
        """The session ends: its requests end, then its streams. One that is served by `asking` is answered first."""
        running = {running_request.task: running_request for running_request in self._running.values()}
        is_asking = running.pop(asking, None) is not None
        for running_request in running.values():
            running_request.cancel()
        await self._end(running, after_posts=is_asking)

    async def leave(self) -> None:
        """Only the connection ends: calls that it waits for go on, as tasks of the session."""
        running = {running_request.task: running_request for running_request in self._running.values()}
        for running_request in running.values():
            if not running_request.promote():
                running_request.cancel()
        await self._end(running)

    async def _end(self, running: Iterable["asyncio.Task[Any] | None"], *, after_posts: bool = False) -> None:
        self._state.follow_events(False)
        if tasks := [task for task in running if task is not None]:
            await asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS)
        self._ends_after_posts = after_posts
        if not after_posts:
            await self._tasks.close()


def _keep_all(requests: Iterable[tuple[Request, RunningRequest]]) -> None:
    for _, running_request in requests:
        running_request.keep()

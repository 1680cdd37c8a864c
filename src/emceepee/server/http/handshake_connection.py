"""One connection of the handshake era over HTTP: its session, its requests, its streams."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from emceepee.server.dispatch import Tools
from emceepee.server.elicitation_requests import ElicitationRequests
from emceepee.server.eras import HandshakeEra
from emceepee.server.events_feed import EventsFeed
from emceepee.server.http.connection_records import ConnectionRecord, MessageRecord, message_record_id
from emceepee.server.http.exchange import PRIMED_SINCE, Exchange, HttpRequest, send_rpc_error
from emceepee.server.http.replay.message_log import PUSH
from emceepee.server.http.replay.message_stream import Kept
from emceepee.server.http.replay.replay import Replay
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import Requests, error_for
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.tools.request_context import NO_CHANNEL, RequestContext, ServerPolicy
from emceepee.web.asgi import Header, respond, respond_json
from emceepee.wire.codec import decode, encode
from emceepee.wire.json_rpc import (
    SERVER_ERROR,
    InvalidMessage,
    Notification,
    Request,
    RequestId,
    Response,
    classify,
    error_message,
)
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_REQUEST

RESTARTED = (
    "emceepee was restarted during this request. A call to a server may have run: check before you send it again."
)
LAST_WORDS_SECONDS = 1.0  # for the answers to requests that end with the session


class HandshakeConnection:
    """Everything that one Mcp-Session-Id identifies: a session, requests, and streams."""

    def __init__(
        self,
        methods: ProtocolMethods,
        tools: Tools,
        directory: SessionDirectory,
        policy: ServerPolicy,
        connection_id: str,
        key: SessionKey,
        session: Session,
    ) -> None:
        self.connection_id, self.key, self.session = connection_id, key, session
        self._header: Header = (b"mcp-session-id", connection_id.encode())
        self._requests = Requests("http", tools, answers_cancelled=True, directory=directory, policy=policy)
        self._replay = Replay(session.clock, session.limits, self._requests.tasks, self, on_pushed=self._mark_changed)
        self._feed = EventsFeed(session, self._replay.push, on_follow=self._mark_changed)
        self._handshake: bytes | None = None  # the caller's initialize parameters, as JSON, which takes less memory
        self._era = HandshakeEra(methods, self._feed)
        self._asked: ElicitationRequests | None = None  # None unless the caller accepts questions
        self._posts = self._gets = 0  # in service now
        self._ends_after_posts = False
        self.used_at = session.clock.monotonic()

    def __repr__(self) -> str:
        version = self._era.version if self.is_open else "not initialized"
        return f"<HandshakeConnection {version} posts={self._posts} gets={self._gets} {self._requests!r}>"

    @property
    def is_open(self) -> bool:
        return self._era.is_open

    @property
    def owns_session(self) -> bool:
        """Whether no other connection can join its session."""
        return self.key.kind is KeyKind.ID

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or a stream is read."""
        return self._posts > 0 or self._gets > 0

    # POST.

    async def post(self, value: Any, http: HttpRequest) -> None:
        """Serve one decoded body."""
        self.session.touch()
        self._posts += 1
        try:
            if isinstance(value, list):
                await self._answer_batch(value, http)
                return
            match classify(value):
                case Request() as request:
                    await self._answer(request, http)
                case Notification() as notification:
                    self._requests.handle_notification(notification, self._era)
                    if notification.method == "notifications/initialized":
                        self._mark_changed()
                    await respond(http.send, 202, b"", self._header)
                case Response() as response:
                    if self._asked is not None:
                        self._asked.receive(response)
                    await respond(http.send, 202, b"", self._header)
                case InvalidMessage(reply):
                    await respond_json(http.send, 400, reply, self._header)
        finally:
            self._posts -= 1
            self.used_at = self.session.clock.monotonic()
            if self._ends_after_posts and not self._posts:
                await self._requests.close()

    async def _answer(self, request: Request, http: HttpRequest) -> None:
        if (refusal := self._era.refusal(request)) is not None:
            await self._open_exchange(http).answer(
                self._refuse(request, http, refusal), names_session=self._era.is_open
            )
            return
        if request.method == "initialize":
            self._begin_records(request)
        context = self._open_context(request, http)
        context.channel = exchange = self._open_exchange(http, request.request_id, on_abandoned=context.promote)
        reply = await self._requests.respond(context, self._era)
        if request.method == "initialize":
            self._take_questions()
        if_unread = context.keep if context.has_more_than_words else None
        if not await exchange.answer(reply, names_session=self._era.is_open, if_unread=if_unread):
            context.keep()
        else:
            http.connection.when_written(context.confirm)

    async def _answer_batch(self, values: list[Any], http: HttpRequest) -> None:
        refusal = self._requests.batch_refusal(values, self._era, self.session.limits.batch_messages)
        if refusal is not None:
            await send_rpc_error(http.send, 400, INVALID_REQUEST, refusal, self._header)
            return
        exchange = self._open_exchange(http, is_batch=True)
        contexts: list[RequestContext] = []

        def accept(request: Request) -> RequestContext | JsonObject:
            if (refusal := self._era.refusal(request)) is not None:
                return self._refuse(request, http, refusal)
            context = self._open_context(request, http)
            context.channel = exchange
            contexts.append(context)
            return context

        def keep_all() -> None:
            for context in contexts:
                context.keep()

        replies = await self._requests.respond_to_batch(values, self._era, accept)
        if not replies:
            await respond(http.send, 202, b"", self._header)
        elif not await exchange.answer(replies, if_unread=keep_all):
            keep_all()
        else:
            for context in contexts:
                http.connection.when_written(context.confirm)

    def _open_context(self, request: Request, http: HttpRequest) -> RequestContext:
        context = self._requests.open_context(request, self.session, NO_CHANNEL, http.identity)
        context.follow_events, context.asker, context.surface = self._feed.follow, self._asked, http.surface
        context.headers = http.headers
        return context

    def _refuse(self, request: Request, http: HttpRequest, reply: JsonObject) -> JsonObject:
        context = self._open_context(request, http)
        context.era = self._era
        return self._requests.refuse(context, reply)

    def _take_questions(self) -> None:
        if self._asked is None and self._era.is_open:
            self._asked = ElicitationRequests.of(self.session, self._reach, self._era)

    def _reach(self, call: object | None) -> Callable[[JsonObject], None] | None:
        """Return the sender of the call's own stream, else of the push stream, else of any open stream."""
        open_ones = [
            (context.call is not None and context.call[1] is call, context.channel)
            for context in self._requests
            if isinstance(context.channel, Exchange) and context.channel.reaches_caller
        ]
        for is_its_own, channel in open_ones:
            if is_its_own:
                return channel.send
        if self._replay.is_read(PUSH):
            return self._replay.push
        return open_ones[-1][1].send if open_ones else None

    def _open_exchange(
        self,
        http: HttpRequest,
        request_id: RequestId | None = None,
        *,
        is_batch: bool = False,
        on_abandoned: Callable[[], object] | None = None,
    ) -> Exchange:
        return Exchange(
            self._replay,
            http,
            clock=self.session.clock,
            header=self._header,
            primes=self._era.is_open and self._era.version >= PRIMED_SINCE,
            request_id=request_id,
            is_batch=is_batch,
            on_abandoned=on_abandoned,
        )

    # GET.

    async def get(self, last_event_id: str | None, http: HttpRequest) -> None:
        """Replay and follow one stream: the stream of the given event id, or else the push stream."""
        found = None if last_event_id is None else self._replay.find(last_event_id)
        if last_event_id is not None and found is None:
            words = "Unknown Last-Event-ID: the event is no longer stored. Open a new stream without this header."
            await send_rpc_error(http.send, 400, INVALID_REQUEST, words, self._header)
            return
        self._gets += 1
        self.session.open_streams += 1
        try:
            await self._replay.read(found, http.send, http.receive, self._header, connection=http.connection)
        finally:
            self._gets -= 1
            self.used_at = self.session.clock.monotonic()
            self.session.open_streams -= 1
            self.session.touch()

    # Stored records.

    @property
    def _own_key(self) -> SessionKey:
        return SessionKey(self.key.principal, KeyKind.CONNECTION, self.connection_id)

    def _begin_records(self, request: Request) -> None:
        if self._handshake is None:
            self._handshake = encode(request.params or {})
            if not self.owns_session:
                self.session.keys |= {self._own_key}
            self._mark_changed()

    def _mark_changed(self) -> None:
        if self._handshake is not None:
            self.session.unsaved.mark(RecordKind.CONNECTION, self.connection_id)

    def mark(self, number: int) -> None:
        self.session.unsaved.mark(RecordKind.MESSAGE, message_record_id(self.connection_id, number))

    @property
    def is_unsaved(self) -> bool:
        return bool(self.session.unsaved)

    @property
    def is_lost(self) -> bool:
        unsaved = self.session.unsaved
        return self.session.is_lost or (bool(unsaved) and unsaved.is_in_doubt)

    async def save(self) -> None:
        await self.session.unsaved.save()

    def forget_records(self) -> None:
        """Mark the stored records for removal: the connection has ended, and its session continues."""
        self.session.keys -= {self._own_key}
        self._mark_changed()
        for number in self._replay.log.numbers:
            self.mark(number)

    def record(self) -> ConnectionRecord | None:
        if self._handshake is None or not self._era.is_open:
            return None
        return ConnectionRecord(
            handshake=decode(self._handshake) | {"protocolVersion": self._era.version},
            is_initialized=self._era.is_initialized,
            follows_events=self._feed.is_followed,
            pushed=self._replay.pushed,
        )

    def message_record(self, number: int) -> MessageRecord | None:
        entry = self._replay.log.message(number)
        if entry is None:
            return None
        clock = self.session.clock
        return MessageRecord(
            number=number,
            event_id=entry.event_id,
            stream=entry.stream,
            data=entry.data,
            is_final=entry.is_final,
            written_at=clock.now() - timedelta(seconds=clock.monotonic() - entry.at),
            request_id=entry.request_id,
        )

    async def restore(self, record: ConnectionRecord, messages: Iterable[MessageRecord]) -> None:
        """Restore the connection of an ended process. A request that was in progress gets an error that says so.

        Raises:
            ProtocolError: the stored handshake is invalid.
        """
        await self._era.resume(record.handshake, is_initialized=record.is_initialized)
        self._handshake = encode(record.handshake)
        clock, log = self.session.clock, self._replay.log
        now, monotonic = clock.now(), clock.monotonic()
        is_open = log.restore(
            Kept(
                message.number,
                message.event_id,
                message.stream,
                message.data,
                message.is_final,
                monotonic - (now - message.written_at).total_seconds(),
                message.request_id,
            )
            for message in messages
        )
        self._replay.pushed = record.pushed
        self._feed.follow(record.follows_events)
        self._take_questions()
        for stream, request_id in is_open:
            log.append(stream, encode(error_message(request_id, SERVER_ERROR, RESTARTED)), is_final=True)

    # Closing.

    def end_pushes(self) -> None:
        """Stop the reader of the push stream."""
        self._replay.stop_reader(PUSH)

    def cancel_requests(self) -> None:
        self._requests.cancel_all()

    async def close(self, asking: "asyncio.Task[Any] | None" = None) -> None:
        """Close requests, then streams, as the session ends. A request that `asking` serves is answered first."""
        is_asking = self._requests.is_served_by(asking)
        await self._end(self._requests.cancel_all(but=asking), after_posts=is_asking)

    async def leave(self) -> None:
        """End only the connection. Calls in progress continue as tasks of the session."""
        await self._end(self._requests.detach_all())

    async def _end(self, ending: "list[asyncio.Task[Any]]", *, after_posts: bool = False) -> None:
        self._feed.follow(False)
        if self._asked is not None:
            self._asked.close()
        if ending:
            await asyncio.wait(ending, timeout=LAST_WORDS_SECONDS)
        self._ends_after_posts = after_posts
        if not after_posts:
            await self._requests.close()


async def handshake_refusal(request: Request, methods: ProtocolMethods) -> JsonObject | None:
    """Return the error that this `initialize` would cause, or None. The check leaves no state."""
    era = HandshakeEra(methods, EventsFeed(None, NO_CHANNEL.send))
    try:
        await era.serve(RequestContext(request))
    except Exception as error:
        return error_for(request, error)
    return None

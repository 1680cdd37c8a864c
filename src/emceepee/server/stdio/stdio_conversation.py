"""One caller on one pair of pipes: each request runs in its own task, in the era that the caller opened."""

import asyncio
from collections.abc import Callable
from typing import Any

from emceepee.server.dispatch import Tools
from emceepee.server.elicitation_requests import ElicitationRequests
from emceepee.server.eras import Era, HandshakeEra, era_for
from emceepee.server.events_feed import EventsFeed
from emceepee.server.listen_requests import end_listens
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import Requests
from emceepee.sessions.session import Session
from emceepee.tools.request_context import RequestContext
from emceepee.wire.codec import Unreadable, decode
from emceepee.wire.json_rpc import (
    REQUEST_CANCELLED,
    SHUTTING_DOWN,
    InvalidMessage,
    Notification,
    Request,
    Response,
    classify,
    client_label,
    error_message,
)
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import TooLongLine
from emceepee.wire.protocol import INVALID_REQUEST, PARSE_ERROR

PROBES = ("initialize", "server/discover")  # a client may send these only to identify the server, and then leave
SendMessages = Callable[[JsonObject | list[JsonObject]], None]


class StdioConversation:
    """Receives lines with `receive`, and answers through `send`. It is the channel of all its requests."""

    is_gone = False  # the process ends with its caller

    def __init__(self, methods: ProtocolMethods, session: Session, send: SendMessages, tools: Tools) -> None:
        self._methods, self._session, self.send = methods, session, send
        self._feed = EventsFeed(session, send)
        self._era: Era | None = None
        self._asked: ElicitationRequests | None = None  # None unless the caller accepts questions
        self._is_probing = True  # until the caller has sent more than probes
        self._requests = Requests("stdio", tools, answers_cancelled=False)
        self._is_draining = False

    def __repr__(self) -> str:
        era = "no era yet" if self._era is None else type(self._era).__name__
        return f"<Conversation {era} {'draining ' if self._is_draining else ''}{self._requests!r}>"

    async def receive(self, line: bytes | TooLongLine) -> None:
        """Process one line. Only `initialize` is awaited here, because the messages after it depend on it."""
        if isinstance(line, TooLongLine):
            self.send(error_message(line.message_id, INVALID_REQUEST, "Invalid request: the line is too long"))
            return
        try:
            value = decode(line)
        except ValueError as error:
            self._refuse_unreadable(line, error)
            return
        if isinstance(value, list):
            self._start_batch(value)
            return
        match classify(value):
            case Request() as request:
                await self._start(request)
            case Notification() as notification:
                self._handle_notification(notification)
            case InvalidMessage(reply):
                self.send(reply)
            case Response() as response:
                if self._asked is not None:
                    self._asked.receive(response)

    def _refuse_unreadable(self, line: bytes, error: ValueError) -> None:
        """Refuse a line, under its request's id if possible. An unreadable answer moves its question elsewhere."""
        ends = TooLongLine.of(line)
        why = error if isinstance(error, Unreadable) else "not JSON"
        if ends.is_an_answer and self._asked is not None:
            self._asked.receive(Response(ends.message_id, {}))
        else:
            key = ends.message_id if ends.is_a_request else None
            self.send(error_message(key, PARSE_ERROR, f"Parse error: the line is {why}"))

    async def finish(self, *, within: float) -> None:
        """Wait up to `within` seconds for running requests to finish. End listens at once."""
        end_listens(self._requests)
        await self._requests.wait(within=within)

    async def drain(self, *, finish: float, let_go: float, hurried: asyncio.Event) -> None:
        """Accept nothing new. Running requests have `finish` seconds, or until `hurried`; then they get an error."""
        self._is_draining = True
        self._session.begin_stop()
        hurry = self._requests.tasks.spawn(hurried.wait(), name="hurry")
        running = asyncio.ensure_future(self.finish(within=finish))
        await asyncio.wait({running, hurry}, return_when=asyncio.FIRST_COMPLETED)
        running.cancel()
        self._session.stop()
        await self.finish(within=let_go)
        for context in self._requests:
            context.cancel()
            self.send(error_message(context.request.request_id, REQUEST_CANCELLED, SHUTTING_DOWN))

    async def close(self) -> None:
        if self._asked is not None:
            self._asked.close()
        await self._requests.close()

    async def _start(self, request: Request) -> None:
        context = RequestContext(request, self._session, self)
        if request.method != "initialize":
            self._requests.start(context, self._accept, self.send)
            return
        # A client that waited long may have canceled a probe of the other era, and initialized, before we read it.
        accepted = self._accept(context)
        await asyncio.wait({self._requests.start(context, lambda _: accepted, self.send)})
        if isinstance(self._era, HandshakeEra) and self._era.is_open and self._asked is None:
            self._asked = ElicitationRequests.of(self._session, lambda _: self.send, self._era)

    def _accept(self, context: RequestContext) -> Era | JsonObject:
        """Return the request's era, or its error. The first accepted request that is no probe decides the era."""
        request = context.request
        if self._is_draining:
            return error_message(request.request_id, INVALID_REQUEST, SHUTTING_DOWN)
        era = self._era_of(request)
        if self._session.profile.label is None:
            self._session.update_profile(label=client_label(request.params))
        if (refusal := era.refusal(request)) is not None:
            context.era = era
            return refusal
        self._era, self._is_probing = era, self._is_probing and request.method == "server/discover"
        if request.method not in PROBES:
            self._session.wake()
        if isinstance(era, HandshakeEra):
            context.follow_events, context.asker = self._feed.follow, self._asked
        return era

    def _era_of(self, request: Request) -> Era:
        """Return the era. A client that gave up `server/discover` may initialize, even if our answer was sent."""
        if self._era is None or (self._is_probing and request.method == "initialize"):
            return era_for(request, self._methods, self._feed)
        return self._era

    def _handle_notification(self, notification: Notification) -> None:
        if notification.method == "notifications/cancelled":
            self._requests.cancel(notification)  # even before the era is decided
        elif self._era is not None:
            if notification.method == "notifications/initialized":
                self._session.wake()
            self._requests.handle_notification(notification, self._era)

    def _start_batch(self, values: list[Any]) -> None:
        era = self._era
        refusal = self._requests.batch_refusal(values, era, self._session.limits.batch_messages)
        if era is None or refusal is not None:
            self.send(error_message(None, INVALID_REQUEST, refusal or ""))
            return
        self._requests.tasks.spawn(self._answer_batch(values, era), name="batch")

    async def _answer_batch(self, values: list[Any], era: Era) -> None:
        contexts: list[RequestContext] = []

        def accept(request: Request) -> RequestContext | JsonObject:
            context = RequestContext(request, self._session, self)
            accepted = self._accept(context)
            contexts.append(context)
            return self._requests.refuse(context, accepted) if isinstance(accepted, dict) else context

        replies = await self._requests.respond_to_batch(values, era, accept)
        if replies:
            self.send(replies)
        for context in contexts:
            context.confirm()

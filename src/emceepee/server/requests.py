"""The request core: the requests in service, over any transport.

    transport             Requests                       tools, methods           session
    ---------             --------                       ------------            -------
    message ── accept ──▶ start/respond: in the table ──▶ run ── record_call ──▶ call to a backend
                          cancel(notification)
                            intent ── context.cancel ──▶ CancelledError       ── call canceled
                            client timeout ── abandon ─▶ CancelledError       ── call continues as a task
    connection lost ────▶ detach_all ── promote ───────▶ reply names the task ── call continues as a task
    response  ◀── result or error ◀── out of the table

A request is in the table from its arrival until its response exists; from then on nothing can cancel it. The
transport must then write the response, and call `context.keep()` if it turns out that nobody read it.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.eras import Era
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.session import Session
from emceepee.surface import use_surface
from emceepee.telemetry.journal import Journal
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.spans import SpanKind
from emceepee.tools.replies.client_traits import is_about_a_timeout, is_started_by_program, traits_of
from emceepee.tools.request_context import RequestContext, ResponseChannel, ServerPolicy
from emceepee.wire.json_rpc import (
    REQUEST_CANCELLED,
    InvalidMessage,
    Notification,
    ProtocolError,
    Request,
    cancellation_reason,
    cancelled_id,
    classify,
    error_message,
    is_client_timeout,
    result_message,
)
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR

log = EventLog("server")
CANCELLED = "Request cancelled"
ENDED = "The session ended or emceepee stopped during this request, which may have run. Check before you repeat it."
MOVED = "Another replica took this session over during this request, which may have run. Check before you repeat it."
SendMessage = Callable[[JsonObject], None]
Accept = Callable[[Request], "RequestContext | JsonObject"]  # returns the context to serve, or a refusal


class Requests:
    """The requests of one connection, or of a whole endpoint if requests belong to no connection."""

    def __init__(
        self,
        name: str,
        tools: Tools,
        *,
        answers_cancelled: bool,
        directory: SessionDirectory | None = None,
        policy: ServerPolicy | None = None,
    ) -> None:
        """`answers_cancelled`: an HTTP request needs some response; on a pipe a canceled request gets none."""
        self._name, self._tools, self._answers_cancelled = name, tools, answers_cancelled
        self._directory, self._policy = directory, policy
        self._unowned = None if directory is None else directory.unowned_requests
        self._running: dict[RequestContext, None] = {}  # ordered; a careless caller may use an id twice
        self.tasks = TaskOwner(name)

    def __repr__(self) -> str:
        return f"<Requests {self._name} running={len(self._running)}>"

    def __iter__(self) -> Iterator[RequestContext]:
        return iter(list(self._running))

    def open_context(
        self, request: Request, session: Session | None, channel: ResponseChannel, identity: CallerIdentity
    ) -> RequestContext:
        """Return the context of a request that was admitted over HTTP."""
        return RequestContext(
            request, session, channel, identity.principal, identity.is_remote, self._directory, self._policy
        )

    # One request.

    def start(
        self, context: RequestContext, accept: Callable[[RequestContext], Era | JsonObject], send: SendMessage
    ) -> "asyncio.Task[None]":
        """Serve a request in a task of its own, and send the response. `accept` returns its era, or the refusal.

        `accept` runs in the task's first step, so a request that is canceled before that decides nothing.
        """
        return self._track(context, self._accept_and_respond(context, accept, send))

    async def respond(self, context: RequestContext, era: Era) -> JsonObject:
        """Serve a request in the current task, and return its response, even if it was canceled."""
        request = context.request
        task = context.task = asyncio.current_task()
        context.era = era
        use_surface(context.surface or self._tools.surface)
        self._running[context] = None
        try:
            if request.method == "tools/call":
                result = era.complete(await self._tools.call(request.params, context))
            elif (journal := self._unowned if context.session is None else context.session.journal) is None:
                result = await era.serve(context)
            else:
                with _protocol_span(journal, context):
                    result = await era.serve(context)
                if context.session is not None and context.session.unsaved:
                    await context.session.unsaved.save()
            return result_message(request.request_id, result)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()  # the caller canceled, or its connection ended: the transport ends in order
            context.is_cancelled = True
            is_moved = context.session is not None and context.session.is_lost
            words = MOVED if is_moved else ENDED if context.is_broken_off else CANCELLED
            return error_message(request.request_id, REQUEST_CANCELLED, words)
        except Exception as error:
            return error_for(request, error)
        finally:
            self._running.pop(context, None)
            context.close()

    def refuse(self, context: RequestContext, reply: JsonObject) -> JsonObject:
        """Report a refused request to observers, and return the same reply."""
        observe_refusal(self._tools, context, reply)
        return reply

    async def _accept_and_respond(
        self, context: RequestContext, accept: Callable[[RequestContext], Era | JsonObject], send: SendMessage
    ) -> None:
        accepted = accept(context)
        if isinstance(accepted, dict):
            send(self.refuse(context, accepted))
            return
        reply = await self.respond(context, accepted)
        if self._is_wanted(context):
            send(reply)
            context.confirm()

    def _is_wanted(self, context: RequestContext) -> bool:
        return self._answers_cancelled or not context.is_cancelled

    def _track(self, context: RequestContext, work: Any) -> "asyncio.Task[Any]":
        """Enter the request in the table at once: the next message may cancel it before its first step."""
        task = context.task = self.tasks.spawn(work, name=context.request.method)
        self._running[context] = None
        task.add_done_callback(lambda _: self._running.pop(context, None))
        return task

    # Batches: only the 2025-03-26 version has them.

    def batch_refusal(self, values: list[Any], era: Era | None, most: int) -> str | None:
        """Return why a batch is refused as a whole, or None."""
        if era is None or not era.has_batches or not values:
            return "Invalid request: a batch is not accepted here"
        if len(values) > most:
            return f"Invalid request: the batch has {len(values)} messages, but the limit is {most}"
        return None

    async def respond_to_batch(self, values: list[Any], era: Era, accept: Accept) -> list[JsonObject]:
        """Serve the requests of a batch concurrently, and return all responses, errors first."""
        replies: list[JsonObject] = []
        serving: list[tuple[RequestContext, asyncio.Task[JsonObject]]] = []
        for value in values:
            match classify(value):
                case Request() as request:
                    accepted = accept(request)
                    if isinstance(accepted, RequestContext):
                        serving.append((accepted, self._track(accepted, self.respond(accepted, era))))
                    else:
                        replies.append(accepted)
                case Notification() as notification:
                    self.handle_notification(notification, era)
                case InvalidMessage(reply):
                    replies.append(reply)
        if serving:
            await asyncio.wait([task for _, task in serving])
        return replies + [
            task.result() for context, task in serving if not task.cancelled() and self._is_wanted(context)
        ]

    # Cancelling.

    def handle_notification(self, notification: Notification, era: Era) -> None:
        if notification.method == "notifications/cancelled":
            self.cancel(notification)
        else:
            self.tasks.spawn(era.handle_notification(notification), name=notification.method)

    def cancel(self, notification: Notification) -> None:
        """Handle a `notifications/cancelled`, if its request is still being served."""
        request_id = cancelled_id(notification)
        found = (context for context in reversed(self._running) if context.request.request_id == request_id)
        context = None if request_id is None else next(found, None)
        if context is None:
            return
        if is_client_timeout(notification) or _is_probably_timeout(notification, context):
            context.abandon()
        else:
            context.cancel()

    def cancel_all(self, *, but: "asyncio.Task[Any] | None" = None) -> "list[asyncio.Task[Any]]":
        """Cancel all requests except that of the task `but`. Return the tasks that now end."""
        return self._end_all(RequestContext.break_off, (context for context in self if context.task is not but))

    def detach_all(self) -> "list[asyncio.Task[Any]]":
        """Detach all requests: their backend calls continue as tasks of the session. Return the tasks that now end."""
        return self._end_all(RequestContext.detach, self)

    def _end_all(
        self, end: Callable[[RequestContext], None], contexts: Iterable[RequestContext]
    ) -> "list[asyncio.Task[Any]]":
        ending = [(context, context.task) for context in contexts]
        for context, _ in ending:
            end(context)
        return [task for _, task in ending if task is not None]

    def is_served_by(self, task: "asyncio.Task[Any] | None") -> bool:
        """Return whether the task serves one of the requests."""
        return task is not None and any(context.task is task for context in self._running)

    # Closing.

    async def wait(self, *, within: float) -> None:
        """Wait until the current requests are served, but not longer than `within` seconds."""
        if tasks := [context.task for context in self._running if context.task is not None]:
            await asyncio.wait(tasks, timeout=within)

    async def close(self) -> None:
        await self.tasks.close(within=CLOSE_TASKS_SECONDS)


def _is_probably_timeout(notification: Notification, context: RequestContext) -> bool:
    """Return whether a client that names one reason for all cancellations ended the call by its timeout."""
    unclear = traits_of(context.client_name).unclear_reason
    if unclear is None or context.call is None or cancellation_reason(notification) != unclear:
        return False
    session, call = context.call
    seconds = session.clock.monotonic() - call.started_at
    return is_started_by_program(context.request.params) or is_about_a_timeout(seconds)


def error_for(request: Request, error: Exception) -> JsonObject:
    """Convert an exception to a JSON-RPC error, in this one place. Internal details are only logged."""
    if isinstance(error, ProtocolError):
        return error_message(request.request_id, error.code, str(error), error.data)
    log.error("request_failed", method=request.method, error=f"{type(error).__name__}: {error}")
    return error_message(request.request_id, INTERNAL_ERROR, "Internal error")


def observe_refusal(tools: Tools, context: RequestContext, reply: JsonObject) -> None:
    """Report a refused request and its reply to observers."""
    request = context.request
    if request.method == "tools/call":
        span = tools.begin_unkept(request.params, context)
    elif (journal := context.unkept_journal()) is not None:
        span = journal.begin(SpanKind.PROTOCOL, request.method, None, {}, origin=context)
    else:
        span = None
    if span is None:
        return
    if "result" in reply:
        span.replied(reply["result"])
        return
    try:  # as if it had been served: observers read the code from the active exception
        raise ProtocolError(reply["error"]["code"], reply["error"]["message"])
    except ProtocolError as error:
        span.failed(str(error))


@contextmanager
def _protocol_span(journal: Journal, context: RequestContext) -> Iterator[None]:
    """Record a request other than a tool call in a journal."""
    span = journal.begin(SpanKind.PROTOCOL, context.request.method, None, {}, origin=context)
    try:
        yield
    except Exception as error:
        span.failed(str(error))
        raise
    except BaseException:
        span.cancelled()
        raise
    span.replied({})

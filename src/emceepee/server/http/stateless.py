"""One request of the 2026-07-28 era over HTTP: it brings everything that is to be known of its caller."""

import asyncio

from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import HEADER_MISMATCH

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError
from emceepee.guard.identity import CallerIdentity
from emceepee.json_rpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    REQUEST_CANCELLED,
    InvalidMessage,
    Notification,
    Request,
    classify,
    error_message,
    result_message,
)
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.dispatch import SESSION_ARGUMENT, Tools
from emceepee.server.eras import ModernEra, complete, error_for
from emceepee.server.events_feed import EventsFeed
from emceepee.server.http.exchange import StatelessExchange
from emceepee.server.request_context import AdmittedRequest, RunningRequest, caller_for, client_label
from emceepee.server.sdk_server import CallerState
from emceepee.server.session_keys import default_key, named_key, pinned_name
from emceepee.sessions.directory import SessionDirectory, SessionKey
from emceepee.sessions.session import Session
from emceepee.tools.replies import error_reply
from emceepee.web.asgi import Headers, Receive, Scope, Send, respond, respond_json

PROTOCOL_HEADERS = b"mcp-"  # what their names begin with


class StatelessEndpoint:
    """Serves requests that belong to no protocol session; which of ours they mean, they say themselves."""

    def __init__(
        self, sdk_server: Server[CallerState], tools: Tools, directory: SessionDirectory, *, requires_session: bool
    ) -> None:
        self._sdk_server, self._tools, self._directory = sdk_server, tools, directory
        self._clock: Clock = directory.clock
        self._requires_session = requires_session
        self._tasks = TaskOwner("modern-http")
        self._running: dict[asyncio.Task[object], str] = {}
        self._listening: dict[asyncio.Task[object], Session] = {}
        self._stamp = sdk_server.server_info_stamp  # once: each look at it makes a copy

    async def post(
        self, value: object, scope: Scope, headers: Headers, send: Send, receive: Receive, *, admitted: AdmittedRequest
    ) -> None:
        match classify(value):
            case Request() as request:
                if (rejection := self._rejection(request, scope, headers)) is not None:
                    await self._reject(send, request, rejection)
                    return
                name = pinned_name(headers, scope.get("query_string", b""))
                await self._serve(request, name, send, receive, admitted)
            case Notification():
                version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
                if (unsupported := unsupported_protocol_version_rejection(version)) is not None:
                    await self._reject(send, None, unsupported)
                    return
                await respond(send, 202, b"")
            case InvalidMessage(reply):
                await respond_json(send, 400, reply)
            case _:
                await respond_json(
                    send, 400, error_message(None, INVALID_REQUEST, "Invalid request: nothing was asked")
                )

    def end_listens(self) -> None:
        for task, method in list(self._running.items()):
            if method == "subscriptions/listen":
                task.cancel()

    def session_ended(self, session: Session) -> None:
        """Nothing more will happen in it: let whoever listens go."""
        for task, listened_to in list(self._listening.items()):
            if listened_to is session:
                task.cancel()

    def cancel_requests(self) -> None:
        for task in list(self._running):
            task.cancel()

    async def close(self) -> None:
        self.cancel_requests()
        await self._tasks.close()

    def _rejection(self, request: Request, scope: Scope, headers: Headers) -> InboundLadderRejection | None:
        # Spaces around a value are not part of it, says HTTP, and not every server below us takes them off.
        pairs = [
            (name.decode("latin-1"), text.decode("latin-1").strip(" \t"))
            for name, text in scope["headers"]
            if name.startswith(PROTOCOL_HEADERS)
        ]
        if (twice := find_duplicated_routing_header(pairs)) is not None:
            return InboundLadderRejection(code=HEADER_MISMATCH, message=f"{twice} header appears more than once")
        body = {"method": request.method, "params": request.params}
        said = dict(pairs)
        verdict = classify_inbound_request(body, headers=said)
        if isinstance(verdict, InboundLadderRejection):
            return verdict
        params = request.params or {}
        arguments = params.get("arguments")
        if request.method == "tools/call" and (schema := self._tools.mirroring_schema(params.get("name"))):
            return validate_mcp_param_headers(schema, arguments if isinstance(arguments, dict) else {}, said)
        return None

    async def _reject(self, send: Send, request: Request | None, why: InboundLadderRejection) -> None:
        reply = error_message(request.request_id if request else None, why.code, why.message, why.data)
        await respond_json(send, ERROR_CODE_HTTP_STATUS.get(why.code, 200), reply)

    async def _serve(
        self, request: Request, name: str, send: Send, receive: Receive, admitted: AdmittedRequest
    ) -> None:
        task, running_request = asyncio.current_task(), RunningRequest()

        def on_gone() -> None:
            """Hanging up cancels the request; its backend call is the session's, and goes on as a task."""
            if not running_request.promote() and task in self._running:
                task.cancel()

        exchange = StatelessExchange(
            send, receive, connection=admitted.connection, clock=self._clock, tasks=self._tasks, on_gone=on_gone
        )
        if task is not None:
            self._running[task] = request.method
        try:
            result = await self._result(request, name, exchange, admitted, running_request)
            reply: JsonObject = result_message(request.request_id, result)
        except asyncio.CancelledError:
            if task is not None:
                task.uncancel()  # the caller hung up, or the door closes: this response ends in order
            reply = error_message(request.request_id, REQUEST_CANCELLED, "Request cancelled")
        except Exception as error:
            reply = error_for(request, error)
        finally:
            if task is not None:
                self._running.pop(task, None)
        status = ERROR_CODE_HTTP_STATUS.get(reply.get("error", {}).get("code"), 200)
        unread = running_request.keep if running_request.has_more_than_words else None
        if not await exchange.answer(reply, status, if_unread=unread):
            running_request.keep()

    async def _result(
        self,
        request: Request,
        name: str,
        exchange: StatelessExchange,
        admitted: AdmittedRequest,
        running_request: RunningRequest,
    ) -> JsonObject:
        is_call = request.method == "tools/call"
        try:
            session = await self._session(request, name, admitted.identity)
        except EmceepeeError as error:
            if not is_call:
                raise MCPError(INVALID_PARAMS, str(error), error.body()) from None
            return {"resultType": "complete", **error_reply(error)}
        if session is not None and session.label is None:
            session.label = client_label(request.params)
        if is_call:
            caller = caller_for(request, exchange, admitted, running_request)
            return complete(await self._tools.call(request.params, session, caller), self._stamp)
        if session is not None:
            return await self._listen(request, session, exchange)
        return await ModernEra(self._sdk_server, CallerState(None, exchange.say)).serve(request, exchange.say)

    async def _listen(self, request: Request, session: Session, exchange: StatelessExchange) -> JsonObject:
        """A stream that is read keeps its session awake."""
        task, state = asyncio.current_task(), CallerState(EventsFeed(session.activity), exchange.say)
        if task is not None:
            self._listening[task] = session
        session.open_streams += 1
        try:
            return await ModernEra(self._sdk_server, state).serve(request, exchange.say)
        finally:
            session.open_streams -= 1
            session.touch()
            if task is not None:
                del self._listening[task]

    async def _session(self, request: Request, name: str, identity: CallerIdentity) -> Session | None:
        """By its pinned name, or by who it is. A `session` argument comes before both."""
        if not self._needs_session(request):
            return None
        if name:
            key: SessionKey | None = named_key(identity.principal, name)
        else:
            key = None if self._requires_session else default_key(identity, request.params)
        return None if key is None else await self._directory.find_or_open(key)

    def _needs_session(self, request: Request) -> bool:
        """Whether it is for a session that it does not name itself."""
        if request.method != "tools/call":
            return request.method == "subscriptions/listen"
        params = request.params or {}
        arguments = params.get("arguments")
        names_one = isinstance(arguments, dict) and SESSION_ARGUMENT in arguments
        return not names_one and self._tools.needs_session(params.get("name"))

"""The 2026-07-28 era over HTTP: every request carries all information about its caller."""

from typing import NamedTuple

from emceepee.errors import EmceepeeError
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.guard.proxy_headers import is_forwarded
from emceepee.server.dispatch import Tools
from emceepee.server.eras import ModernEra
from emceepee.server.http.exchange import DirectResponse, HttpRequest, StatelessExchange
from emceepee.server.http.request_reader import accept_request, http_status
from emceepee.server.listen_requests import LISTEN, end_listens
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import Requests
from emceepee.server.session_keys import default_key, named_key, pinned_name
from emceepee.sessions.conversations import Conversations
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.tools.declaration.aliases import SESSION_ARGUMENT
from emceepee.tools.replies.replies import error_reply
from emceepee.tools.request_context import NO_CHANNEL, ServerPolicy
from emceepee.web.asgi import STREAM, Header, accepts
from emceepee.wire.json_rpc import Request, classify, client_label, error_message, result_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, INVALID_REQUEST


class StatelessCall(NamedTuple):
    """An accepted request and its session, if it has one."""

    request: Request
    session: Session | None


class StatelessEndpoint:
    """Serves requests without a protocol session. Each request identifies its own emceepee session."""

    def __init__(
        self,
        methods: ProtocolMethods,
        tools: Tools,
        directory: SessionDirectory,
        policy: ServerPolicy,
        *,
        requires_session: bool,
    ) -> None:
        self._tools, self._directory, self._requires_session = tools, directory, requires_session
        self._era = ModernEra(methods)
        self._requests = Requests("stateless-http", tools, answers_cancelled=True, directory=directory, policy=policy)

    def __repr__(self) -> str:
        return f"<StatelessEndpoint {self._requests!r}>"

    async def find(self, value: object, http: HttpRequest) -> StatelessCall | DirectResponse:
        """Find the session of the request in a decoded body, or refuse it. Raises: SessionElsewhere."""
        request = accept_request(value, http)
        if isinstance(request, DirectResponse):
            if isinstance(refused := classify(value), Request) and request.message is not None:
                self._observe_refusal(refused, http, request.message)
            return request
        http.connection.line.note(request.request_id)
        if request.method == LISTEN and not accepts(http.headers, STREAM):
            words = f"{LISTEN} is answered with text/event-stream"
            return self._refuse(request, http, error_message(request.request_id, INVALID_REQUEST, words), 406)
        try:
            return StatelessCall(request, await self._find_session(request, http))
        except SessionsUnavailable as error:
            reply = error_message(None, INVALID_REQUEST, str(error))
            return self._refuse(request, http, reply, 503, (b"retry-after", b"5"))
        except EmceepeeError as error:
            reply = self._without_session(request, error)
            return self._refuse(request, http, reply, http_status(reply))

    def end_listens(self) -> None:
        end_listens(self._requests)

    def end_listens_of(self, session: Session) -> None:
        """End the listens of a session in which nothing more will happen."""
        end_listens(context for context in self._requests if context.session is session)

    def cancel_requests(self) -> None:
        self._requests.cancel_all()

    async def close(self) -> None:
        self.cancel_requests()
        await self._requests.close()

    async def serve(self, call: StatelessCall, http: HttpRequest) -> None:
        request, session = call
        context = self._requests.open_context(request, session, NO_CHANNEL, http.identity)
        context.surface, context.headers = http.surface, http.headers
        if session is not None and session.conversations is not None:
            line = None if is_forwarded(tuple(http.headers)) else http.connection.line
            meta = (request.params or {}).get("_meta")
            context.conversation = session.conversations.find(
                context.client, line, request.request_id, meta if isinstance(meta, dict) else {}
            )
        context.channel = exchange = StatelessExchange(
            http, clock=self._directory.clock, tasks=self._requests.tasks, on_gone=context.detach
        )
        if request.method == LISTEN and session is not None:
            session.open_streams += 1  # an open stream keeps its session awake
        try:
            reply = await self._requests.respond(context, self._era)
        finally:
            if request.method == LISTEN and session is not None:
                session.open_streams -= 1
                session.touch()
        if_unread = context.keep if context.has_more_than_words else None
        if not await exchange.answer(reply, http_status(reply), if_unread=if_unread):
            context.keep()
        else:
            http.connection.when_written(context.confirm)

    def _refuse(
        self, request: Request, http: HttpRequest, reply: JsonObject, status: int, *headers: Header
    ) -> DirectResponse:
        self._observe_refusal(request, http, reply)
        return DirectResponse(status, reply, headers)

    def _observe_refusal(self, request: Request, http: HttpRequest, reply: JsonObject) -> None:
        context = self._requests.open_context(request, None, NO_CHANNEL, http.identity)
        context.headers, context.era = http.headers, self._era
        self._requests.refuse(context, reply)

    def _without_session(self, request: Request, error: EmceepeeError) -> JsonObject:
        """Return the response to a request whose session cannot be opened."""
        if request.method == "tools/call":
            return result_message(request.request_id, self._era.complete(error_reply(error)))
        return error_message(request.request_id, INVALID_PARAMS, str(error), error.reply_body())

    async def _find_session(self, request: Request, http: HttpRequest) -> Session | None:
        """Find the session by pinned name or caller, unless a `session` argument names it. Raises: EmceepeeError."""
        if not self._needs_session(request):
            await self._load_named(request, http)
            return None
        key = self._session_key(request, pinned_name(http.headers, http.query), http.identity)
        if key is None:
            return None
        session = await self._directory.find_or_open(key, may_guess=http.may_guess)
        if key.kind is KeyKind.DEFAULT and session.conversations is None:
            session.conversations = Conversations()
        if session.profile.label is None:
            session.update_profile(label=client_label(request.params))
        return session

    async def _load_named(self, request: Request, http: HttpRequest) -> None:
        """Load the session that the arguments name, if it exists. Raises: SessionElsewhere."""
        arguments = (request.params or {}).get("arguments") if request.method == "tools/call" else None
        if isinstance(arguments, dict) and isinstance(named := arguments.get(SESSION_ARGUMENT), str):
            for kind in (KeyKind.HANDLE, KeyKind.NAME):
                key = SessionKey(http.identity.principal, kind, named)
                if await self._directory.use(key, may_guess=http.may_guess) is not None:
                    return

    def _session_key(self, request: Request, name: str, identity: CallerIdentity) -> SessionKey | None:
        if name:
            return named_key(identity.principal, name)
        return None if self._requires_session else default_key(identity, request.params)

    def _needs_session(self, request: Request) -> bool:
        """Return whether the request needs a session that it does not name itself."""
        if request.method != "tools/call":
            return request.method == LISTEN
        params = request.params or {}
        arguments = params.get("arguments")
        names_one = isinstance(arguments, dict) and SESSION_ARGUMENT in arguments
        return not names_one and self._tools.needs_session(params)

"""The replayed server over Streamable HTTP, with both eras at one address.

initialize ─▶ ReplaySession, by its Mcp-Session-Id: from the beginning of the recording
2026-07-28 ─▶ StatelessReplay: one conversation for all clients, which lasts as long as the process
"""

import asyncio
from collections.abc import Callable

from emceepee.clock import Clock, milliseconds
from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.ids import Ulids
from emceepee.lifecycle import TaskOwner
from emceepee.miniserver.server_conversation import ServerConversation
from emceepee.replay.http_session import ReplaySession
from emceepee.replay.recording import Recording
from emceepee.replay.replayed_conversation import ReplayedConversation
from emceepee.replay.response_channel import ReplayChannel
from emceepee.server.http.cors import PREFLIGHT, with_cors_headers
from emceepee.server.http.exchange import DirectResponse, HttpRequest, StatelessExchange, send_rpc_error
from emceepee.server.http.request_reader import (
    MCP_PATH,
    accept_request,
    find_misdirection,
    http_status,
    read_message,
    send_rejection,
)
from emceepee.server.http.uvicorn_server import serve_http
from emceepee.server.stop_signals import FINISH_SECONDS
from emceepee.state.limits import Limits
from emceepee.web.asgi import STREAM, Receive, Scope, Send, accepts, respond, respond_json
from emceepee.wire.json_rpc import SHUTTING_DOWN, Request, classify
from emceepee.wire.protocol import INVALID_REQUEST

MOST_SESSIONS = 1000  # many clients never send DELETE: at the limit, the least recently used idle session ends
LARGEST_BODY = Limits().recording_bytes  # no recording contains a larger request


class ReplayEndpoint:
    """An ASGI application. `converse` begins a conversation."""

    def __init__(self, converse: Callable[[], ServerConversation], clock: Clock, gate: AccessControl) -> None:
        self._converse, self._clock, self._gate = converse, clock, gate
        self._ids = Ulids(lambda: milliseconds(clock.now()))
        self._sessions: dict[str, ReplaySession] = {}  # the most recently used one is last
        self._shared = converse()  # for all clients of 2026-07-28
        self._stateless = StatelessReplay(self._shared, clock)
        self.is_draining = False
        self.is_over = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if (misdirected := find_misdirection(scope["headers"], headers, self._gate)) is not None:
            await send_rejection(send, misdirected)
            return
        if scope["path"] != MCP_PATH:
            await respond_json(send, 404, {"error": f"There is nothing here. The recording is served at {MCP_PATH}."})
            return
        if (origin := headers.get(b"origin")) is not None:
            send = with_cors_headers(origin, send)
            if scope["method"] == "OPTIONS":
                await respond(send, 204, b"", *PREFLIGHT)
                return
        http = HttpRequest(scope, headers, receive, send, CallerIdentity())
        try:
            await self._serve(http)
        except asyncio.CancelledError:  # the process is being stopped and will not wait
            http.connection.give_up_response()

    async def _serve(self, http: HttpRequest) -> None:
        if self.is_draining:
            await send_rpc_error(http.send, 503, INVALID_REQUEST, SHUTTING_DOWN, (b"retry-after", b"1"))
        elif (message := await read_message(http, LARGEST_BODY)) is None:
            pass  # it was rejected
        elif http.is_modern:
            await self._stateless.post(message.value, http)
        elif http.scope["method"] == "POST" and b"mcp-session-id" not in http.headers:
            await self._open(message.value, http)
        elif (session := await self._find(http)) is None:
            pass
        elif http.scope["method"] == "POST":
            await session.post(message.value, http)
        elif http.scope["method"] == "DELETE":
            del self._sessions[session.session_id]
            await session.close()
            await respond(http.send, 200, b"")
        elif not accepts(http.headers, STREAM):
            await send_rpc_error(http.send, 406, INVALID_REQUEST, "A GET is answered with text/event-stream")
        else:
            await session.get(http)

    async def _open(self, value: object, http: HttpRequest) -> None:
        """Open a session if the message is `initialize`."""
        message = classify(value)
        if not (isinstance(message, Request) and message.method == "initialize"):
            words = "Bad request: begin with initialize, then send the Mcp-Session-Id that it returns."
            await send_rpc_error(http.send, 400, INVALID_REQUEST, words)
            return
        if len(self._sessions) >= MOST_SESSIONS and not await self._make_room():
            words = f"Too many sessions: all {MOST_SESSIONS} are in use."
            await send_rpc_error(http.send, 503, INVALID_REQUEST, words, (b"retry-after", b"5"))
            return
        session = ReplaySession(self._ids.unguessable(), self._converse(), self._clock)
        self._sessions[session.session_id] = session
        await session.post(value, http)
        if not session.is_open and self._sessions.pop(session.session_id, None) is not None:
            await session.close()

    async def _make_room(self) -> bool:
        idle = next((session for session in self._sessions.values() if not session.is_busy), None)
        if idle is None:
            return False
        del self._sessions[idle.session_id]
        await idle.close()
        return True

    async def _find(self, http: HttpRequest) -> ReplaySession | None:
        given = http.headers.get(b"mcp-session-id", b"").decode("latin-1")
        if (session := self._sessions.pop(given, None)) is not None:
            self._sessions[given] = session
        elif given:
            words = "Session not found: it has ended. Begin again with initialize."
            await send_rpc_error(http.send, 404, INVALID_REQUEST, words)
        else:
            await send_rpc_error(http.send, 400, INVALID_REQUEST, "Bad request: the Mcp-Session-Id header is missing")
        return session

    # Shutting down.

    def drain(self) -> None:
        """Reject new requests. Streams without a call end now, and running calls get a short time to finish."""
        if self.is_draining:
            return
        self.is_draining = True
        for session in self._sessions.values():
            session.end_pushes()
        self._shared.end_listens()
        self._clock.call_later(FINISH_SECONDS, self._cancel_requests)

    def _cancel_requests(self) -> None:
        for session in self._sessions.values():
            session.cancel_requests()
        self._shared.cancel_requests()
        self.is_over = True

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._sessions.values()), self._stateless.close())


class StatelessReplay:
    """All requests of this era share one conversation, because nothing distinguishes its clients."""

    def __init__(self, conversation: ServerConversation, clock: Clock) -> None:
        self._conversation, self._clock = conversation, clock
        self._tasks = TaskOwner("replay-stateless")

    async def post(self, value: object, http: HttpRequest) -> None:
        """Serve one decoded body."""
        request = accept_request(value, http)
        if isinstance(request, DirectResponse):
            await request.send(http.send)
            return

        def cancel() -> None:
            serving.cancel()

        exchange = StatelessExchange(http, clock=self._clock, tasks=self._tasks, on_gone=cancel)
        channel = ReplayChannel(exchange, self._clock, takes_questions=False)  # here a result carries questions
        serving = self._conversation.start(request, channel)
        answer = await channel.wait_for_answer(request.request_id, serving)
        await exchange.answer(answer, http_status(answer))

    async def close(self) -> None:
        await self._conversation.close()
        await self._tasks.close()


async def replay_over_http(
    recording: Recording,
    clock: Clock,
    *,
    host: str,
    port: int,
    rules: AccessRules,
    is_instant: bool,
    says: Callable[[str], None],
    announce: Callable[[str], None],
) -> None:
    """Serve until a stop signal. `announce` gets the address as soon as it is open.

    Raises:
        OSError: the address is in use or not available.
    """

    def converse() -> ServerConversation:
        return ReplayedConversation(recording, clock, is_instant=is_instant, says=says)

    async def is_open(address: str) -> None:
        announce(f"{address}{MCP_PATH}")

    endpoint = ReplayEndpoint(converse, clock, AccessControl(rules))
    try:
        limits = Limits(request_body_bytes=LARGEST_BODY)
        await serve_http(endpoint, host=host, port=port, limits=limits, announce=is_open)
    finally:
        await endpoint.close()

"""One session of the handshake era with a replayed server over HTTP."""

import asyncio

from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.miniserver.server_conversation import ServerConversation
from emceepee.replay.response_channel import ReplayChannel
from emceepee.server.http.exchange import PRIMED_SINCE, Exchange, HttpRequest, send_rpc_error
from emceepee.server.http.replay.message_log import PUSH
from emceepee.server.http.replay.replay import Replay
from emceepee.state.limits import Limits
from emceepee.web.asgi import Header, respond, respond_json
from emceepee.wire.json_rpc import InvalidMessage, Request, classify
from emceepee.wire.protocol import INVALID_REQUEST

LAST_WORDS_SECONDS = 1.0  # for the responses to requests that the end of their session cancels


class ReplaySession:
    """The state behind one Mcp-Session-Id: a conversation from its beginning, and its streams."""

    def __init__(self, session_id: str, conversation: ServerConversation, clock: Clock) -> None:
        self.session_id = session_id
        self._header: Header = (b"mcp-session-id", session_id.encode())
        self._conversation, self._clock = conversation, clock
        self._tasks = TaskOwner("replay-session")
        self._streams = Replay(clock, Limits(), self._tasks)
        self._version: str | None = None
        self._posts: set[asyncio.Task[None]] = set()  # tasks that serve requests
        self._gets = 0

    @property
    def is_open(self) -> bool:
        """Whether `initialize` succeeded."""
        return self._version is not None

    @property
    def is_busy(self) -> bool:
        """Whether a request runs or a stream is read."""
        return bool(self._posts) or self._gets > 0

    async def post(self, value: object, http: HttpRequest) -> None:
        """Serve one decoded body."""
        match classify(value):
            case Request() as request:
                await self._answer(request, http)
            case InvalidMessage(reply):
                await respond_json(http.send, 400, reply, self._header)
            case message:
                self._conversation.take(message)
                await respond(http.send, 202, b"", self._header)

    async def _answer(self, request: Request, http: HttpRequest) -> None:
        def cancel() -> None:
            serving.cancel()

        exchange = Exchange(
            self._streams,
            http,
            clock=self._clock,
            header=self._header,
            primes=self._version is not None and self._version >= PRIMED_SINCE,
            request_id=request.request_id,
            on_abandoned=cancel,
        )
        channel = ReplayChannel(
            exchange, self._clock, takes_questions=exchange.takes_stream, send_later=self._streams.push
        )
        serving = self._conversation.start(request, channel)
        post = asyncio.current_task()
        assert post is not None  # the HTTP server runs each request in a task
        self._posts.add(post)
        try:
            answer = await channel.wait_for_answer(request.request_id, serving)
            if request.method == "initialize" and "result" in answer:
                self._version = str(answer["result"]["protocolVersion"])
            await exchange.answer(answer, names_session=self.is_open)
        finally:
            self._posts.discard(post)

    async def get(self, http: HttpRequest) -> None:
        """Stream messages without a request, or resume an interrupted stream after its Last-Event-ID."""
        last = http.headers.get(b"last-event-id")
        found = None if last is None else self._streams.find(last.decode("latin-1"))
        if last is not None and found is None:
            words = "Unknown Last-Event-ID: it is no longer kept. Open a fresh stream without it."
            await send_rpc_error(http.send, 400, INVALID_REQUEST, words, self._header)
            return
        self._gets += 1
        try:
            await self._streams.read(found, http.send, http.receive, self._header)
        finally:
            self._gets -= 1

    def end_pushes(self) -> None:
        """Stop the reader of messages without a request."""
        self._streams.stop_reader(PUSH)

    def cancel_requests(self) -> None:
        self._conversation.cancel_requests()

    async def close(self) -> None:
        """Cancel the requests first, so that their responses can report it; then end the streams."""
        await self._conversation.close()
        if self._posts:
            await asyncio.wait(self._posts, timeout=LAST_WORDS_SECONDS)
        await self._tasks.close()

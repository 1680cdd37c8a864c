"""One HTTP request of a caller and its response, which is the channel of the JSON-RPC request in it.

    0 s      0.5 s                 1 s                                  answer
    ├─ JSON ─┼─ JSON ──────────────┼─ text/event-stream ────────────────┤
    │        └ 2026-07-28: watch   └ from here on, or as soon as there  └ 2025-11-25: appended to the log as the final
    │          for a disconnect      is a notification, in either era     message of its stream; 2026-07-28: written

    cut stream, 2025-11-25:  ──✂── 5 s to resume (GET with Last-Event-ID, Replay) ──▶ else `on_abandoned`
    cut stream, 2026-07-28:  ──✂─▶ `on_gone` at once: that era cannot resume a stream

A caller that accepts no stream gets JSON, however late, and no notifications before it. A caller that accepts nothing
else gets a stream.

`answer` returns whether the response was written. `if_unread` reports later that it was not read.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from emceepee.clock import Clock, Handle
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import TaskOwner
from emceepee.server.http.replay.message_log import PUSH
from emceepee.server.http.replay.replay import Replay
from emceepee.surface import Surface
from emceepee.web.asgi import (
    CONNECTION,
    JSON,
    STREAM,
    CallerConnection,
    Header,
    Headers,
    Receive,
    Scope,
    Send,
    accepts,
    respond,
    respond_json,
    until_gone,
)
from emceepee.web.streams import EventStreamWriter, queued_frames
from emceepee.wire import protocol
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import RequestId, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import HANDSHAKE_PROTOCOL_VERSIONS

STREAM_AFTER = 1.0  # seconds of silence before the response becomes a stream, which can be resumed and kept alive
DISCONNECT_CHECK_AFTER = 0.5  # seconds until a caller that cannot resume is watched; a quicker answer costs no watcher
RETURN_SECONDS = 5.0  # time for a caller to resume a cut stream before its call becomes a task
MOST_WAITING = 1000  # messages for a stalled reader; further messages are dropped, but never the answer
OK = 200  # the status of every stream; an error with another status is not a stream
VERSION_HEADER = protocol.VERSION_HEADER.encode()
PRIMED_SINCE = "2025-11-25"  # older callers would try to parse the empty first event
Unread = Callable[[], None] | None  # callback for a response that was not read


async def send_rpc_error(send: Send, status: int, code: int, message: str, *headers: Header) -> None:
    """Reject a request before its JSON-RPC request is known."""
    await respond_json(send, status, error_message(None, code, message), *headers)


@dataclass(frozen=True, slots=True)
class DirectResponse:
    """A response that needs no session, as a value: most are refusals. `message` is None if there is no body."""

    status: int
    message: JsonObject | None = None
    headers: tuple[Header, ...] = ()

    async def send(self, send: Send) -> None:
        if self.message is None:
            await respond(send, self.status, b"", *self.headers)
        else:
            await respond_json(send, self.status, self.message, *self.headers)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """An admitted request."""

    scope: Scope
    headers: Headers
    receive: Receive
    send: Send
    identity: CallerIdentity
    may_guess: bool = True  # whether its session id may be trusted to name the replica that holds the session
    surface: Surface | None = None  # requested by the client's configuration

    @property
    def connection(self) -> CallerConnection:
        found: CallerConnection = self.scope["extensions"][CONNECTION]
        return found

    @property
    def query(self) -> bytes:
        found: bytes = self.scope.get("query_string", b"")
        return found

    @property
    def version(self) -> str:
        """The protocol version in the request's header, or an empty string."""
        # HTTP excludes surrounding spaces from a header value, but not every server below us strips them.
        return self.headers.get(VERSION_HEADER, b"").decode("latin-1").strip(" \t")

    @property
    def is_modern(self) -> bool:
        """Whether the header names the era without a handshake."""
        version = self.version
        return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


class _Response:
    """The state that both eras share: the response has not begun, is a stream, or has no reader."""

    def __init__(self, http: HttpRequest, clock: Clock, *, is_batch: bool = False) -> None:
        """A batch is never a stream."""
        self._http, self._connection, self._clock = http, http.connection, clock
        self._takes_json = is_batch or accepts(http.headers, JSON)
        self.takes_stream = not is_batch and accepts(http.headers, STREAM)
        self._is_disconnected = False
        self._writing: EventStreamWriter | None = None

    def __repr__(self) -> str:
        state = "gone" if self.is_gone else "not begun" if self._writing is None else "streaming"
        return f"<{type(self).__name__} {state}>"

    @property
    def is_gone(self) -> bool:
        """Whether the response has no reader."""
        if self._writing is not None:
            return not self._writing.is_live
        return self._is_disconnected or self._connection.is_gone()

    async def _respond(
        self, status: int, message: JsonObject | list[JsonObject], if_unread: Unread, *headers: Header
    ) -> bool:
        """Write the whole response; return False if its caller is gone."""
        if self.is_gone:
            self._connection.give_up_response()
            return False
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        await respond_json(self._http.send, status, message, *headers)
        return True


class Exchange(_Response):
    """A handshake-era response. Every stream message is logged before it is written, so a cut stream can be resumed."""

    def __init__(
        self,
        replay: Replay,
        http: HttpRequest,
        *,
        clock: Clock,
        header: Header,
        primes: bool,
        request_id: RequestId | None = None,
        is_batch: bool = False,
        on_abandoned: Callable[[], object] | None = None,
    ) -> None:
        """`on_abandoned` is called when a stream was cut and its caller did not resume it in time."""
        super().__init__(http, clock, is_batch=is_batch)
        self._replay, self._header, self._primes, self._request_id = replay, header, primes, request_id
        self._stream = PUSH  # until this request opens a stream of its own
        self._on_abandoned = on_abandoned
        self._return_timer: Handle | None = None  # the deadline for resuming the stream
        self._stream_timer = clock.call_later(STREAM_AFTER, self._open_stream) if self.takes_stream else None

    @property
    def is_gone(self) -> bool:
        """Whether the response has no reader. A resumed stream has one."""
        return super().is_gone and not (self._writing is not None and self._replay.is_read(self._stream))

    @property
    def reaches_caller(self) -> bool:
        """Whether messages before the answer can be sent and are read."""
        return self.takes_stream and not self.is_gone

    @property
    def unread(self) -> int:
        """Messages that the caller has not read yet; 0 if it is gone."""
        return 0 if self._writing is None or self.is_gone else self._replay.log.unread(self._stream)

    def send(self, message: JsonObject) -> None:
        """Send a message before the answer. Without a reader here, use the push stream if it has one."""
        if not self.takes_stream:
            return
        if self.is_gone and self._replay.is_read(PUSH):
            self._replay.push(message)
            return
        self._open_stream()
        self._replay.log.append(self._stream, encode(message))

    async def answer(
        self, message: JsonObject | list[JsonObject], *, names_session: bool = True, if_unread: Unread = None
    ) -> bool:
        """Send the answer; return False if it was not delivered. `if_unread` reports a failure discovered later."""
        if self._stream_timer is not None:
            self._stream_timer.cancel()
        if not self._takes_json:
            self._open_stream()
        if self._writing is None:
            return await self._respond(200, message, if_unread, *((self._header,) if names_session else ()))
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        self._replay.end_loss_reports(self._stream)
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._replay.log.append(self._stream, encode(message), is_final=True)
        reader = self._replay.reader(self._stream)  # ours, or the reader of a caller that resumed
        was_written = await self._writing.wait_until_finished()
        while not was_written and reader is not None:
            was_written = await reader.wait_until_finished()
            reader = None if (newest := self._replay.reader(self._stream)) is reader else newest
        self._replay.remove_reader(self._stream, self._writing)
        return was_written

    def _open_stream(self) -> None:
        if self._writing is not None:
            return
        log = self._replay.log
        after = log.last_number
        self._stream = f"request {after + 1}"
        # An older caller never receives this entry, but it marks the stream as open.
        log.append(self._stream, b"", request_id=self._request_id)
        self._writing = self._replay.open(
            self._stream,
            after if self._primes else after + 1,
            self._http.send,
            self._http.receive,
            self._header,
            connection=self._connection,
            on_loss=self._start_return_timer,
        )

    def _start_return_timer(self) -> None:
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._return_timer = self._clock.call_later(RETURN_SECONDS, self._abandon)

    def _abandon(self) -> None:
        if self._on_abandoned is not None and self.is_gone:
            self._on_abandoned()


class StatelessExchange(_Response):
    """A 2026-07-28 response. Its stream cannot be resumed: messages are written as they come."""

    def __init__(self, http: HttpRequest, *, clock: Clock, tasks: TaskOwner, on_gone: Callable[[], None]) -> None:
        super().__init__(http, clock)
        self._tasks, self._on_gone = tasks, on_gone
        self._queue: asyncio.Queue[bytes | None] | None = None  # set once the response is a stream
        self._watcher: asyncio.Task[None] | None = None  # until the stream has its own watcher
        self._timer = clock.call_later(DISCONNECT_CHECK_AFTER, self._start_watching)

    @property
    def unread(self) -> int:
        """Messages that the caller has not read yet; 0 if it is gone."""
        return 0 if self._queue is None or self.is_gone else self._queue.qsize()

    def send(self, message: JsonObject) -> None:
        if not self.takes_stream:
            return
        self._open_stream()
        if self._queue is not None and self._queue.qsize() < MOST_WAITING:
            self._queue.put_nowait(encode(message))

    async def answer(self, message: JsonObject, status: int = OK, *, if_unread: Unread = None) -> bool:
        """Send the answer; return False if it was not delivered. `if_unread` reports a failure discovered later."""
        self._stop_waiting()
        if not self._takes_json and status == OK:
            self._open_stream()
        if self._writing is None or self._queue is None:
            return await self._respond(status, message, if_unread)
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        self._queue.put_nowait(encode(message))
        self._queue.put_nowait(None)
        return await self._writing.wait_until_finished()

    def _open_stream(self) -> None:
        if self._queue is None and not self._is_disconnected:
            self._stop_waiting()
            self._queue = asyncio.Queue()
            self._writing = EventStreamWriter(
                self._http.send,
                self._http.receive,
                queued_frames(self._queue, self._clock),
                tasks=self._tasks,
                on_gone=self._on_gone,
                connection=self._connection,
            )

    def _start_watching(self) -> None:
        if self.takes_stream:
            self._timer = self._clock.call_later(STREAM_AFTER - DISCONNECT_CHECK_AFTER, self._open_stream)
        self._watcher = self._tasks.spawn(self._watch_for_disconnect(), name="watch")

    async def _watch_for_disconnect(self) -> None:
        await until_gone(self._http.receive)
        self._is_disconnected = True
        self._on_gone()

    def _stop_waiting(self) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

"""One HTTP request of a caller and its response, which is the channel of the JSON-RPC request in it.

    0 s      0.5 s                 1 s                                  answer
    ├─ JSON ─┼─ JSON ──────────────┼─ text/event-stream ────────────────┤
    │        └ 2026-07-28: watch   └ from here on, or as soon as there  └ 2025-11-25: appended to the log as the final
    │          for a disconnect      is a notification, in either era     message of its stream; 2026-07-28: written

    cut stream, 2025-11-25:  ──✂── 5 s to come back (GET with Last-Event-ID, Replay) ──▶ else `on_abandoned`
    cut stream, 2026-07-28:  ──✂─▶ `on_gone` at once: that era has no way to come back

Who accepts no stream gets JSON, however late, and no notifications before it; who accepts nothing else gets a stream.

`answer` tells whether the response was written. That it was not read may be found out later still: `if_unread`.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from emceepee.clock import Clock, Handle
from emceepee.guard.identity import CallerIdentity
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
    respond_json,
    until_gone,
)
from emceepee.web.streams import Writing, queued_frames
from emceepee.wire import protocol
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import RequestId, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import HANDSHAKE_PROTOCOL_VERSIONS

STREAM_AFTER = 1.0  # seconds of silence until the answer becomes a stream, which can be resumed and kept awake
DISCONNECT_CHECK_AFTER = 0.5  # seconds until a caller is watched that cannot resume; a quicker answer costs no watcher
RETURN_SECONDS = 5.0  # for a caller to come back to a stream that was cut, before its call becomes a task
MOST_WAITING = 1000  # messages for a reader that does not read; then they are dropped, the answer never is
OK = 200  # the status of every stream; an error that has another is no stream
VERSION_HEADER = protocol.VERSION_HEADER.encode()
PRIMED_SINCE = "2025-11-25"  # older callers would try to parse the empty first event
Unread = Callable[[], None] | None  # what is done about a response that nobody read


async def send_rpc_error(send: Send, status: int, code: int, message: str, *headers: Header) -> None:
    """Turn a request away before it is known which JSON-RPC request it is."""
    await respond_json(send, status, error_message(None, code, message), *headers)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that was let in."""

    scope: Scope
    headers: Headers
    receive: Receive
    send: Send
    identity: CallerIdentity
    may_guess: bool = True  # whether its session may be taken to be at the replica that its id names
    surface: Surface | None = None  # that the client's configuration asks for

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
        """Of the protocol, by its header; empty if there is none."""
        # Spaces around a value are not part of it, says HTTP, and not every server below us takes them off.
        return self.headers.get(VERSION_HEADER, b"").decode("latin-1").strip(" \t")

    @property
    def is_modern(self) -> bool:
        """Whether it is of the era without a handshake, by its header."""
        version = self.version
        return bool(version) and version not in HANDSHAKE_PROTOCOL_VERSIONS


class _Response:
    """What both eras share: the response is not begun, is a stream, or has nobody to go to."""

    def __init__(self, http: HttpRequest, clock: Clock, *, is_batch: bool = False) -> None:
        """A batch is never a stream."""
        self._http, self._connection, self._clock = http, http.connection, clock
        self._takes_json = is_batch or accepts(http.headers, JSON)
        self.takes_stream = not is_batch and accepts(http.headers, STREAM)
        self._is_disconnected = False
        self._writing: Writing | None = None

    def __repr__(self) -> str:
        state = "gone" if self.is_gone else "not begun" if self._writing is None else "streaming"
        return f"<{type(self).__name__} {state}>"

    @property
    def is_gone(self) -> bool:
        """Whether nobody reads what is written here."""
        if self._writing is not None:
            return not self._writing.is_live
        return self._is_disconnected or self._connection.is_gone()

    async def _respond(
        self, status: int, message: JsonObject | list[JsonObject], if_unread: Unread, *headers: Header
    ) -> bool:
        """The whole response; False if nobody would get it."""
        if self.is_gone:
            self._connection.give_up_response()
            return False
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        await respond_json(self._http.send, status, message, *headers)
        return True


class Exchange(_Response):
    """In the handshake era everything written to the stream is kept first, so that a cut stream can be resumed."""

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
        """`on_abandoned` is called when the stream was cut and nobody came back for it."""
        super().__init__(http, clock, is_batch=is_batch)
        self._replay, self._header, self._primes, self._request_id = replay, header, primes, request_id
        self._stream = PUSH  # until there is one of our own
        self._on_abandoned = on_abandoned
        self._return_timer: Handle | None = None  # until when the caller may come back
        self._stream_timer = clock.call_later(STREAM_AFTER, self._open_stream) if self.takes_stream else None

    @property
    def is_gone(self) -> bool:
        """Also of a stream that was cut: whether nobody came back for it."""
        return super().is_gone and not (self._writing is not None and self._replay.is_read(self._stream))

    @property
    def reaches_caller(self) -> bool:
        """Whether what precedes the answer can be sent, and is read."""
        return self.takes_stream and not self.is_gone

    @property
    def unread(self) -> int:
        """Messages that the caller has still to read; none if it is gone."""
        return 0 if self._writing is None or self.is_gone else self._replay.log.unread(self._stream)

    def send(self, message: JsonObject) -> None:
        """Something that precedes the answer. If nobody reads here any more, it goes where the caller may be."""
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
        """Finish; False if nobody got it. `if_unread` is called if that is found out only later."""
        if self._stream_timer is not None:
            self._stream_timer.cancel()
        if not self._takes_json:
            self._open_stream()
        if self._writing is None:
            return await self._respond(200, message, if_unread, *((self._header,) if names_session else ()))
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        self._replay.on_loss.pop(self._stream, None)
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._replay.log.append(self._stream, encode(message), is_final=True)
        reader = self._replay.reader(self._stream)  # ours, or that of a caller who came back
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
        # For an older caller it is not written, but marks the stream as going on.
        log.append(self._stream, b"", request_id=self._request_id)
        self._replay.on_loss[self._stream] = self._start_return_timer
        self._writing = self._replay.open(
            self._stream,
            after if self._primes else after + 1,
            self._http.send,
            self._http.receive,
            self._header,
            connection=self._connection,
        )

    def _start_return_timer(self) -> None:
        if self._return_timer is not None:
            self._return_timer.cancel()
        self._return_timer = self._clock.call_later(RETURN_SECONDS, self._abandon)

    def _abandon(self) -> None:
        if self._on_abandoned is not None and self.is_gone:
            self._on_abandoned()


class StatelessExchange(_Response):
    """In the 2026-07-28 era a stream is not resumable: messages are written as they come."""

    def __init__(self, http: HttpRequest, *, clock: Clock, tasks: TaskOwner, on_gone: Callable[[], None]) -> None:
        super().__init__(http, clock)
        self._tasks, self._on_gone = tasks, on_gone
        self._queue: asyncio.Queue[bytes | None] | None = None  # there once the answer is a stream
        self._watcher: asyncio.Task[None] | None = None  # until the stream has its own
        self._timer = clock.call_later(DISCONNECT_CHECK_AFTER, self._start_watching)

    @property
    def unread(self) -> int:
        """Messages that the caller has still to read; none if it is gone."""
        return 0 if self._queue is None or self.is_gone else self._queue.qsize()

    def send(self, message: JsonObject) -> None:
        if not self.takes_stream:
            return
        self._open_stream()
        if self._queue is not None and self._queue.qsize() < MOST_WAITING:
            self._queue.put_nowait(encode(message))

    async def answer(self, message: JsonObject, status: int = OK, *, if_unread: Unread = None) -> bool:
        """Finish; False if nobody got it. `if_unread` is called if that is found out only later."""
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
            self._writing = Writing(
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

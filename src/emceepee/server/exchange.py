"""One HTTP request of a caller and its response: plain JSON, or a stream as soon as anything precedes the answer."""

import asyncio
from collections.abc import Callable

from emceepee.clock import Clock
from emceepee.codec import encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.asgi import Header, Receive, Send, is_gone_already, respond_json, until_gone
from emceepee.server.message_log import PUSH, MessageLog
from emceepee.server.streams import kept_frames, queued_frames, write_stream

STREAM_AFTER = 1.0  # seconds of silence until the answer becomes a stream, which can be resumed and kept awake
NOTICEABLE = 0.1  # seconds; nobody hangs up on a quicker answer, so it is not looked for
MOST_WAITING = 1000  # messages for a reader that does not read; then they are dropped, the answer never is
PRIMED_SINCE = "2025-11-25"  # older callers would try to parse the empty first event


class Exchange:
    """In the handshake era everything said on the stream is kept first, so that a cut stream can be taken up again."""

    def __init__(
        self,
        log: MessageLog,
        send: Send,
        receive: Receive,
        *,
        clock: Clock,
        tasks: TaskOwner,
        headers: tuple[Header, ...],
        primes: bool,
        streams: bool,
        on_open: "Callable[[Exchange], None]",
    ) -> None:
        self._log, self._send, self._receive, self._clock, self._tasks = log, send, receive, clock, tasks
        self._headers, self._primes, self._on_open = headers, primes, on_open
        self._began = clock.monotonic()
        self._writer: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_gone = False
        self._readers = 0  # other requests that read our stream now
        self.stream: str | None = None
        self._patience = clock.call_later(STREAM_AFTER, self._open) if streams else None

    @property
    def is_gone(self) -> bool:
        """Whether nobody reads what is said here."""
        if self._writer is None and not self._is_gone and self._clock.monotonic() - self._began > NOTICEABLE:
            self._is_gone = is_gone_already(self._receive)
        return self._is_gone and self._readers == 0

    def say(self, message: JsonObject) -> None:
        """Something that precedes the answer. If nobody reads here any more, it goes where the caller may be."""
        if self._patience is None and self._writer is None:
            return  # this caller takes no streams
        if self.is_gone:
            self._log.append(PUSH, encode(message))
            return
        self._open()
        self._log.append(self.stream or PUSH, encode(message))

    async def answer(self, message: JsonObject | list[JsonObject], status: int = 200) -> bool:
        """Finish; False if the answer could not be written to anyone."""
        if self._patience is not None:
            self._patience.cancel()
        if self._writer is None:
            if self.is_gone:
                return False
            await respond_json(self._send, status, message, *self._headers)
            return True
        self._log.append(self.stream or PUSH, encode(message), is_final=True)
        await asyncio.wait({self._writer})
        self._end_watcher()
        return not self.is_gone

    def attach(self, change: int) -> None:
        """A resumed stream is being read (+1), or no longer (-1)."""
        self._readers += change

    def close_stream(self) -> None:
        """End the response but not the request: a caller of 2025-11-25 comes back for the rest."""
        if self._writer is not None and not self._writer.done():
            self._writer.cancel()

    def _open(self) -> None:
        if self._writer is not None:
            return
        after = self._log.last_number
        self.stream = f"request {after + 1}"
        self._on_open(self)
        if self._primes:
            self._log.append(self.stream, b"")
        self._writer = self._tasks.spawn(self._write(after), name="stream")
        self._watcher = self._tasks.spawn(self._watch(), name="watch")

    async def _write(self, after: int) -> None:
        try:
            frames = kept_frames(self._log.follow(self.stream or PUSH, after))
            await write_stream(self._send, frames, *self._headers)
        except asyncio.CancelledError:
            if not self._is_gone:  # closed by us: the response must still end in order
                self._is_gone = True
                await self._send({"type": "http.response.body", "body": b""})
            raise

    async def _watch(self) -> None:
        await until_gone(self._receive)
        self._is_gone = True
        if self._writer is not None:
            self._writer.cancel()

    def _end_watcher(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()


class ModernExchange:
    """In the 2026-07-28 era a stream is not resumable: what is said is written as it comes."""

    def __init__(
        self, send: Send, receive: Receive, *, clock: Clock, tasks: TaskOwner, on_gone: Callable[[], None]
    ) -> None:
        self._send, self._receive, self._tasks, self._clock = send, receive, tasks, clock
        self._on_gone = on_gone
        self._began = clock.monotonic()
        self._queue: asyncio.Queue[bytes | None] | None = None
        self._writer: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._is_gone = False
        self._patience = clock.call_later(STREAM_AFTER, self._open)

    @property
    def is_gone(self) -> bool:
        if self._writer is None and not self._is_gone and self._clock.monotonic() - self._began > NOTICEABLE:
            self._is_gone = is_gone_already(self._receive)
        return self._is_gone

    def say(self, message: JsonObject) -> None:
        self._open()
        if self._queue is not None and self._queue.qsize() < MOST_WAITING:
            self._queue.put_nowait(encode(message))

    async def answer(self, message: JsonObject, status: int = 200) -> bool:
        self._patience.cancel()
        if self._writer is None or self._queue is None:
            if self.is_gone:
                return False
            await respond_json(self._send, status, message)
            return True
        self._queue.put_nowait(encode(message))
        self._queue.put_nowait(None)
        await asyncio.wait({self._writer})
        if self._watcher is not None:
            self._watcher.cancel()
        return not self._is_gone

    def _open(self) -> None:
        if self._writer is None:
            self._queue = asyncio.Queue()
            self._writer = self._tasks.spawn(self._write(self._queue), name="stream")
            self._watcher = self._tasks.spawn(self._watch(), name="watch")

    async def _write(self, queue: "asyncio.Queue[bytes | None]") -> None:
        await write_stream(self._send, queued_frames(queue, self._clock))

    async def _watch(self) -> None:
        await until_gone(self._receive)
        self._is_gone = True
        if self._writer is not None:
            self._writer.cancel()
        self._on_gone()

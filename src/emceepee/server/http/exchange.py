"""One HTTP request of a caller and its response: plain JSON, or a stream as soon as anything precedes the answer."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from emceepee.clock import Clock, Handle
from emceepee.codec import encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.http.message_log import PUSH
from emceepee.server.http.replay import Replay
from emceepee.web.asgi import Connection, Header, Receive, Send, respond_json, until_gone
from emceepee.web.streams import Writing, queued_frames

STREAM_AFTER = 1.0  # seconds of silence until the answer becomes a stream, which can be resumed and kept awake
WATCH_AFTER = 0.5  # seconds until a caller is watched whose stream cannot be resumed; a quicker answer costs no watcher
RETURN_SECONDS = 5.0  # for a caller to come back to a stream that was cut, before its call becomes a task
MOST_WAITING = 1000  # messages for a reader that does not read; then they are dropped, the answer never is
PRIMED_SINCE = "2025-11-25"  # older callers would try to parse the empty first event
Unread = Callable[[], None] | None  # what is done about a response that nobody read


@dataclass(frozen=True, slots=True)
class AcceptedTypes:
    """Which kinds of answer a caller takes."""

    json: bool = True
    streams: bool = True


class _Response:
    """What both eras share: the response is still open, is a stream, or has nobody to go to."""

    def __init__(self, send: Send, receive: Receive, connection: Connection, clock: Clock) -> None:
        self._send, self._receive, self._connection, self._clock = send, receive, connection, clock
        self._was_gone = False
        self._writing: Writing | None = None

    @property
    def _has_hung_up(self) -> bool:
        if self._writing is not None:
            return not self._writing.is_live
        return self._was_gone or self._connection.is_gone()


class Exchange(_Response):
    """In the handshake era everything said on the stream is kept first, so that a cut stream can be taken up again."""

    def __init__(
        self,
        replay: Replay,
        send: Send,
        receive: Receive,
        *,
        connection: Connection,
        clock: Clock,
        header: Header,
        primes: bool,
        accepted: AcceptedTypes,
        on_abandoned: Callable[[], object] | None = None,
    ) -> None:
        """`on_abandoned` is called when the stream was cut and nobody came back for it."""
        super().__init__(send, receive, connection, clock)
        self._replay, self._header, self._primes, self._taste = replay, header, primes, accepted
        self._stream = PUSH  # until there is one of our own
        self._hung_up = False
        self._on_abandoned = on_abandoned
        self._return: Handle | None = None  # until when the caller may come back
        self._patience = clock.call_later(STREAM_AFTER, self._open) if accepted.streams else None

    @property
    def is_gone(self) -> bool:
        """Whether nobody reads what is said here."""
        return self._has_hung_up and not (self._writing is not None and self._replay.is_read(self._stream))

    def say(self, message: JsonObject) -> None:
        """Something that precedes the answer. If nobody reads here any more, it goes where the caller may be."""
        if not self._taste.streams:
            return
        if self.is_gone and self._replay.is_read(PUSH):
            self._replay.push(message)
            return
        self._open()
        self._replay.log.append(self._stream, encode(message))

    async def answer(
        self, message: JsonObject | list[JsonObject], *, names_session: bool = True, if_unread: Unread = None
    ) -> bool:
        """Finish; False if nobody got it. `if_unread` is called if that is found out only later."""
        if self._patience is not None:
            self._patience.cancel()
        if not self._taste.json:
            self._open()
        if self._writing is None:
            if self.is_gone:
                return False
            if if_unread is not None:
                self._connection.if_unread(if_unread)
            await respond_json(self._send, 200, message, *((self._header,) if names_session else ()))
            return True
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        self._replay.on_loss.pop(self._stream, None)
        if self._return is not None:
            self._return.cancel()
        self._replay.log.append(self._stream, encode(message), is_final=True)
        reader = self._replay.reader(self._stream)  # ours, or that of a caller who came back
        was_written = await self._writing.finished() and not self._hung_up
        while not was_written and reader is not None:
            was_written = await reader.finished()
            reader = None if (newest := self._replay.reader(self._stream)) is reader else newest
        self._replay.closed(self._stream, self._writing)
        return was_written

    def hang_up(self) -> None:
        """End the response but not the request: a caller of 2025-11-25 comes back for the rest."""
        if self._primes and self._taste.streams and not self.is_gone:
            self._open()
            self._replay.log.pause(self._stream)
            self._hung_up = True

    def _open(self) -> None:
        if self._writing is not None:
            return
        log = self._replay.log
        after = log.last_number
        self._stream = f"request {after + 1}"
        log.append(self._stream, b"")  # for an older caller it is not written, but marks the stream as going on
        self._replay.on_loss[self._stream] = self._await_return
        self._writing = self._replay.open(
            self._stream,
            after if self._primes else after + 1,
            self._send,
            self._receive,
            self._header,
            connection=self._connection,
        )

    def _await_return(self) -> None:
        if self._return is not None:
            self._return.cancel()
        self._return = self._clock.call_later(RETURN_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if self._on_abandoned is not None and self.is_gone:
            self._on_abandoned()


class StatelessExchange(_Response):
    """In the 2026-07-28 era a stream is not resumable: what is said is written as it comes."""

    def __init__(
        self,
        send: Send,
        receive: Receive,
        *,
        connection: Connection,
        clock: Clock,
        tasks: TaskOwner,
        on_gone: Callable[[], None],
    ) -> None:
        super().__init__(send, receive, connection, clock)
        self._tasks, self._on_gone = tasks, on_gone
        self._said: asyncio.Queue[bytes | None] | None = None  # there once the answer is a stream
        self._watcher: asyncio.Task[None] | None = None  # until the stream has its own
        self._patience = clock.call_later(WATCH_AFTER, self._watch)

    @property
    def is_gone(self) -> bool:
        return self._has_hung_up

    def say(self, message: JsonObject) -> None:
        self._open()
        if self._said is not None and self._said.qsize() < MOST_WAITING:
            self._said.put_nowait(encode(message))

    def hang_up(self) -> None:
        """There is nothing to come back for in this era."""

    async def answer(self, message: JsonObject, status: int = 200, *, if_unread: Unread = None) -> bool:
        """Finish; False if nobody got it. `if_unread` is called if that is found out only later."""
        self._stop_waiting()
        if if_unread is not None:
            self._connection.if_unread(if_unread)
        if self._writing is None or self._said is None:
            if self.is_gone:
                return False
            await respond_json(self._send, status, message)
            return True
        self._said.put_nowait(encode(message))
        self._said.put_nowait(None)
        return await self._writing.finished()

    def _open(self) -> None:
        if self._said is None and not self._was_gone:
            self._stop_waiting()
            self._said = asyncio.Queue()
            frames = queued_frames(self._said, self._clock)
            self._writing = Writing(
                self._send,
                self._receive,
                frames,
                tasks=self._tasks,
                on_gone=self._on_gone,
                connection=self._connection,
            )

    def _watch(self) -> None:
        self._patience = self._clock.call_later(STREAM_AFTER - WATCH_AFTER, self._open)
        self._watcher = self._tasks.spawn(self._notice_hang_up(), name="watch")

    async def _notice_hang_up(self) -> None:
        await until_gone(self._receive)
        self._was_gone = True
        self._on_gone()

    def _stop_waiting(self) -> None:
        self._patience.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

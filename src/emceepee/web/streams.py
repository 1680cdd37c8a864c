"""Writes server-sent events to a caller, and detects when the caller is gone."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from emceepee.clock import Clock, within
from emceepee.lifecycle import TaskOwner
from emceepee.web.asgi import STREAM_HEADERS, CallerConnection, Header, Receive, Send, until_gone

PING_SECONDS = 15.0  # so that no proxy mistakes a silent stream for a dead one
PING = b": ping\n\n"
END_SECONDS = 1.0  # for the last bytes of a stopped stream, to a caller that may have stopped reading
PART_BYTES = (
    256 << 10
)  # of a frame, written at once: the next part waits until the caller has read most of the previous one
Frames = AsyncGenerator[bytes, None]


class EventStreamWriter:
    """Writes a stream as a response in the background. However it ends, the response ends in order."""

    def __init__(
        self,
        send: Send,
        receive: Receive,
        frames: Frames,
        *,
        tasks: TaskOwner,
        headers: tuple[Header, ...] = (),
        on_gone: Callable[[], None] | None = None,
        connection: CallerConnection | None = None,
    ) -> None:
        self._send, self._receive, self._on_gone, self._connection = send, receive, on_gone, connection
        self._headers = [*STREAM_HEADERS, *headers]
        self._is_begun = self._is_whole = self._is_gone = False
        self._writer: asyncio.Task[None] | None = tasks.spawn(self._write(frames), name="stream")
        self._watcher: asyncio.Task[None] | None = tasks.spawn(self._watch(), name="watch")
        self._writer.add_done_callback(self._forget_writer)
        self._watcher.add_done_callback(self._forget_watcher)

    @property
    def is_live(self) -> bool:
        """Whether a caller reads it."""
        return not self._is_gone and self._writer is not None and not self._writer.done()

    def when_ended(self, report: Callable[[], None]) -> None:
        """Call `report` once nothing more is written, on success and on failure."""
        if self._writer is None:
            report()
        else:
            self._writer.add_done_callback(lambda _: report())

    def stop(self) -> None:
        """End the response here, without its remaining frames."""
        if self._writer is not None:
            self._writer.cancel()

    async def wait_until_finished(self) -> bool:
        """Wait for the end. Return whether everything was written."""
        try:
            if self._writer is not None and not self._writer.done():
                await asyncio.wait({self._writer})
        finally:
            self.stop()
            self._stop_watching()
        if not self._is_begun and not self._is_gone:  # stopped before its first step
            await self._begin()
            await self._end()
        return self._is_whole

    def _stop_watching(self) -> None:
        if self._watcher is not None:
            self._watcher.cancel()

    # A canceled task refers to its frames, and so to this object and a large answer: drop the task to break the cycle.

    def _forget_writer(self, _: object) -> None:
        self._writer = None

    def _forget_watcher(self, _: object) -> None:
        self._watcher = None

    async def _write(self, frames: Frames) -> None:
        await self._begin()
        try:
            async with aclosing(frames):
                async for frame in frames:
                    await self._send_frame(frame)
            # The watcher learns of a disconnect a turn later than the connection, which accepts no more data by then.
            if self._connection is not None and self._connection.is_gone():
                self._connection.give_up_response()
            elif not self._is_gone:
                await self._send_end()  # a caller may read as slowly as its connection allows
                self._is_whole = True
        finally:
            if not (self._is_gone or self._is_whole):
                await self._end()

    async def _send_frame(self, frame: bytes) -> None:
        if len(frame) <= PART_BYTES or self._connection is None:
            await self._send({"type": "http.response.body", "body": frame, "more_body": True})
            return
        left = len(frame)
        self._connection.hold(left)
        try:
            for start in range(0, len(frame), PART_BYTES):
                part = frame[start : start + PART_BYTES]
                await self._send({"type": "http.response.body", "body": part, "more_body": True})
                left -= len(part)
                self._connection.hold(-len(part))
        finally:
            self._connection.hold(-left)

    async def _begin(self) -> None:
        self._is_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._send_end()
        except TimeoutError:  # the caller does not read
            self._stop_watching()
            if self._connection is not None:
                self._connection.abort_response()

    async def _send_end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})
        self._stop_watching()  # now that the response is complete, the server below reports the caller as gone

    async def _watch(self) -> None:
        await until_gone(self._receive)
        self._is_gone = True
        self.stop()
        if self._on_gone is not None:
            self._on_gone()


async def queued_frames(queue: "asyncio.Queue[bytes | None]", clock: Clock) -> Frames:
    """Yield messages without ids, up to the None that ends them."""
    while True:
        coming = asyncio.ensure_future(queue.get())
        try:
            data = await within(clock, PING_SECONDS, coming)
        except TimeoutError:
            yield PING
            continue
        finally:
            coming.cancel()
        if data is None:
            return
        for part in event_parts(b"event: message\ndata: ", data):
            yield part


def event_parts(head: bytes, data: bytes) -> Iterator[bytes]:
    """Yield one event; a large one in parts, since joining them would copy it."""
    if len(data) <= PART_BYTES:
        yield b"%b%b\n\n" % (head, data)
    else:
        yield from (head, data, b"\n\n")

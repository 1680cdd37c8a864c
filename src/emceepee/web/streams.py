"""Writing server-sent events to a caller, and noticing when it is gone."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from emceepee.clock import Clock, within
from emceepee.lifecycle import TaskOwner
from emceepee.web.asgi import STREAM_HEADERS, CallerConnection, Header, Receive, Send, until_gone

PING_SECONDS = 15.0  # so that nobody on the way takes a silent stream for a dead one
PING = b": ping\n\n"
END_SECONDS = 1.0  # for the last bytes to a caller that may have stopped reading
Frames = AsyncGenerator[bytes, None]


class Writing:
    """A response that is a stream, being written in the background. However it ends, the response ends in order."""

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
        self._writer = tasks.spawn(self._write(frames), name="stream")
        self._watcher = tasks.spawn(self._watch(), name="watch")

    @property
    def is_live(self) -> bool:
        """Whether someone reads it."""
        return not self._is_gone and not self._writer.done()

    def when_ended(self, report: Callable[[], None]) -> None:
        """Call `report` once nothing more is written, however that came about."""
        self._writer.add_done_callback(lambda _: report())

    def stop(self) -> None:
        """End the response here; whatever its frames would still bring is not written."""
        self._writer.cancel()

    async def wait_until_finished(self) -> bool:
        """Wait for the end; whether everything was written."""
        try:
            if not self._writer.done():
                await asyncio.wait({self._writer})
        finally:
            self._writer.cancel()
            self._watcher.cancel()
        if not self._is_begun and not self._is_gone:  # stopped before its first step
            await self._begin()
            await self._end()
        return self._is_whole

    async def _write(self, frames: Frames) -> None:
        await self._begin()
        try:
            async with aclosing(frames):
                async for frame in frames:
                    await self._send({"type": "http.response.body", "body": frame, "more_body": True})
            # The watcher learns of it a turn later than the connection, to which nothing more can be written by then.
            if self._connection is not None and self._connection.is_gone():
                self._connection.give_up_response()
            else:
                self._is_whole = not self._is_gone
        finally:
            if not self._is_gone:
                await self._end()

    async def _begin(self) -> None:
        self._is_begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": self._headers})

    async def _end(self) -> None:
        self._watcher.cancel()  # once the response is complete, the server below reports the caller as gone
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            pass  # it does not read; the connection is closed with the request

    async def _watch(self) -> None:
        await until_gone(self._receive)
        self._is_gone = True
        self._writer.cancel()
        if self._on_gone is not None:
            self._on_gone()


async def queued_frames(queue: "asyncio.Queue[bytes | None]", clock: Clock) -> Frames:
    """Messages without ids, up to the None that ends them."""
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
        yield b"event: message\ndata: %s\n\n" % data

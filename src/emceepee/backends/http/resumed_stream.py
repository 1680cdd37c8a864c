"""A stream that was resumed after an interruption. It may be dead although it is open.

Some servers register the resumed stream, then notice the end of the interrupted one, and remove the registration of
both. They store further messages but send them to nobody. Such a stream stays open and silent. So after a period of
silence, a second stream is opened, and a server with pending messages replays them there:

the server refuses it, or ends it at once    the first one is still registered, and reading it continues
    it stays open, or sends something            it replaces the first one
"""

import asyncio
from collections.abc import Awaitable, Callable

from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.response import HttpResponse
from emceepee.clock import Clock, within

FIRST_SILENCE, LONGEST_SILENCE = 5.0, 60.0  # seconds; it doubles while the silence lasts
PUSH_TRIES = 4  # a server often pushes nothing for hours
PROOF_SECONDS = 1.0  # a second stream that stays open for this long counts as registered

OpenBeside = Callable[[], Awaitable[HttpResponse | None]]


class ResumedStream:
    """Read it like an `HttpResponse`. `most` limits how often a second stream is opened."""

    def __init__(
        self, response: HttpResponse, open_beside: OpenBeside, clock: Clock, *, most: int | None = None
    ) -> None:
        self._response, self._open_beside, self._clock = response, open_beside, clock
        self._left = most
        self._reading: asyncio.Future[bytes] | None = None
        self._silence = FIRST_SILENCE
        self._until = clock.monotonic() + FIRST_SILENCE

    async def readany(self) -> bytes | None:
        """Return the data that has arrived, b"" at the end, or None if a second stream has replaced this one.

        Raises:
            HttpFailure: the stream was interrupted.
        """
        while True:
            if self._reading is None:
                self._reading = asyncio.ensure_future(self._response.readany())
            try:
                chunk = await self._read_until_silent(self._reading)
            except TimeoutError:
                if await self._replace():
                    return None
                continue
            self._reading = None
            if _says_something(chunk):
                self._silence = FIRST_SILENCE
                self._until = self._clock.monotonic() + FIRST_SILENCE
            return chunk

    def discard(self) -> None:
        """Discard the rest of the stream as it arrives."""
        self._response.discard()

    def close(self) -> None:
        if self._reading is not None:
            _forget(self._reading)
        self._response.close()

    async def _read_until_silent(self, reading: "asyncio.Future[bytes]") -> bytes:
        """Raises: TimeoutError."""
        if self._left == 0:
            return await reading
        return await within(self._clock, max(0.0, self._until - self._clock.monotonic()), reading)

    async def _replace(self) -> bool:
        """Open a second stream. Return whether it has replaced this one."""
        self._silence = min(2 * self._silence, LONGEST_SILENCE)
        self._until = self._clock.monotonic() + self._silence
        if self._left is not None:
            self._left -= 1
        other = await self._open_beside()
        if other is None:
            return False
        reading = asyncio.ensure_future(other.readany())
        try:
            first: bytes = await within(self._clock, PROOF_SECONDS, reading)
            is_registered = first != b""
        except TimeoutError:
            is_registered = True
        except HttpFailure:
            is_registered = False
        except BaseException:
            reading.cancel()
            raise
        if not is_registered or (self._reading is not None and self._reading.done()):
            _forget(reading)
            other.close()
            return False
        self.close()
        self._response, self._reading = other, reading
        return True


def _forget(reading: "asyncio.Future[bytes]") -> None:
    """Cancel a read, and mark its exception as retrieved."""
    reading.cancel()
    if reading.done() and not reading.cancelled():
        reading.exception()


def _says_something(chunk: bytes) -> bool:
    """Return whether a chunk contains more than comments, which only keep the connection alive."""
    return any(line and not line.startswith(b":") for line in chunk.splitlines())

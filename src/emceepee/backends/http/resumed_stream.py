"""A stream that was taken up again after a cut, and may have been taken up in vain.

Some servers register the resumed stream, then notice the end of the cut one, and remove the registration of both. What
they have to say is then stored, but sent to nobody. Such a stream stays open and silent. So after some silence another
one is opened beside it, and a server with something to say replays it there:

    the server refuses it, or ends it at once    it still knows the first one: that is read on
    it stays open, or brings something           it takes the place of the first one
"""

import asyncio
from collections.abc import Awaitable, Callable

from emceepee.backends.http1.errors import HttpFailure
from emceepee.backends.http1.response import HttpResponse
from emceepee.clock import Clock, within

FIRST_SILENCE, LONGEST_SILENCE = 5.0, 60.0  # seconds; it doubles as long as nothing comes
PUSH_TRIES = 4  # what a server may say unasked is often nothing for hours
PROOF_SECONDS = 1.0  # after which a second stream that is still open counts as registered

OpenBeside = Callable[[], Awaitable[HttpResponse | None]]


class ResumedStream:
    """Read it as a `HttpResponse`. `most` is how often another stream is opened beside it."""

    def __init__(
        self, response: HttpResponse, open_beside: OpenBeside, clock: Clock, *, most: int | None = None
    ) -> None:
        self._response, self._open_beside, self._clock = response, open_beside, clock
        self._left = most
        self._reading: asyncio.Future[bytes] | None = None
        self._silence = FIRST_SILENCE
        self._until = clock.monotonic() + FIRST_SILENCE

    async def readany(self) -> bytes | None:
        """Return what has arrived, nothing at the end, or None if another stream has taken the place of this one.

        Raises:
            HttpFailure: the stream was cut.
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
        """Let the rest come, unread."""
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
        """Open another stream beside this one. Return whether that has taken its place."""
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
    """Nobody wants to know what comes of it, nor that it failed."""
    reading.cancel()
    if reading.done() and not reading.cancelled():
        reading.exception()


def _says_something(chunk: bytes) -> bool:
    """Return whether there is more in it than comments, which only keep the connection alive."""
    return any(line and not line.startswith(b":") for line in chunk.splitlines())

"""One response: its head, and its body, which can be read in chunks or as a whole."""

import asyncio
from typing import Protocol

from emceepee.backends.http1.http_failures import HttpFailure, ResponseTooLarge
from emceepee.backends.http1.inflater import Inflater
from emceepee.clock import Handle

UNREAD_BYTES = 256 << 10  # buffer limit for an unread body; beyond it, backpressure pauses the server


class BodySource(Protocol):
    """The operations that a response needs from its connection."""

    def resume(self) -> None: ...

    def abandon(self, response: "HttpResponse") -> None:
        """Close the connection, because the rest of the response will not be read."""
        ...

    def close_soon(self, response: "HttpResponse") -> Handle: ...


class HttpResponse:
    """A response, usable once its head has arrived. Read it to its end, or `discard` or `close` it.

    The connection fills in `parts`, `size`, `is_over`, and `error`. `waiter` is the future of the waiting reader, which
    first waits for the head. With `wants_all`, the reader wakes up only at the end.
    """

    __slots__ = (
        "cookies",
        "discard_timer",
        "error",
        "headers",
        "inflater",
        "is_discarded",
        "is_over",
        "largest",
        "parts",
        "raw_headers",
        "size",
        "source",
        "status",
        "waiter",
        "wants_all",
    )

    def __init__(self, source: BodySource, waiter: "asyncio.Future[None]") -> None:
        self.source: BodySource | None = source  # None after the end
        self.waiter: asyncio.Future[None] | None = waiter
        self.status = 0
        self.headers: dict[str, str] = {}  # names in lower case; the first value of a repeated header
        self.raw_headers: list[tuple[bytes, bytes]] = []  # exactly as received
        self.cookies: list[str] = []  # the value of each Set-Cookie header
        self.inflater: Inflater | None = None
        self.parts: list[bytes] = []
        self.size = 0  # total bytes in `parts`
        self.largest = 0  # maximum size of the parts, with `wants_all`
        self.wants_all = self.is_discarded = self.is_over = False
        self.error: HttpFailure | None = None
        self.discard_timer: Handle | None = None

    def __repr__(self) -> str:
        state = "failed" if self.error else "over" if self.is_over else "open"
        return f"<Response {self.status or 'awaited'} {state} unread={self.size}>"

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def wait_for_head(self) -> None:
        """Wait for the head. Only the sender of the request calls this, once. Raises: HttpFailure."""
        if self.waiter is not None:
            await self._wait(self.waiter)
        if self.error is not None and not self.status:
            raise self.error

    async def read(self, largest: int) -> bytes:
        """Return the whole body, or the part that has not been read yet.

        Raises:
            ResponseTooLarge: it has more than `largest` bytes.
            HttpFailure: it is incomplete.
        """
        if not self.is_over:
            self.wants_all, self.largest = True, largest
            if self.size > largest or int(self.headers.get("content-length", 0)) > largest:
                self.close()
                raise ResponseTooLarge(largest)
            await self._wait_for_more()
        if self.error is not None:
            raise self.error
        body = self._take_parts()
        if self.inflater is not None:
            body = self.inflater.inflate_all(body, largest)
        if len(body) > largest:
            raise ResponseTooLarge(largest)
        if self.inflater is not None:
            self.inflater.finish()
        return body

    async def readany(self) -> bytes:
        """Wait for unread data, and return all of it. Return an empty result at the end.

        Raises:
            HttpFailure: the body is truncated; everything before the truncation has been returned.
        """
        while True:
            while not self.parts and not self.is_over and not self._holds_more():
                await self._wait_for_more()
            chunk = self._take_parts()
            if self.inflater is not None:
                chunk = self._inflate(self.inflater, chunk)
            if chunk:
                return chunk
            if self.is_over:
                if self.error is not None:
                    raise self.error
                if self.inflater is not None:
                    self.inflater.finish()
                return b""

    def discard(self) -> None:
        """Receive the rest without reading it, so that the connection can be reused. A timer limits the wait."""
        if self.source is not None:
            self.is_discarded = True
            self._take_parts()
            self.source.resume()
            self.discard_timer = self.source.close_soon(self)

    def close(self) -> None:
        """Discard the rest. This closes the connection, unless the response is already complete."""
        source = self.source
        if source is not None:
            source.abandon(self)
            self.end(HttpFailure("the response was closed before its end"))

    def end(self, error: HttpFailure | None = None) -> None:
        """Mark the response as complete or failed, and wake the reader."""
        self.source, self.is_over, self.error = None, True, error
        if self.discard_timer is not None:
            self.discard_timer.cancel()
        self.wake()

    def wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait_for_more(self) -> None:
        assert self.source is not None  # the response has not ended
        self.source.resume()
        self.waiter = asyncio.get_running_loop().create_future()
        await self._wait(self.waiter)

    async def _wait(self, waiter: "asyncio.Future[None]") -> None:
        try:
            await waiter
        except BaseException:
            self.close()  # the reader is gone, so the connection cannot be reused
            raise

    def _take_parts(self) -> bytes:
        parts = self.parts
        if not parts:
            return b""
        body = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.size = 0
        return body

    def _inflate(self, inflater: Inflater, chunk: bytes) -> bytes:
        try:
            return inflater.inflate(chunk, UNREAD_BYTES)
        except HttpFailure:
            self.close()
            raise

    def _holds_more(self) -> bool:
        return self.inflater is not None and self.inflater.may_have_more

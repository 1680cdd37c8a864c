"""Lines in both directions on one socket, read and written like those of standard input and output."""

import asyncio

from emceepee.server.stdio.pipes import LineReader, LineWriter
from emceepee.wire.line_splitter import TooLongLine


class SocketLines(asyncio.Protocol):
    """The protocol of an accepted connection."""

    def __init__(self, longest: int, first: bytes = b"") -> None:
        """`first`: bytes that were already read from the connection."""
        # If the other end could not write the line end, it sends the line again on its next connection. So a line
        # without its end must not be executed here: it would run twice.
        self._reader, self.writer = LineReader(longest, needs_line_end=True), LineWriter()
        self._reader.data_received(first)
        self._transport: asyncio.BaseTransport | None = None
        self.closed = asyncio.Event()

    async def read(self) -> bytes | TooLongLine:
        """Return the next line; b"" at the end, as files do."""
        return await self._reader.read()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._reader.connection_made(transport)
        self.writer.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        self._reader.data_received(data)

    def eof_received(self) -> bool:
        """Keep the connection open: the caller sends no more, but may still read pending data."""
        self._reader.connection_lost(None)
        return True

    def pause_writing(self) -> None:
        self.writer.pause_writing()

    def resume_writing(self) -> None:
        self.writer.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.connection_lost(exc)
        self.writer.connection_lost(exc)
        self.closed.set()

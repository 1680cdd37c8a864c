"""Reads and writes the process's standard input and output as lines, without threads if the kernel allows it."""

import asyncio
import fcntl
import os
import stat
from collections import deque
from contextlib import suppress
from typing import cast

from emceepee.wire.line_splitter import LineSplitter, TooLongLine

READ_BYTES = 1 << 18
PIPE_BYTES = 1 << 20  # Linux grants this to any process; with its default of 64 KiB, a large line takes many turns
MOST_WAITING_LINES = 1000  # backpressure for a caller that sends faster than it is served


class LineReader(asyncio.Protocol):
    """Reads lines from a descriptor, in order; `read` returns b"" at the end, as files do.

    `needs_line_end`: bytes after the last line end are dropped. Otherwise they are the last line, as in a file whose
    last line has no line end.
    """

    def __init__(self, longest: int, *, needs_line_end: bool = False) -> None:
        self._splitter, self._needs_line_end = LineSplitter(longest), needs_line_end
        self._lines: deque[bytes | TooLongLine] = deque()
        self._transport: asyncio.ReadTransport | None = None
        self._is_paused = False
        self._at_end = False
        self._wakened: asyncio.Future[None] | None = None

    @classmethod
    async def on(cls, descriptor: int, *, longest: int) -> "LineReader":
        reader = cls(longest)
        loop = asyncio.get_running_loop()
        if _is_pollable(descriptor):
            _widen(descriptor)
            pipe = os.fdopen(descriptor, "rb", buffering=0, closefd=False)
            await loop.connect_read_pipe(lambda: reader, pipe)
        else:
            await loop.run_in_executor(None, reader._read_file, descriptor)
        return reader

    def _read_file(self, descriptor: int) -> None:
        while data := os.read(descriptor, READ_BYTES):
            self._lines.extend(self._splitter.feed(data))
        self.connection_lost(None)

    async def read(self) -> bytes | TooLongLine:
        """Return the next non-blank line, or the remains of a line that was too long; b"" at the end."""
        while True:
            while self._lines:
                line = self._lines.popleft()
                if isinstance(line, TooLongLine) or line.strip():
                    return line
            if self._is_paused and self._transport is not None:
                self._is_paused = False
                self._transport.resume_reading()
            if self._at_end:
                return b""
            self._wakened = asyncio.get_running_loop().create_future()
            await self._wakened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.ReadTransport, transport)

    def data_received(self, data: bytes) -> None:
        self._lines.extend(self._splitter.feed(data))
        if len(self._lines) > MOST_WAITING_LINES and self._transport is not None and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        rest = self._splitter.rest()
        if rest and not self._needs_line_end:
            self._lines.append(rest)
        self._at_end = True
        self._wake()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _wake(self) -> None:
        if self._wakened is not None and not self._wakened.done():
            self._wakened.set_result(None)


class LineWriter(asyncio.BaseProtocol):
    """Writes lines to a descriptor. `write` never waits; `drain` waits while the other end reads slowly."""

    def __init__(self, descriptor: int = -1) -> None:
        self._descriptor = descriptor
        self._transport: asyncio.WriteTransport | None = None
        self._clear: asyncio.Future[None] | None = None
        self.is_broken = False

    @classmethod
    async def on(cls, descriptor: int) -> "LineWriter":
        writer = cls(descriptor)
        if _is_pollable(descriptor):
            _widen(descriptor)
            pipe = os.fdopen(descriptor, "wb", buffering=0, closefd=False)
            await asyncio.get_running_loop().connect_write_pipe(lambda: writer, pipe)
        return writer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)

    def write(self, line: bytes) -> None:
        if self.is_broken:
            return
        if self._transport is not None:
            self._transport.write(line + b"\n")
        else:
            _write_all(self._descriptor, line + b"\n")

    async def drain(self) -> None:
        if self._clear is not None and not self.is_broken:
            await asyncio.shield(self._clear)

    async def flush(self, *, within: float) -> None:
        """Wait until the kernel has accepted everything, or the timeout expires."""
        if self._transport is None or self.is_broken:
            return
        self._transport.set_write_buffer_limits(high=0)
        if self._transport.get_write_buffer_size() and self._clear is None:
            self.pause_writing()
        if self._clear is not None:
            await asyncio.wait({self._clear}, timeout=within)

    def pause_writing(self) -> None:
        if self._clear is None:
            self._clear = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._clear is not None and not self._clear.done():
            self._clear.set_result(None)
        self._clear = None

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_broken = True
        self.resume_writing()


def _is_pollable(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)  # /dev/null is a device, but no terminal


def _widen(descriptor: int) -> None:
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # not a pipe, or not permitted
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

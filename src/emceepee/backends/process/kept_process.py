"""emceepee's end of a process that a keeper started: its pipes, and the control socket for the keeper's reports."""

import asyncio
import os
import signal
import socket
from contextlib import suppress
from typing import cast
from weakref import WeakKeyDictionary

from emceepee.backends.process import guardian
from emceepee.futures import reject, resolve
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")
STDIN, STDOUT, STDERR, CONTROL = range(guardian.DESCRIPTORS)
TURN_BYTES = 32 << 10  # read per turn of the event loop: a flood must not delay timers and other callers
_MESSAGE_BYTES = 1 + guardian.NUMBER_BYTES


class GuardianLost(OSError):
    """The guardian ended before it started anything."""


class SocketPairs:
    """Four pairs of connected sockets: the guardian's ends, and ours until they are taken."""

    def __init__(self) -> None:
        """Raises: OSError."""
        self._ours: dict[int, socket.socket] = {}
        self._theirs: list[socket.socket] = []
        try:
            for number in range(guardian.DESCRIPTORS):
                self._ours[number], theirs = socket.socketpair()
                self._theirs.append(theirs)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        for end in (*self._theirs, *self._ours.values()):
            end.close()

    def send(self, guardian_socket: socket.socket) -> None:
        """Raises: GuardianLost."""
        try:
            socket.send_fds(guardian_socket, [b"+"], [end.fileno() for end in self._theirs])
        except OSError as error:
            raise GuardianLost(*error.args) from error
        for end in self._theirs:
            end.close()

    def take(self, number: int) -> socket.socket:
        return self._ours.pop(number)


class KeptProcess(asyncio.SubprocessTransport):
    """Like asyncio's own transport, but `kill` includes all descendants. `gone` resolves when no process is left."""

    def __init__(self, protocol: asyncio.SubprocessProtocol) -> None:
        super().__init__()
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._control: asyncio.WriteTransport | None = None
        self._pipes: dict[int, asyncio.BaseTransport] = {}
        self._output: ProcessPipe | None = None
        self._started: asyncio.Future[int] = self._loop.create_future()
        self._code: int | None = None
        self._is_made = False  # whether the protocol can receive its end
        self.gone: asyncio.Future[None] = self._loop.create_future()

    async def start(self, pairs: SocketPairs, specification: bytes) -> None:
        """Raises: OSError; GuardianLost if the keeper never received the request."""
        self._control, _ = await self._loop.create_unix_connection(
            lambda: _ControlProtocol(self), sock=pairs.take(CONTROL)
        )
        try:
            self._control.write(specification)
            await self._started
            await self._connect(pairs, STDIN)
            self._protocol.connection_made(self)
            for number in (STDOUT, STDERR):
                await self._connect(pairs, number)
        except BaseException:
            self.kill()
            self.close()
            raise
        self._is_made = True
        if self._code is not None:
            self._protocol.process_exited()

    async def _connect(self, pairs: SocketPairs, number: int) -> None:
        pipe = ProcessPipe(self._protocol, number)
        if number == STDOUT:
            self._output = pipe
        self._pipes[number], _ = await self._loop.create_unix_connection(lambda: pipe, sock=pairs.take(number))

    def get_pid(self) -> int:
        return self._started.result()

    def get_returncode(self) -> int | None:
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        return self._pipes.get(fd)

    def pause_reading(self) -> None:
        """Backpressure: the process blocks as soon as its output has filled the pipe."""
        if self._output is not None:
            self._output.pause_reading()

    def resume_reading(self) -> None:
        if self._output is not None:
            self._output.resume_reading()

    def terminate(self) -> None:
        """Ask the process and its group to exit."""
        self._send(guardian.ASK)

    def kill(self) -> None:
        """End all processes. If the main one has exited by itself, the others get a grace period."""
        self._send(guardian.END)

    def close(self) -> None:
        for transport in (*self._pipes.values(), self._control):
            if transport is not None:
                transport.close()

    def _send(self, what: bytes) -> None:
        if self._control is not None and not self._control.is_closing():
            self._control.write(what)

    # Reports of the keeper.

    def handle_message(self, what: bytes, number: int) -> None:
        if what == guardian.STARTED and not self._started.done():
            self._started.set_result(number)
        elif what == guardian.FAILED and not self._started.done():
            self._started.set_exception(OSError(number, os.strerror(number)))
        elif what == guardian.EXITED:
            self._handle_exit(number)
        elif what == guardian.STRAYS and number > 0:
            log.warning("stray_processes_ended", pid=self.get_pid(), count=number)

    def handle_disconnect(self) -> None:
        """Handle the end of the keeper: all processes are gone, or it was killed and can no longer report them."""
        if not self._started.done():
            reject(self._started, GuardianLost("the guardian of processes has ended"))
        elif self._code is None and not self._started.cancelled() and self._started.exception() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.get_pid(), signal.SIGKILL)
            self._handle_exit(-signal.SIGKILL)
        resolve(self.gone, None)

    def _handle_exit(self, code: int) -> None:
        self._code = code
        if self._is_made:
            self._protocol.process_exited()


class _ControlProtocol(asyncio.Protocol):
    """Parses the keeper's messages: a letter and a number each."""

    def __init__(self, process: KeptProcess) -> None:
        self._process, self._data = process, b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= _MESSAGE_BYTES:
            message, self._data = self._data[:_MESSAGE_BYTES], self._data[_MESSAGE_BYTES:]
            self._process.handle_message(message[:1], int.from_bytes(message[1:], "little", signed=True))

    def connection_lost(self, exc: Exception | None) -> None:
        self._process.handle_disconnect()


_read_buffers: "WeakKeyDictionary[asyncio.AbstractEventLoop, memoryview]" = WeakKeyDictionary()


def _read_buffer(loop: asyncio.AbstractEventLoop) -> memoryview:
    """Return the buffer that all pipes of a loop share: no other code runs between a read and its `buffer_updated`."""
    if (buffer := _read_buffers.get(loop)) is None:
        buffer = _read_buffers[loop] = memoryview(bytearray(TURN_BYTES))
    return buffer


class ProcessPipe(asyncio.BufferedProtocol):
    """One of the three pipes, reporting to asyncio's subprocess protocol. It reads one buffer per turn of the loop."""

    def __init__(self, protocol: asyncio.SubprocessProtocol, number: int) -> None:
        self._protocol, self._number = protocol, number
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = _read_buffer(self._loop)
        self._is_paused = False  # by the protocol's consumer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data = bytes(self._buffer[:nbytes])
        if nbytes == TURN_BYTES and self._transport is not None:
            # While the buffer is full, uvloop would keep reading in the same turn, up to 32 times.
            self._transport.pause_reading()
            self._loop.call_soon(self._read_on)
        if self._number != STDIN:
            self._protocol.pipe_data_received(self._number, data)

    def pause_reading(self) -> None:
        self._is_paused = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_paused = False
        self._read_on()

    def _read_on(self) -> None:
        if not self._is_paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.pipe_connection_lost(self._number, exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

"""A TCP proxy that fails on request: slow, silent, reset, cut, or not there."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class FaultProxy:
    """Set the faults at any time; those of a connection are looked up with every chunk."""

    def __init__(self, upstream: int) -> None:
        self.upstream = upstream
        self.port = 0
        self.latency = 0.0  # seconds before each chunk is passed on
        self.is_black_hole = False  # accepts everything and passes nothing on
        self.cut_after: int | None = None  # bytes of answers, counted over all connections, then every one is closed
        self._passed = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Nobody listens any more; what is open breaks."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()

    def reset(self) -> None:
        """Every open connection breaks with a reset."""
        for writer in list(self._open):
            sock = writer.get_extra_info("socket")
            if sock is not None:
                with suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        self._open.clear()

    def cut_answers_after(self, size: int) -> None:
        self._passed, self.cut_after = 0, size

    def heal(self) -> None:
        self.latency, self.is_black_hole, self.cut_after = 0.0, False, None

    async def close(self) -> None:
        await self.refuse()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        beyond: asyncio.StreamWriter | None = None
        try:
            answers, beyond = await asyncio.open_connection("127.0.0.1", self.upstream)
            self._open.add(beyond)
            await asyncio.gather(
                self._pass(reader, beyond, is_answer=False), self._pass(answers, writer, is_answer=True)
            )
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side is gone, and so is the other now
        finally:
            for end in (writer, beyond):
                if end is not None:
                    self._open.discard(end)
                    end.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, is_answer: bool) -> None:
        while chunk := await source.read(65536):
            if self.latency:
                await asyncio.sleep(self.latency)  # the proxy simulates a slow network
            if self.is_black_hole:
                continue
            if is_answer and self.cut_after is not None:
                chunk = chunk[: max(self.cut_after - self._passed, 0)]
                self._passed += len(chunk)
                target.write(chunk)
                if self._passed >= self.cut_after:
                    await target.drain()
                    raise ConnectionAbortedError
            else:
                target.write(chunk)
            await target.drain()
        raise ConnectionAbortedError


@asynccontextmanager
async def fault_proxy(upstream: int) -> AsyncIterator[FaultProxy]:
    proxy = FaultProxy(upstream)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.close()

"""A server that is nothing but a socket: the test reads what came and writes what it likes, byte by byte."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

WITHIN = 10.0  # seconds, on a busy machine


@dataclass(frozen=True, slots=True)
class RawRequest:
    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for given, value in self.headers if given.lower() == name]


class Peer:
    """The server's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self) -> RawRequest:
        async with asyncio.timeout(WITHIN):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
            headers = [(name, value) for name, _, value in (each.partition(": ") for each in lines)]
            length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            return RawRequest(line, headers, await self.reader.readexactly(length))

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def answer(self, body: bytes = b"", *headers: str, status: str = "200 OK") -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
        self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> None:
        """Return once the client has closed."""
        async with asyncio.timeout(WITHIN):
            with suppress(ConnectionError):
                while await self.reader.read(65536):
                    pass


class RawServer:
    def __init__(self, port: int, *, is_tls: bool) -> None:
        self.port, self.url = port, f"{'https' if is_tls else 'http'}://127.0.0.1:{port}/mcp"
        self.accepted: list[Peer] = []
        self._next: asyncio.Queue[Peer] = asyncio.Queue()
        self._running: asyncio.Server | None = None

    @property
    def has_new_peer(self) -> bool:
        """Whether a client has opened a connection that no `peer` has returned yet."""
        return not self._next.empty()

    async def peer(self) -> Peer:
        """The end of the next connection that a client opened."""
        async with asyncio.timeout(WITHIN):
            return await self._next.get()

    async def listen(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        self._running = await asyncio.start_server(self._accept, sock=listener, ssl=tls)

    def stop_listening(self) -> None:
        """Connections that are open stay so."""
        if self._running is not None:
            self._running.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.accepted.append(peer)
        self._next.put_nowait(peer)


@asynccontextmanager
async def raw_server(tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = RawServer(listener.getsockname()[1], is_tls=tls is not None)
        await server.listen(listener, tls)
        try:
            yield server
        finally:
            server.stop_listening()
            for peer in server.accepted:
                peer.writer.transport.abort()
                with suppress(OSError):
                    await peer.writer.wait_closed()

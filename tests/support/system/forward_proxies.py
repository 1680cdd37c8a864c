"""Forward proxies: a small one in the test's own process, and a real tinyproxy before it.

The small proxy resolves every host name to this machine and keeps the port. So tests reach servers under internet
names, and nothing leaves the machine.
"""

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from support.system.balancers import STOP_SECONDS, find_program
from support.system.ports import free_port
from support.waiting import eventually

USER, PASSWORD = "ada", "s3cretW0rd"  # tinyproxy takes letters and digits only
_PLACE = re.compile(r"(?:CONNECT |[A-Z]+ http://)(?P<host>\[[^\]]*\]|[^:/ ]+)(?::(?P<port>\d+))?")


class ForwardProxy:
    """`asked` has the heads of its requests. `answer` replaces a connection."""

    def __init__(self, port: int, *, password: str | None) -> None:
        self.port, self.asked = port, list[str]()
        self.answer: bytes | None = None
        self.is_silent = False
        self._open: set[asyncio.StreamWriter] = set()
        self._all_closed = asyncio.Event()
        self._password = password

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def lines(self) -> list[str]:
        return [head.partition("\r\n")[0] for head in self.asked]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self._all_closed.clear()
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await self._serve(reader, writer)
        writer.transport.abort() if writer.transport.is_closing() else writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        self._open.discard(writer)
        if not self._open:
            self._all_closed.set()

    async def close(self) -> None:
        while self._open:
            for writer in self._open:
                writer.transport.abort()
            await asyncio.wait_for(self._all_closed.wait(), STOP_SECONDS)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.asked.append(head)
        if self.is_silent:
            await reader.read()
        elif self.answer is not None:
            writer.write(self.answer)
            await writer.drain()
        elif self._password is not None and not self._is_proven(head):
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            await writer.drain()
        else:
            await self._connect(head, reader, writer)

    async def _connect(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = _PLACE.match(head)
        assert found is not None, head
        try:
            inner_reader, inner = await asyncio.open_connection("127.0.0.1", int(found["port"] or 80))
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
            return
        if head.startswith("CONNECT "):
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            inner.write(head.encode("latin-1"))
        await asyncio.gather(_relay(reader, inner), _relay(inner_reader, writer))
        with suppress(OSError):
            await inner.wait_closed()

    def _is_proven(self, head: str) -> bool:
        proof = base64.b64encode(f"{USER}:{self._password}".encode()).decode()
        return f"proxy-authorization: basic {proof}".lower() in head.lower()


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def forward_proxy(
    *, password: str | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ForwardProxy]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = ForwardProxy(listener.getsockname()[1], password=password)
        server = await asyncio.start_server(proxy.serve, sock=listener, ssl=tls)
        try:
            yield proxy
        finally:
            server.close()
            await proxy.close()


@asynccontextmanager
async def tinyproxy(folder: Path, beyond: ForwardProxy) -> AsyncIterator[str]:
    """The address of a real one that asks for USER and PASSWORD, and passes everything on to the one beyond it."""
    port, file = free_port(), folder / "tinyproxy.conf"
    lines = [
        f"Port {port}",
        "Listen 127.0.0.1",
        "Timeout 600",
        "MaxClients 100",
        f'LogFile "{folder}/tinyproxy.log"',
        f'PidFile "{folder}/tinyproxy.pid"',
        f"BasicAuth {USER} {PASSWORD}",
        f"Upstream http {beyond.address}",
    ]
    file.write_text("\n".join(lines) + "\n")
    process = await asyncio.create_subprocess_exec(find_program("tinyproxy"), "-d", "-c", str(file), stdout=-3)

    def listens() -> bool:
        assert process.returncode is None, "tinyproxy ended at once"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        await eventually(listens, what="tinyproxy listens")
        yield f"127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.wait(), STOP_SECONDS)

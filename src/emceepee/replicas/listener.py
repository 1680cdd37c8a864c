"""The listener for other replicas: a Unix socket that only this user can open, or a port.

It is bound before the store is opened, because the store announces its address to the other replicas.
"""

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from emceepee.lifecycle import CLOSE_IDLE_SECONDS, CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.replicas.hop_app import HopApp, HopConnection, HopParts
from emceepee.replicas.inbound_hops import InboundHops
from emceepee.replicas.signature import SigningReplica
from emceepee.server.http.connection_table import ConnectionTable
from emceepee.server.http.uvicorn_server import BACKLOG, ListeningServer, listen_on, server_config, url_of
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica

LONGEST_SOCKET_PATH = 100  # bytes; systems take 104 or 108
FOLDER_PREFIX = "emceepee-replica-"  # the store knows this prefix as well: it removes the folders of dead processes
HEAD_ROOM = 16 << 10  # bytes of a head beyond the limit for callers
HEADER_ROOM = 8
TOLD_SECONDS = 3.0  # longer than a canceled call may take, including its reply and the replica that forwards the reply
IDLE_SECONDS = 300.0  # longer than the other side keeps an idle connection


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """A bound socket. Other replicas can already connect, and are served once `serve` is entered."""

    address: str
    """The address that the store announces to the others."""
    listener: socket.socket
    tls: ssl.SSLContext | None = None

    @asynccontextmanager
    async def serve(self, parts: HopParts, limits: Limits) -> "AsyncIterator[HopListener]":
        hops, tasks = InboundHops(parts.clock), TaskOwner("hops")
        table = ConnectionTable(_hop_limits(limits))
        config = server_config(HopApp(parts, hops), partial(HopConnection, table=table, hops=hops), tls=self.tls)
        ready = asyncio.Event()

        async def is_ready() -> None:
            ready.set()

        server = ListeningServer(config, table, is_ready)
        serving = tasks.spawn(server.serve(sockets=[self.listener]), name="serve")
        serving.add_done_callback(lambda _: ready.set())
        try:
            await ready.wait()
            if serving.done():
                serving.result()
            yield HopListener(hops)
        finally:
            await asyncio.wait({tasks.spawn(hops.wait_until_confirmed(), name="wait")}, timeout=TOLD_SECONDS)
            server.should_exit = True
            await asyncio.wait({serving}, timeout=2 * CLOSE_TASKS_SECONDS)
            await tasks.close(within=CLOSE_IDLE_SECONDS)


class HopListener:
    """The server for other replicas."""

    def __init__(self, hops: InboundHops) -> None:
        self._hops = hops

    def __repr__(self) -> str:
        return f"<HopListener {self._hops!r}>"

    def drop(self, replica: Replica) -> None:
        """Drop a lost replica: it will not report whether the responses that it forwarded were read."""
        self._hops.drop(SigningReplica(replica.slot, replica.epoch))


@contextmanager
def bind(listen: tuple[str, int] | None, tls: ssl.SSLContext | None = None) -> Iterator[BoundListener]:
    """Listen on the given host and port, or else on a Unix socket.

    Raises:
        OSError: the address is in use or not available.
    """
    if listen is not None:
        host, port = listen
        listener = listen_on(host, port)
        try:
            yield BoundListener(address=url_of(host, listener, is_tls=tls is not None), listener=listener, tls=tls)
        finally:
            listener.close()
        return
    folder = _private_folder()
    path = folder / "hop"
    listener = _listen_on_socket(path)
    try:
        yield BoundListener(address=f"unix:{path}", listener=listener)
    finally:
        listener.close()
        with suppress(OSError):
            path.unlink(missing_ok=True)
            folder.rmdir()


def _private_folder() -> Path:
    """Create a folder that only this user can access."""
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_PATH - len("/hop"):
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX, dir="/tmp"))


def _listen_on_socket(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def _hop_limits(limits: Limits) -> Limits:
    """Return limits under which a replica can forward any request that a caller may send."""
    return replace(
        limits,
        request_head_bytes=limits.request_head_bytes + HEAD_ROOM,
        request_headers=limits.request_headers + HEADER_ROOM,
        idle_connection_seconds=IDLE_SECONDS,
    )

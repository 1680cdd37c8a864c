"""One connection of a caller over HTTP: uvicorn's own, and what it knows of whether anybody is still there."""

import fcntl
import socket
import struct
import termios
from asyncio import BaseTransport
from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from emceepee.web.asgi import CONNECTION


class HttpConnection(HttpToolsProtocol):
    """Tells the requests that came by it whether their caller is gone, and whether it took their answer with it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._serving: RequestResponseCycle | None = None
        self._unconfirmed: list[Callable[[], None]] = []  # who is told if the last responses were not read

    def is_gone(self) -> bool:
        if not self.transport.is_closing():
            return False
        if self._serving is not None:
            self._serving.disconnected = True  # uvicorn learns of it a turn later, and would miss the response
        return True

    def if_unread(self, tell: Callable[[], None]) -> None:
        self._unconfirmed.append(tell)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast(dict[str, Any], self.scope)["extensions"] = {CONNECTION: self}
        self._unconfirmed.clear()  # who asks again has read what came before

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._serving = cycle
        super()._start_asgi_task(cycle, app)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if not self.pipeline:
            self.flow.resume_reading()  # also behind a large body: while nothing is read, no hang-up is noticed

    def connection_lost(self, exc: Exception | None) -> None:
        cycle, unconfirmed = self.cycle, self._unconfirmed
        if unconfirmed and exc is None and cycle.response_complete and not _is_unread(self.transport):
            unconfirmed = []
        super().connection_lost(exc)
        # The scope refers to this connection: nothing may be left for the collector.
        self.cycle, self.scope, self._serving, self._unconfirmed = cast(Any, None), cast(Any, None), None, []
        for tell in unconfirmed:
            tell()


def _is_unread(transport: BaseTransport) -> bool:
    """Whether the caller closed without taking all that was written: its system refused it, or never confirmed it."""
    sock: socket.socket = transport.get_extra_info("socket")
    try:
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            return True
        waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")  # on a socket: bytes not acknowledged
    except OSError:
        return False
    return bool(struct.unpack("i", waiting)[0])

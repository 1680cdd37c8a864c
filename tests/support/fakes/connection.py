"""A connection without a network: the test is the transport and the pool."""

import asyncio
from typing import Any

from emceepee.backends.http1.client_connection import ClientConnection
from emceepee.backends.http1.response import HttpResponse
from emceepee.clock import Handle
from support.fakes.clock import FakeClock


class FakeTransport(asyncio.Transport):
    """Notes what is written, and whether the other side may send."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.unwritten = 0
        self.may_receive = True
        self._is_closed = False

    def write(self, data: Any) -> None:
        assert not self._is_closed
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return self.unwritten

    def is_closing(self) -> bool:
        return self._is_closed

    def abort(self) -> None:
        self._is_closed = True

    def pause_reading(self) -> None:
        assert self.may_receive
        self.may_receive = False

    def resume_reading(self) -> None:
        assert not self.may_receive
        self.may_receive = True


class FakeConnection:
    """One connection, open and idle."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.kept: list[ClientConnection] = []
        self.is_gone = False
        self.transport = FakeTransport()
        self.connection = ClientConnection(self, asyncio.get_running_loop())
        self.connection.connection_made(self.transport)

    def put_back(self, connection: ClientConnection) -> None:
        self.kept.append(connection)

    def retire(self, connection: ClientConnection) -> None:
        if connection in self.kept:
            self.kept.remove(connection)

    def forget(self, connection: ClientConnection) -> None:
        self.is_gone = True

    def close_soon(self, response: HttpResponse) -> Handle:
        return self.clock.call_later(5.0, response.close)

    def ask(self) -> HttpResponse:
        self.kept.clear()
        return self.connection.send(b"request")

    def hear(self, *pieces: bytes) -> None:
        """As the loop does it: nothing more after the connection was closed."""
        for piece in pieces:
            if piece and not self.transport.is_closing():
                self.connection.data_received(piece)

    def hang_up(self, error: Exception | None = None) -> None:
        if error is None and not self.transport.is_closing():
            self.connection.eof_received()
        self.connection.connection_lost(error)

    def may_send(self) -> bool:
        """Whether the server may."""
        return self.transport.may_receive

    @property
    def is_kept(self) -> bool:
        return self.kept == [self.connection] and not self.transport.is_closing()

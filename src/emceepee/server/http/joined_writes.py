"""Joins the head and body of a response, which uvicorn writes separately: this saves a system call and a packet.

A large body is written separately, because joining would copy it.
"""

import asyncio
from collections.abc import Callable
from typing import cast

LARGE_BYTES = 1 << 16


class JoinedWrites:
    """The transport of one response. The first piece waits for the second, at most until the next turn of the loop."""

    __slots__ = ("_close", "_held", "_is_begun", "_transport")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self._transport, self._close = transport, close
        self._held = b""
        self._is_begun = False

    def write(self, data: bytes) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._held = data
            asyncio.get_running_loop().call_soon(self.flush)
        elif self._held and len(data) < LARGE_BYTES:
            self._transport.write(self._held + data)
            self._held = b""
        elif self._held:
            self.flush()
            self._transport.write(data)
        else:
            self._transport.write(data)

    def flush(self) -> None:
        if self._held:
            held, self._held = self._held, b""
            if not self._transport.is_closing():
                self._transport.write(held)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def close(self) -> None:
        self.flush()
        self._close()


def joined_writes(transport: asyncio.Transport, *, close: Callable[[], None]) -> asyncio.Transport:
    """Wrap a transport as uvicorn uses it. `close` closes it."""
    return cast(asyncio.Transport, JoinedWrites(transport, close))

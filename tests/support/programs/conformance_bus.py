"""Notify callers of every replica of changes that the conformance suite's tools make.

emceepee's own lists never change, so the product has no such channel.
"""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from emceepee.server.listen_requests import PROMPTS_CHANGED, TOOLS_CHANGED, ListChange

BUS_VARIABLE = "CONFORMANCE_BUS"  # a folder in which each replica has a socket
LONGEST = 64  # bytes of the name of a change


class SharedBus:
    """Made in a running event loop; without a folder it is for one process."""

    offered = frozenset({TOOLS_CHANGED, PROMPTS_CHANGED})

    def __init__(self, folder: str | None) -> None:
        self._listeners: dict[object, Callable[[ListChange], None]] = {}
        self._own = self._peers = None
        if folder is None:
            return
        self._peers = Path(folder)
        self._own = self._peers / str(os.getpid())
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(self._own))
        asyncio.get_running_loop().add_reader(self._socket, self._hear)

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        token = object()
        self._listeners[token] = listener

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def publish(self, change: ListChange) -> None:
        self._tell(change)
        for peer in self._peers.iterdir() if self._peers else ():
            if peer != self._own:
                with suppress(ConnectionRefusedError):  # it has ended
                    self._socket.sendto(change.method.encode(), str(peer))

    def _hear(self) -> None:
        self._tell(ListChange(self._socket.recv(LONGEST).decode()))

    def _tell(self, change: ListChange) -> None:
        for listener in list(self._listeners.values()):
            listener(change)

"""What the conformance suite's tools change is heard by the callers of every replica.

emceepee's own lists never change, so there is nothing in the product that would carry it.
"""

import asyncio
import os
import socket
from contextlib import suppress
from pathlib import Path

from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ServerEvent, ToolsListChanged

BUS_VARIABLE = "CONFORMANCE_BUS"  # a folder in which each replica has a socket
EVENTS = {type(event).__name__.encode(): event for event in (ToolsListChanged(), PromptsListChanged())}


class SharedBus(InMemorySubscriptionBus):
    """Made in a running event loop; without a folder it is for one process."""

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self._own = self._peers = None
        if folder is None:
            return
        self._peers = Path(folder)
        self._own = self._peers / str(os.getpid())
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.bind(str(self._own))
        asyncio.get_running_loop().add_reader(self._socket, self._hear)

    async def publish(self, event: ServerEvent) -> None:
        await super().publish(event)
        for peer in self._peers.iterdir() if self._peers else ():
            if peer != self._own:
                with suppress(ConnectionRefusedError):  # it has ended
                    self._socket.sendto(type(event).__name__.encode(), str(peer))

    def _hear(self) -> None:
        event = EVENTS[self._socket.recv(64)]
        for listener in list(self._listeners.values()):
            listener(event)

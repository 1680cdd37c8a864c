"""A second link to a server that needs both eras, for calls that can ask only in the handshake era.

The first link stays in 2026-07-28, where the server has its tasks and extensions. The second link carries only
requests, the server's questions during them, and their progress. The first call that needs it opens it.
"""

import asyncio
from collections.abc import Awaitable, Callable

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import Link, Listener
from emceepee.lifecycle import CLOSE_LINK_SECONDS, close_bounded
from emceepee.wire.json_types import JsonObject

_OF_CALLS = ("notifications/progress", "notifications/message", "notifications/elicitation/complete")


class SideListener:
    """Passes on messages that belong to calls. Change notifications already arrive over the first link."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        return await self._listener.handle_request(method, params, origin, seconds=seconds)

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        if method in _OF_CALLS:
            self._listener.handle_notification(method, params, origin)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None

    def handle_output(self, line: str, source: str) -> None:
        self._listener.handle_output(line, source)

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        pass


class SideLink:
    """The second link, which `dial` opens on first use."""

    def __init__(self, dial: Callable[[], Awaitable[Link]]) -> None:
        self._dial = dial
        self._opening = asyncio.Lock()
        self._link: Link | None = None
        self._requests = 0  # under way

    async def request(self, method: str, params: JsonObject, *, origin: object | None) -> JsonObject:
        """Raises: RpcError, LinkError."""
        self._requests += 1
        try:
            link = await self._open()
            return await link.request(method, params, origin=origin)
        finally:
            self._requests -= 1

    @property
    def is_idle(self) -> bool:
        """Whether the link is open without requests under way."""
        return self._link is not None and not self._requests

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what="a second link")

    async def _open(self) -> Link:
        async with self._opening:
            if self._link is not None and self._link.closed.done():
                await self.close()
            if self._link is None:
                self._link = await self._dial()
            return self._link

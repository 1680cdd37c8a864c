"""Resolves host names. Concurrent lookups of the same host and port share one query."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner

KEPT_SECONDS = 10.0  # how long an answer is cached

SocketAddress = tuple[socket.AddressFamily, Any]
Place = tuple[str, int]  # host and port
Lookup = Callable[[str, int], Awaitable[list[SocketAddress]]]


async def ask_system(host: str, port: int) -> list[SocketAddress]:
    """Raises: OSError, UnicodeError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


class Resolver:
    """A resolver that shares queries in flight and caches their answers for KEPT_SECONDS."""

    def __init__(self, clock: Clock, lookup: Lookup = ask_system) -> None:
        self._clock, self._lookup = clock, lookup
        self._tasks = TaskOwner("names")
        self._open: dict[Place, asyncio.Task[list[SocketAddress] | Exception]] = {}
        self._known: dict[Place, tuple[float, list[SocketAddress]]] = {}

    async def addresses(self, host: str, port: int) -> list[SocketAddress]:
        """Raises: OSError, UnicodeError."""
        with suppress(OSError):
            return _numeric(host, port)
        place = host, port
        until, known = self._known.get(place, (0.0, []))
        if known and until > self._clock.monotonic():
            return known
        asking = self._open.get(place)
        if asking is None:
            asking = self._open[place] = self._tasks.spawn(self._ask(place), name=host)
        answer = await asyncio.shield(asking)  # cancellation of one caller must not cancel the shared query
        if isinstance(answer, Exception):
            raise answer
        return answer

    def forget(self, host: str, port: int) -> None:
        """Drop the cached answer after a failed connection, because the host may have new addresses."""
        self._known.pop((host, port), None)

    async def close(self) -> None:
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    async def _ask(self, place: Place) -> list[SocketAddress] | Exception:
        try:
            answer = await self._lookup(*place)
        except (OSError, UnicodeError) as error:
            return error
        finally:
            del self._open[place]
        now = self._clock.monotonic()
        self._known = {other: kept for other, kept in self._known.items() if kept[0] > now}
        self._known[place] = now + KEPT_SECONDS, answer
        return answer


def _numeric(host: str, port: int) -> list[SocketAddress]:
    """Convert a host that is already an address, without a lookup. Raises: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [(family, address) for family, _, _, _, address in found]

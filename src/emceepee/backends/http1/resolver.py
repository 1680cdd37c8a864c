"""Which addresses a host has. A crowd that connects at once asks the resolver once."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner

KEPT_SECONDS = 10.0  # an answer of the resolver

SocketAddress = tuple[socket.AddressFamily, Any]
Place = tuple[str, int]  # host and port
Lookup = Callable[[str, int], Awaitable[list[SocketAddress]]]


async def ask_system(host: str, port: int) -> list[SocketAddress]:
    """Raises: OSError, UnicodeError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in found]


class Resolver:
    """Whoever asks while a question is open waits for the same answer; an answer is good for a while."""

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
        answer = await asyncio.shield(asking)  # the others still wait for it if one leaves
        if isinstance(answer, Exception):
            raise answer
        return answer

    def forget(self, host: str, port: int) -> None:
        """Nobody answers there: the host may have moved."""
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
    """Of a host that is an address already; nobody has to be asked. Raises: OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    return [(family, address) for family, _, _, _, address in found]

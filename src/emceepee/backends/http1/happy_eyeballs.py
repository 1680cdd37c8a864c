"""A socket to a host that may have several addresses, of which some may lead nowhere."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from itertools import chain, zip_longest
from typing import Any

from emceepee.backends.http1.resolver import SocketAddress
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner

HEAD_START = 0.25  # seconds that an address has before the next one is tried beside it, as RFC 8305 recommends

Connect = Callable[[SocketAddress], Awaitable[socket.socket]]


async def open_socket(addresses: list[SocketAddress]) -> socket.socket:
    """Raises: OSError."""
    return await first_of(addresses, _connect)


def open_unix_socket(path: str) -> socket.socket:
    """Within one machine nobody has to be waited for. Raises: OSError, also if too many wait to be accepted."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


async def first_of(
    addresses: list[SocketAddress], connect: Connect, *, head_start: float = HEAD_START
) -> socket.socket:
    """The socket of the first address that answers. Raises: OSError of the first that failed, if none does."""
    if len(addresses) == 1:
        return await connect(addresses[0])
    attempts = TaskOwner("reach")
    reached: list[socket.socket] = []
    errors: list[OSError] = []

    async def attempt(address: SocketAddress) -> None:
        try:
            reached.append(await connect(address))
        except OSError as error:
            errors.append(error)

    winner: socket.socket | None = None
    try:
        try:
            waiting, running = _by_turns(addresses), set[asyncio.Task[None]]()
            while not reached and (waiting or running):
                if waiting:
                    running.add(attempts.spawn(attempt(waiting.pop(0))))
                patience = head_start if waiting else None
                _, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await attempts.close(within=CLOSE_IDLE_SECONDS)
        winner = next(iter(reached), None)
    finally:
        for sock in reached:
            if sock is not winner:
                sock.close()
    if winner is None:
        raise errors[0] if errors else OSError("the host has no address")
    return winner


def _by_turns(addresses: list[SocketAddress]) -> list[SocketAddress]:
    """The two families in turns, begun with the one that the system prefers."""
    families = dict.fromkeys(family for family, _ in addresses)
    turns = zip_longest(*([one for one in addresses if one[0] == family] for family in families))
    return [one for one in chain.from_iterable(turns) if one is not None]


async def _connect(address: SocketAddress) -> socket.socket:
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A stream may be silent for hours; a peer that vanished without a word is found out in the end.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, _with_zone(address))
    except BaseException:
        sock.close()
        raise
    return sock


def _with_zone(address: SocketAddress) -> Any:
    """uvloop looks up host and port once more, and forgets a zone that stands beside them."""
    family, place = address
    if family == socket.AF_INET6 and len(place) == 4 and place[3] and "%" not in place[0]:
        return (f"{place[0]}%{place[3]}", *place[1:])
    return place

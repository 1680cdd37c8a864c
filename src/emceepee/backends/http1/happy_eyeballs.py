"""Connects a socket to a host with several addresses, some of which may be unreachable."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from itertools import chain, zip_longest
from typing import Any

from emceepee.backends.http1.resolver import SocketAddress
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner

HEAD_START = 0.25  # seconds before the next address is tried in parallel, as RFC 8305 recommends

Connect = Callable[[SocketAddress], Awaitable[socket.socket]]


async def open_socket(addresses: list[SocketAddress]) -> socket.socket:
    """Raises: OSError."""
    return await first_of(addresses, _connect)


def open_unix_socket(path: str) -> socket.socket:
    """Connect to a Unix socket, which never blocks. Raises: OSError, also if the server's backlog is full."""
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
    """Return a socket to the first address that answers. Raises: OSError of the first that failed, if none does."""
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
    """Return the addresses with IPv4 and IPv6 alternating, starting with the family that the system prefers."""
    families = dict.fromkeys(family for family, _ in addresses)
    turns = zip_longest(*([one for one in addresses if one[0] == family] for family in families))
    return [one for one in chain.from_iterable(turns) if one is not None]


async def _connect(address: SocketAddress) -> socket.socket:
    sock = socket.socket(address[0], socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A stream may be silent for hours. Keep-alive detects a half-open connection to a peer that has vanished.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, _with_zone(address))
    except BaseException:
        sock.close()
        raise
    return sock


def _with_zone(address: SocketAddress) -> Any:
    """Put the IPv6 zone into the host. uvloop resolves the host again and drops a separate zone."""
    family, place = address
    if family == socket.AF_INET6 and len(place) == 4 and place[3] and "%" not in place[0]:
        return (f"{place[0]}%{place[3]}", *place[1:])
    return place

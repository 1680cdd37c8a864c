"""Several addresses: some refuse, some are silent, and one accepts."""

import asyncio
import socket
from contextlib import suppress

import pytest

from emceepee.backends.http1.happy_eyeballs import _with_zone, first_of
from emceepee.backends.http1.resolver import SocketAddress

V4, V6 = socket.AF_INET, socket.AF_INET6


class Hosts:
    """Addresses that accept, refuse, or stay silent, by name. Records the attempts and the open sockets."""

    def __init__(self) -> None:
        self.tried: list[str] = []
        self.open: list[socket.socket] = []

    async def connect(self, address: SocketAddress) -> socket.socket:
        name = address[1]
        self.tried.append(name)
        if name.startswith("silent"):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if name.startswith("refuses"):
            raise ConnectionRefusedError(111, name)
        sock = socket.socket()
        self.open.append(sock)
        return sock

    def left_open(self) -> int:
        return sum(sock.fileno() != -1 for sock in self.open)


def addresses(*names: str, family: socket.AddressFamily = V4) -> list[SocketAddress]:
    return [(family, name) for name in names]


async def reached(hosts: Hosts, places: list[SocketAddress], *, head_start: float = 0.01) -> socket.socket:
    async with asyncio.timeout(10):
        return await first_of(places, hosts.connect, head_start=head_start)


async def test_the_first_address_that_accepts_is_used_and_no_other_is_tried() -> None:
    hosts = Hosts()
    with await reached(hosts, addresses("answers", "answers too"), head_start=10):
        assert hosts.tried == ["answers"]


async def test_a_refused_connection_attempt_is_followed_by_the_next_address_at_once() -> None:
    hosts = Hosts()
    with await reached(hosts, addresses("refuses", "answers"), head_start=10):
        assert hosts.tried == ["refuses", "answers"]


async def test_a_silent_address_does_not_delay_the_attempt_at_the_next_one() -> None:
    hosts = Hosts()
    with await reached(hosts, addresses("silent", "silent too", "answers")):
        assert hosts.tried == ["silent", "silent too", "answers"]


async def test_connection_attempts_alternate_between_ipv6_and_ipv4() -> None:
    hosts = Hosts()
    places = [*addresses("refuses 6a", "refuses 6b", family=V6), *addresses("refuses 4a", "answers")]
    with await reached(hosts, places):
        assert hosts.tried == ["refuses 6a", "refuses 4a", "refuses 6b", "answers"]


async def test_the_first_refusal_is_reported_if_no_address_accepts() -> None:
    with pytest.raises(ConnectionRefusedError, match="refuses a"):
        await reached(Hosts(), addresses("refuses a", "refuses b"))


async def test_connecting_to_a_host_without_addresses_raises_an_error() -> None:
    with pytest.raises(OSError, match="no address"):
        await reached(Hosts(), [])


async def test_if_two_addresses_accept_at_once_one_connection_is_closed() -> None:
    hosts = Hosts()
    with await reached(hosts, addresses("answers a", "answers b"), head_start=0):
        assert hosts.left_open() == 1


async def test_a_cancelled_connection_attempt_leaves_no_socket_open() -> None:
    for names in (("silent a", "silent b"), ("silent",), ("answers", "silent")):
        for turns in range(6):
            hosts = Hosts()
            trying = asyncio.ensure_future(reached(hosts, addresses(*names), head_start=0))
            for _ in range(turns):
                await asyncio.sleep(0)
            trying.cancel()
            with suppress(asyncio.CancelledError):
                (await trying).close()
            assert hosts.left_open() == 0


def test_an_ipv6_zone_is_written_into_the_host_where_both_event_loops_look_for_it() -> None:
    assert _with_zone((socket.AF_INET6, ("fe80::1", 80, 0, 4))) == ("fe80::1%4", 80, 0, 4)
    for address in (
        (socket.AF_INET6, ("fe80::1%eth0", 80, 0, 4)),
        (socket.AF_INET6, ("2001:db8::1", 80, 0, 0)),
        (socket.AF_INET, ("192.0.2.1", 80)),
    ):
        assert _with_zone(address) == address[1]

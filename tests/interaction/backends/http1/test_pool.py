"""The connection pool with real sockets on loopback: connections open, idle, are reused, and close."""

import asyncio
import os
import socket
import ssl
import weakref
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from emceepee.backends.http1 import connector as connector_module
from emceepee.backends.http1 import pool as pool_module
from emceepee.backends.http1.client_connection import ClientConnection
from emceepee.backends.http1.connection_slots import WAIT_SECONDS
from emceepee.backends.http1.http_failures import HttpFailure, NotConnected
from emceepee.backends.http1.origin import Address, HttpOrigin
from emceepee.backends.http1.pool import CONNECT_SECONDS, IDLE_SECONDS, ConnectionPool, OriginPool
from emceepee.backends.http1.resolver import KEPT_SECONDS, Resolver, SocketAddress
from emceepee.backends.http1.response import UNREAD_BYTES, HttpResponse
from support.backends.raw_server import Peer, RawServer, raw_server
from support.fakes.clock import FakeClock, settle
from support.system.certificates import self_signed, server_context
from support.waiting import eventually

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
UNTRUSTING = ssl.create_default_context()


@pytest.fixture
async def pool(clock: FakeClock) -> AsyncIterator[ConnectionPool]:
    async with ConnectionPool.running(clock, UNTRUSTING) as running:
        yield running
    assert running.open == set()


def origin(url: str) -> HttpOrigin:
    return Address.of(url).origin


def sent(connection: ClientConnection) -> "asyncio.Task[HttpResponse]":
    async def answered() -> HttpResponse:
        response = connection.send(REQUEST)
        await response.wait_for_head()
        return response

    return asyncio.ensure_future(answered())


async def used(connections: OriginPool, server: RawServer, *headers: str) -> tuple[ClientConnection, Peer]:
    """A new connection, idle again after its first request."""
    connection = await connections.connect()
    peer, asking = await server.peer(), sent(connection)
    await peer.request()
    peer.answer(b"hello", *headers)
    assert await (await asking).read(100) == b"hello"
    return connection, peer


async def test_the_pool_reuses_the_most_recently_used_connection_first(pool: ConnectionPool, server: RawServer) -> None:
    connections = pool.of(origin(server.url))
    first, _ = await used(connections, server)
    taken = connections.take()
    assert taken is first
    second, _ = await used(connections, server)
    asking = sent(first)
    await server.accepted[0].request()
    server.accepted[0].answer()
    await asking
    assert [connections.take(), connections.take(), connections.take()] == [first, second, None]


async def test_concurrent_requests_get_separate_connections(pool: ConnectionPool, server: RawServer) -> None:
    connections = pool.of(origin(server.url))
    opened = await asyncio.gather(*(connections.connect() for _ in range(50)))
    assert len(set(opened)) == len(pool.open) == 50


async def test_links_to_the_same_origin_share_connections_and_other_links_do_not(
    pool: ConnectionPool, server: RawServer
) -> None:
    connections = pool.of(origin(server.url))
    connection, _ = await used(connections, server)
    assert pool.of(origin(server.url.replace("127.0.0.1", "localhost"))).take() is None
    assert pool.of(origin(server.url + "/other")).take() is connection


async def test_the_pool_forgets_an_origin_without_links(pool: ConnectionPool) -> None:
    connections = weakref.ref(pool.of(HttpOrigin(False, "example.org", 80)))
    assert connections() is None


async def test_the_pool_closes_a_connection_after_a_minute_without_requests(
    pool: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections = pool.of(origin(server.url))
    _, older = await used(connections, server)
    connections.take()  # so that the next one needs a connection of its own
    await clock.advance(10)
    kept, younger = await used(connections, server)
    await clock.advance(IDLE_SECONDS - 1)
    assert kept.is_open
    await clock.advance(1)
    await younger.gone()
    assert connections.take() is None
    assert not older.reader.at_eof()  # it is in use, or so the pool thinks


async def test_reuse_resets_the_idle_timer_of_a_connection(
    pool: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections = pool.of(origin(server.url))
    connection, peer = await used(connections, server)
    for _ in range(5):
        await clock.advance(IDLE_SECONDS * 0.75)
        assert connections.take() is connection
        asking = sent(connection)
        await peer.request()
        peer.answer()
        await asking
    assert connection.is_open
    await clock.advance(IDLE_SECONDS)
    await peer.gone()


async def test_the_pool_does_not_reuse_a_connection_past_the_keep_alive_timeout_of_its_server(
    pool: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections = pool.of(origin(server.url))
    connection, peer = await used(connections, server, "Keep-Alive: timeout=5, max=100")
    await clock.advance(3.9)
    assert connections.take() is connection
    connections.put_back(connection)
    await clock.advance(4)
    assert connections.take() is None
    await peer.gone()


async def test_the_pool_does_not_reuse_an_expired_connection_even_if_its_timer_is_late(
    pool: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections = pool.of(origin(server.url))
    _, peer = await used(connections, server)
    clock.stall(IDLE_SECONDS)
    assert connections.take() is None
    await peer.gone()


async def test_one_timer_covers_all_idle_connections_of_the_pool(
    pool: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections = pool.of(origin(server.url))
    for connection in await asyncio.gather(*(connections.connect() for _ in range(5))):
        connections.put_back(connection)
    assert clock.timers == 1
    await clock.advance(IDLE_SECONDS)
    await eventually(lambda: not pool.open)
    assert clock.timers == 0


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_the_pool_does_not_reuse_a_connection_that_the_server_closed(
    how: str, pool: ConnectionPool, server: RawServer
) -> None:
    connections = pool.of(origin(server.url))
    _, peer = await used(connections, server)
    getattr(peer, how)()
    await eventually(lambda: not pool.open)
    assert connections.take() is None


@pytest.mark.parametrize("ends", [True, False])
async def test_the_pool_notices_a_closed_connection_before_the_event_loop_reports_it(
    ends: bool, pool: ConnectionPool, server: RawServer
) -> None:
    connections = pool.of(origin(server.url))
    connection, peer = await used(connections, server)
    with socket.socket(fileno=os.dup(peer.writer.get_extra_info("socket").fileno())) as sock:
        if ends:
            sock.shutdown(socket.SHUT_WR)
        else:
            sock.send(b"x")
    assert connection.is_open
    assert connections.take() is None
    await eventually(lambda: not pool.open)


async def test_the_pool_does_not_reuse_a_connection_with_unsolicited_data(
    pool: ConnectionPool, server: RawServer
) -> None:
    connections = pool.of(origin(server.url))
    _, peer = await used(connections, server)
    peer.send(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
    await peer.gone()
    assert connections.take() is None


async def test_a_slow_reader_pauses_the_server_and_receives_everything(pool: ConnectionPool, server: RawServer) -> None:
    size = 64 << 20  # more than the sockets between us hold
    connection = await pool.of(origin(server.url)).connect()
    peer, asking = await server.peer(), sent(connection)
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
    response = await asking
    peer.send(bytes(size))
    sending = asyncio.ensure_future(peer.writer.drain())
    await eventually(lambda: response.size > UNREAD_BYTES)
    assert not sending.done()
    assert response.size < 4 << 20
    read = 0
    async with asyncio.timeout(30):
        while piece := await response.readany():
            read += len(piece)
    await sending
    assert read == size


# Unavailable connections.


async def test_connecting_to_a_closed_port_fails(pool: ConnectionPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NotConnected, match="Connection refused"):
        await pool.of(HttpOrigin(False, "127.0.0.1", port)).connect()


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 300, "a..b"])
async def test_connecting_to_a_host_without_an_address_fails(host: str, pool: ConnectionPool) -> None:
    async with asyncio.timeout(30):
        with pytest.raises(NotConnected) as failure:
            await pool.of(HttpOrigin(False, host, 80)).connect()
    assert str(failure.value)


async def test_connecting_to_a_silent_host_times_out(
    pool: ConnectionPool, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(addresses: list[SocketAddress]) -> socket.socket:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(connector_module, "open_socket", silent)
    connecting = asyncio.ensure_future(pool.of(HttpOrigin(False, "127.0.0.1", 80)).connect())
    await clock.advance(CONNECT_SECONDS - 1)
    assert not connecting.done()
    await clock.advance(1)
    with pytest.raises(NotConnected, match="no connection within 10 s"):
        await connecting


async def test_a_closed_pool_opens_no_connections(clock: FakeClock, server: RawServer) -> None:
    async with ConnectionPool.running(clock, UNTRUSTING) as pool:
        connections = pool.of(origin(server.url))
        _, idle = await used(connections, server)
        connections.take()
        awaited = sent(await connections.connect())
        await (await server.peer()).request()
    assert pool.open == set()
    with pytest.raises(HttpFailure, match="the connection was closed"):
        await awaited
    await idle.gone()
    with pytest.raises(NotConnected):
        await connections.connect()


@pytest.mark.parametrize("turns", range(12))
async def test_connecting_can_be_canceled_at_any_step_without_a_leak(
    turns: int, pool: ConnectionPool, server: RawServer
) -> None:
    connecting = asyncio.ensure_future(pool.of(origin(server.url)).connect())
    for _ in range(turns):
        await asyncio.sleep(0)
    connecting.cancel()
    with suppress(asyncio.CancelledError):
        (await connecting).abort()
    await eventually(lambda: not pool.open)


# Who shares connections.


async def test_different_owners_share_no_connections(pool: ConnectionPool, server: RawServer) -> None:
    place = origin(server.url)
    connection, _ = await used(pool.of(place, owner="alice"), server)
    assert pool.of(place, owner="bob").take() is None
    assert pool.of(place).take() is None
    assert pool.of(place, owner="alice", is_public=True).take() is None
    assert pool.of(place, owner="alice").take() is connection


# Addresses that may not be connected to.


class ScriptedResolver:
    """A name whose addresses change under everyone's feet."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def __call__(self, host: str, port: int) -> list[SocketAddress]:
        return [(socket.AF_INET, (address, port)) for address in self.addresses]


async def dialled(
    pool: ConnectionPool, resolver: ScriptedResolver, monkeypatch: pytest.MonkeyPatch, *, is_public: bool
) -> list[str]:
    """The addresses that a connection would have been made to. None is made."""
    tried: list[str] = []

    async def pretend(addresses: list[SocketAddress]) -> socket.socket:
        tried.extend(address[0] for _, address in addresses)
        raise OSError("this test connects to nobody")

    monkeypatch.setattr(connector_module, "open_socket", pretend)
    pool.connector.resolver = Resolver(pool.clock, resolver)
    with pytest.raises(NotConnected):
        await pool.of(HttpOrigin(False, "moving.example", 80), is_public=is_public).connect()
    return tried


async def test_a_host_name_with_private_and_public_addresses_is_connected_only_to_the_public_ones(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = ScriptedResolver("8.8.8.8", "127.0.0.1", "10.0.0.1", "1.1.1.1")
    assert await dialled(pool, resolver, monkeypatch, is_public=True) == ["8.8.8.8", "1.1.1.1"]
    assert len(await dialled(pool, resolver, monkeypatch, is_public=False)) == 4


async def test_the_pool_does_not_follow_a_host_name_that_later_resolves_to_a_private_network(
    pool: ConnectionPool, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = ScriptedResolver("8.8.8.8")
    assert await dialled(pool, resolver, monkeypatch, is_public=True) == ["8.8.8.8"]
    resolver.addresses = ("127.0.0.1", "64:ff9b::7f00:1")
    await clock.advance(KEPT_SECONDS)
    assert await dialled(pool, resolver, monkeypatch, is_public=True) == []


async def test_a_refused_private_address_is_named_in_the_error(pool: ConnectionPool, server: RawServer) -> None:
    with pytest.raises(NotConnected, match="private network"):
        await pool.of(origin(server.url), is_public=True).connect()
    assert server.accepted == []


# How many there may be.


@pytest.fixture
async def small(clock: FakeClock) -> AsyncIterator[ConnectionPool]:
    async with ConnectionPool.running(clock, UNTRUSTING, per_origin=2, in_all=3) as running:
        yield running
    assert (running.open, running.slots.occupied) == (set(), 0)


async def test_a_request_beyond_the_limit_per_origin_waits_for_a_connection_and_gets_it(
    small: ConnectionPool, server: RawServer
) -> None:
    connections = small.of(origin(server.url))
    first, _ = await connections.connect(), await connections.connect()
    waiting = asyncio.ensure_future(connections.connect())
    await settle()
    assert len(small.open) == 2
    connections.put_back(first)
    assert await asyncio.wait_for(waiting, 5) is first
    assert connections.take() is None


async def test_a_released_place_in_the_pool_goes_to_the_next_waiter(small: ConnectionPool, server: RawServer) -> None:
    connections = small.of(origin(server.url))
    first, second = await connections.connect(), await connections.connect()
    waiting = asyncio.ensure_future(connections.connect())
    await settle()
    first.abort()
    third = await asyncio.wait_for(waiting, 5)
    assert third not in (first, second)
    assert small.slots.occupied == 2


async def test_a_request_that_waits_too_long_for_a_connection_gets_an_error_that_names_the_limit(
    small: ConnectionPool, server: RawServer, clock: FakeClock
) -> None:
    connections, others = small.of(origin(server.url)), small.of(origin(server.url), owner="another")
    _ = [await connections.connect(), await connections.connect(), await others.connect()]
    for pool, words in ((connections, "connections_per_origin"), (others, "connections_in_all")):
        waiting = asyncio.ensure_future(pool.connect())
        await clock.advance(WAIT_SECONDS)
        with pytest.raises(NotConnected, match=words):
            await waiting


@pytest.mark.parametrize("is_idle_already", [True, False])
async def test_a_full_pool_closes_an_idle_connection_for_a_new_one(
    is_idle_already: bool, small: ConnectionPool, server: RawServer
) -> None:
    connections, others = small.of(origin(server.url)), small.of(origin(server.url), owner="another")
    idle, _ = await connections.connect(), await others.connect()
    await others.connect()
    if is_idle_already:
        connections.put_back(idle)
    third = small.of(origin(server.url), owner="a third")
    waiting = asyncio.ensure_future(third.connect())
    await settle()
    if not is_idle_already:
        assert not waiting.done()
        connections.put_back(idle)
    assert await asyncio.wait_for(waiting, 5) is not idle
    assert not idle.is_open


@pytest.mark.parametrize("comes_from", ["an idle one", "one that is gone"])
async def test_a_place_offered_to_a_canceled_waiter_goes_to_the_next_one(
    comes_from: str, small: ConnectionPool, server: RawServer
) -> None:
    connections = small.of(origin(server.url))
    first, _ = await connections.connect(), await connections.connect()
    waiting = asyncio.ensure_future(connections.connect())
    await settle()
    if comes_from == "an idle one":
        connections.put_back(first)
    else:
        connections.forget(first)
    waiting.cancel()
    await settle()
    assert waiting.cancelled()
    assert small.slots.occupied == (2 if comes_from == "an idle one" else 1)
    if comes_from == "an idle one":
        assert connections.take() is first
    else:
        first.abort()


async def test_failed_connections_occupy_no_place_in_the_pool(small: ConnectionPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for _ in range(5):
        with pytest.raises(NotConnected, match="Connection refused"):
            await small.of(HttpOrigin(False, "127.0.0.1", port)).connect()
    assert small.slots.occupied == 0


async def test_the_pool_uses_at_most_half_of_the_file_descriptors(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, server: RawServer
) -> None:
    monkeypatch.setattr(pool_module, "most_descriptors", lambda: 8)
    async with ConnectionPool.running(clock, UNTRUSTING, per_origin=100, in_all=100) as pool:
        opened = [await pool.of(origin(server.url), owner=owner).connect() for owner in "aaab"]
        assert len(opened) == 4
        waiting = asyncio.ensure_future(pool.of(origin(server.url), owner="c").connect())
        await clock.advance(WAIT_SECONDS)
        with pytest.raises(NotConnected, match="4 connections to servers"):
            await waiting


# TLS.


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    return self_signed(tmp_path)


async def test_a_server_with_a_trusted_certificate_is_reached_under_its_name(
    certificate: Path, clock: FakeClock
) -> None:
    named: list[str | None] = []
    context = server_context(certificate)
    context.sni_callback = lambda _sock, name, _context: named.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with raw_server(context) as server, ConnectionPool.running(clock, trusting) as pool:
        connections = pool.of(HttpOrigin(True, "localhost", server.port))
        for _ in range(3):
            connection = connections.take() or await connections.connect()
            asking = sent(connection)
            peer = server.accepted[0] if server.accepted and not server.has_new_peer else await server.peer()
            await peer.request()
            peer.answer(b"x" * 100_000)
            assert await (await asking).read(1 << 20) == b"x" * 100_000
        assert len(server.accepted) == 1
        assert named == ["localhost"]


async def test_a_server_with_an_untrusted_certificate_cannot_be_reached(
    certificate: Path, pool: ConnectionPool
) -> None:
    async with raw_server(server_context(certificate)) as server:
        with pytest.raises(NotConnected, match=r"its certificate is not valid: self.signed certificate.*SSL_CERT_FILE"):
            await pool.of(origin(server.url)).connect()


async def test_a_server_whose_certificate_has_another_name_cannot_be_reached(tmp_path: Path, clock: FakeClock) -> None:
    certificate = self_signed(tmp_path, names=("elsewhere",), address="127.0.0.9")
    trusting = ssl.create_default_context(cafile=str(certificate))
    async with raw_server(server_context(certificate)) as server, ConnectionPool.running(clock, trusting) as pool:
        for host in ("localhost", "127.0.0.1"):
            with pytest.raises(NotConnected, match=r"its certificate is not valid: .*match") as failure:
                await pool.of(HttpOrigin(True, host, server.port)).connect()
            assert "SSL_CERT_FILE" not in str(failure.value)


async def test_a_server_without_tls_cannot_be_reached_over_https(pool: ConnectionPool, server: RawServer) -> None:
    connecting = asyncio.ensure_future(pool.of(HttpOrigin(True, "127.0.0.1", server.port)).connect())
    peer = await server.peer()
    peer.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
    with pytest.raises(NotConnected):
        await connecting


async def test_a_server_that_closes_the_connection_during_the_tls_handshake_cannot_be_reached(
    pool: ConnectionPool, server: RawServer
) -> None:
    connecting = asyncio.ensure_future(pool.of(HttpOrigin(True, "127.0.0.1", server.port)).connect())
    (await server.peer()).close()
    with pytest.raises(NotConnected) as failure:
        await connecting
    assert str(failure.value)


async def test_a_unix_socket_is_reached_by_its_path(pool: ConnectionPool, tmp_path: Path) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello")
        await reader.read()
        writer.close()

    path = str(tmp_path / "socket")
    async with await asyncio.start_unix_server(serve, path):
        connections = pool.of(HttpOrigin.of_socket(path))
        connection = await connections.connect()
        response = await sent(connection)
        assert await response.read(100) == b"hello"
        assert connections.take() is connection
        connection.abort()
    with pytest.raises(NotConnected, match=r"No such file|Connection refused"):
        await connections.connect()


async def test_without_tls_support_an_https_origin_cannot_be_reached(clock: FakeClock) -> None:
    async with ConnectionPool.running(clock, None) as running:
        with pytest.raises(NotConnected, match="TLS"):
            await running.of(HttpOrigin(True, "127.0.0.1", 1)).connect()


async def test_the_connect_timeout_is_configurable(clock: FakeClock) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        with socket.create_connection(full.getsockname()):  # the one place that there is
            async with ConnectionPool.running(clock, None, connect_seconds=2) as running:
                connections = running.of(HttpOrigin(False, "127.0.0.1", full.getsockname()[1]))
                connecting = asyncio.ensure_future(connections.connect())
                await settle()
                await clock.advance(2)
                with pytest.raises(NotConnected, match="no connection within 2 s"):
                    await connecting

"""Connections through a proxy in the test: the requests that it receives, and the effects of its responses."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from emceepee.backends.http1 import connector as connector_module
from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.pool import CONNECT_SECONDS, ConnectionPool
from emceepee.backends.http1.proxies import ProxyRules
from emceepee.backends.http1.resolver import Resolver, SocketAddress
from emceepee.backends.http1.response import HttpResponse
from support.backends.raw_server import Peer, RawServer, raw_server
from support.fakes.clock import FakeClock
from support.system.certificates import Authority, server_context
from support.system.forward_proxies import USER, ForwardProxy, forward_proxy
from support.waiting import eventually

HOST = "tracker.test"  # which no resolver knows: only a proxy leads there
BOUND = 10.0
PASSWORD = "s3cret:w@rd/"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def proxy() -> AsyncIterator[ForwardProxy]:
    async with forward_proxy() as running:
        yield running


@pytest.fixture
async def secure(authority: Authority) -> AsyncIterator[RawServer]:
    async with raw_server(server_context(authority.issue(HOST))) as running:
        yield running


@asynccontextmanager
async def pool_through(
    proxy: str, authority: Authority, clock: FakeClock | None = None
) -> AsyncIterator[ConnectionPool]:
    rules = ProxyRules.of({"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy})
    tls = ssl.create_default_context(cafile=authority.file)
    async with ConnectionPool.running(clock or FakeClock(), tls, proxies=rules) as pool:
        yield pool
    assert (pool.open, pool.slots.occupied) == (set(), 0)


def client_of(pool: ConnectionPool, server: RawServer, *, is_public: bool = False) -> HttpClient:
    scheme = server.url.partition(":")[0]
    return HttpClient(pool, f"{scheme}://{HOST}:{server.port}/mcp", {"x-own": "1"}, is_public=is_public)


def getting(client: HttpClient) -> "asyncio.Task[HttpResponse]":
    return asyncio.ensure_future(client.request("GET"))


async def body_of(asking: "asyncio.Task[HttpResponse]") -> bytes:
    async with asyncio.timeout(BOUND):
        return await (await asking).read(1 << 20)


async def failure_of(client: HttpClient) -> str:
    async with asyncio.timeout(BOUND):
        with pytest.raises(NotConnected) as failure:
            await client.request("GET")
    return str(failure.value)


async def answered(
    server: RawServer, asking: "asyncio.Task[HttpResponse]", peer: Peer | None = None, *headers: str
) -> tuple[str, Peer]:
    peer = peer or await server.peer()
    request = await peer.request()
    peer.answer(b"hello", *headers)
    assert await body_of(asking) == b"hello"
    return request.line, peer


async def test_https_uses_a_proxy_tunnel_with_its_own_server_name_and_certificate(
    proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    async with pool_through(proxy.address, authority) as pool:
        client = client_of(pool, secure)
        line, peer = await answered(secure, getting(client))
        assert line == "GET /mcp HTTP/1.1"
        line, _ = await answered(secure, getting(client), peer)  # on the same connection
    assert proxy.asked == [f"CONNECT {HOST}:{secure.port} HTTP/1.1\r\nhost: {HOST}:{secure.port}\r\n\r\n"]
    assert len(secure.accepted) == 1


async def test_an_http_request_through_a_proxy_contains_its_full_url(proxy: ForwardProxy, authority: Authority) -> None:
    async with raw_server() as server, pool_through(proxy.address, authority) as pool:
        client = client_of(pool, server)
        asking = getting(client)
        peer = await server.peer()
        request = await peer.request()
        assert request.line == f"GET http://{HOST}:{server.port}/mcp HTTP/1.1"
        assert (request.all("host"), request.all("x-own")) == ([f"{HOST}:{server.port}"], ["1"])
        peer.answer(b"hello", "connection: Keep-Alive")
        assert await body_of(asking) == b"hello"
        await answered(server, getting(client.at("/other")), peer)  # on the same connection
        assert len(proxy.asked) == len(server.accepted) == 1


async def test_a_connection_to_a_forwarding_proxy_is_reused_only_if_the_proxy_announces_keep_alive(
    proxy: ForwardProxy, authority: Authority
) -> None:
    """Some proxies close after each response without notice. A call in flight would then be lost."""
    async with raw_server() as server, pool_through(proxy.address, authority) as pool:
        client = client_of(pool, server)
        for _ in range(2):
            await answered(server, getting(client))
        assert len(proxy.asked) == len(server.accepted) == 2


async def test_a_stream_through_a_proxy_arrives_as_it_is_written(
    proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    async with pool_through(proxy.address, authority) as pool:
        asking = getting(client_of(pool, secure))
        peer = await secure.peer()
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        response = await asking
        for number in range(3):
            peer.send(b"1\r\n%d\r\n" % number)
            async with asyncio.timeout(BOUND):
                assert await response.readany() == b"%d" % number
        peer.send(b"100000\r\n" + bytes(1 << 20) + b"\r\n0\r\n\r\n")
        async with asyncio.timeout(BOUND):
            assert await response.read(1 << 21) == bytes(1 << 20)


@pytest.mark.parametrize("is_tls", [True, False])
async def test_a_proxy_that_requires_a_password_receives_it(
    is_tls: bool, secure: RawServer, authority: Authority
) -> None:
    login = f"{USER}:{quote(PASSWORD, safe='')}@"
    async with (
        forward_proxy(password=PASSWORD) as proxy,
        raw_server() as plain,
        pool_through(f"http://{login}{proxy.address}", authority) as pool,
    ):
        server = secure if is_tls else plain
        await answered(server, getting(client_of(pool, server)))
        if is_tls:  # and the server behind it never does
            asking = getting(client_of(pool, server))
            assert (await server.accepted[0].request()).all("proxy-authorization") == []
            server.accepted[0].answer()
            await asking


@pytest.mark.parametrize("is_tls", [True, False])
@pytest.mark.parametrize(("login", "said"), [("", "wants a password"), ("ada:wr0ng@", "does not accept the password")])
async def test_with_a_wrong_password_the_error_names_the_proxy(
    is_tls: bool, login: str, said: str, secure: RawServer, authority: Authority
) -> None:
    async with (
        forward_proxy(password=PASSWORD) as proxy,
        raw_server() as plain,
        pool_through(f"http://{login}{proxy.address}", authority) as pool,
    ):
        words = await failure_of(client_of(pool, secure if is_tls else plain))
        assert f"the proxy {proxy.address} {said}" in words
        assert "wr0ng" not in words
        assert secure.accepted == plain.accepted == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 403 Filtered\r\n\r\n", "does not allow connections to tracker.test"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", "cannot connect to tracker.test"),
        (b"220 mail.example ESMTP\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "not HTTP"),
        (b"x" * 100_000, "not HTTP"),
        (b"", "ended the connection without an answer"),
    ],
)
async def test_an_error_names_the_proxy_that_refuses_or_sends_an_invalid_response(
    answer: bytes, said: str, proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    proxy.answer = answer
    async with pool_through(proxy.address, authority) as pool:
        words = await failure_of(client_of(pool, secure))
    assert f"the proxy {proxy.address}" in words
    assert said in words


@pytest.mark.parametrize("is_tls", [True, False])
async def test_an_error_names_the_proxy_that_is_unreachable(
    is_tls: bool, secure: RawServer, authority: Authority
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    async with raw_server() as plain, pool_through(f"http://u:s3cret@{address}", authority) as pool:
        words = await failure_of(client_of(pool, secure if is_tls else plain))
    variable = "HTTPS_PROXY" if is_tls else "HTTP_PROXY"
    assert words == f"the proxy {address}, which {variable} names, cannot be reached: Connection refused"


async def test_a_silent_proxy_times_out(
    proxy: ForwardProxy, secure: RawServer, authority: Authority, clock: FakeClock
) -> None:
    proxy.is_silent = True
    async with pool_through(proxy.address, authority, clock) as pool:
        asking = getting(client_of(pool, secure))
        await eventually(lambda: bool(proxy.asked))
        await clock.advance(CONNECT_SECONDS)
        with pytest.raises(NotConnected, match=f"no connection through the proxy {proxy.address} within 10 s"):
            await asking


async def test_a_connection_to_a_proxy_can_use_tls(secure: RawServer, authority: Authority) -> None:
    certificate = server_context(authority.issue("localhost"))
    async with (
        forward_proxy(tls=certificate) as proxy,
        raw_server() as plain,
        pool_through(f"https://localhost:{proxy.port}", authority) as pool,
    ):
        for server in (secure, plain):
            client = client_of(pool, server)
            _, peer = await answered(server, getting(client), None, "proxy-connection: keep-alive")
            await answered(server, getting(client), peer)
        assert [line.partition(" ")[0] for line in proxy.lines] == ["CONNECT", "GET"]


async def test_the_error_for_an_untrusted_certificate_behind_a_proxy_mentions_that_the_proxy_may_have_issued_it(
    proxy: ForwardProxy, authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path / "other", "somebody else")
    async with (
        raw_server(server_context(stranger.issue(HOST))) as server,
        pool_through(proxy.address, authority) as pool,
    ):
        words = await failure_of(client_of(pool, server))
    assert words.startswith("its certificate is not valid: unable to get local issuer certificate")
    assert f"The proxy {proxy.address} may have put a certificate of its own there" in words


async def test_a_server_that_ends_tls_in_a_tunnel_cannot_be_reached(
    proxy: ForwardProxy, server: RawServer, authority: Authority
) -> None:
    async with pool_through(proxy.address, authority) as pool:
        asking = getting(HttpClient(pool, f"https://{HOST}:{server.port}/mcp", {}))
        (await server.peer()).close()
        with pytest.raises(NotConnected):
            await asking


# Servers that callers from other machines added.


class Names:
    """Looks names up as the test says."""

    def __init__(self, **addresses: list[str]) -> None:
        self._addresses = {name.replace("_", "."): found for name, found in addresses.items()}

    async def __call__(self, host: str, port: int) -> list[SocketAddress]:
        return [(socket.AF_INET, (address, port)) for address in self._addresses[host]]


@pytest.mark.parametrize("is_tls", [True, False])
async def test_with_address_checks_the_proxy_gets_the_checked_address_and_the_server_its_name(
    is_tls: bool, proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    async with raw_server() as plain, pool_through(proxy.address, authority) as pool:
        pool.connector.resolver = Resolver(pool.clock, Names(tracker_test=["10.0.0.1", "8.8.8.8"]))
        server = secure if is_tls else plain
        asking = getting(client_of(pool, server, is_public=True))
        peer = await server.peer()
        request = await peer.request()
        assert (request.line, request.all("host")) == ("GET /mcp HTTP/1.1", [f"{HOST}:{server.port}"])
        peer.answer()
        await asking
        assert proxy.lines == [f"CONNECT 8.8.8.8:{server.port} HTTP/1.1"]


async def test_the_proxy_is_not_asked_for_an_address_in_a_private_network(
    proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    async with pool_through(proxy.address, authority) as pool:
        pool.connector.resolver = Resolver(pool.clock, Names(tracker_test=["10.0.0.1", "127.0.0.1"]))
        assert "private network" in await failure_of(client_of(pool, secure, is_public=True))
        assert "private network" in await failure_of(
            HttpClient(pool, "http://127.0.0.1:1/", {}, is_public=True)  # which goes through no proxy
        )
    assert proxy.asked == []


async def test_unreachable_addresses_of_a_host_are_skipped_behind_a_proxy(
    proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    proxy.answer = b"HTTP/1.1 502 Bad Gateway\r\n\r\n"
    addresses = ["8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9"]
    async with pool_through(proxy.address, authority) as pool:
        pool.connector.resolver = Resolver(pool.clock, Names(tracker_test=addresses))
        assert "cannot connect to 8.8.8.8" in await failure_of(client_of(pool, secure, is_public=True))
        assert len(proxy.asked) == connector_module.MOST_TRIED
        proxy.asked.clear()
        proxy.answer = b"HTTP/1.1 403 No\r\n\r\n"
        await failure_of(client_of(pool, secure, is_public=True))
        assert len(proxy.asked) == 1


# Leaving in the middle.


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_connecting_through_a_proxy_can_be_canceled_at_any_step_without_a_leak(
    turns: int, proxy: ForwardProxy, secure: RawServer, authority: Authority
) -> None:
    async with pool_through(proxy.address, authority) as pool:
        connecting = getting(client_of(pool, secure))
        for _ in range(turns):
            await asyncio.sleep(0)
        connecting.cancel()
        with suppress(asyncio.CancelledError):
            (await connecting).close()
        await eventually(lambda: not pool.open)

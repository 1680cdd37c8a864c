"""The addresses that a login may connect to. A table resolves the names, and nothing leaves this machine."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from emceepee.backends.http1.connector import Connector
from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.proxies import DIRECT, ProxyRules
from emceepee.backends.http1.resolver import Resolver, SocketAddress
from emceepee.backends.http1.tls_contexts import TlsContexts
from emceepee.backends.oauth.flow import ExchangeAnswered, ExchangeUnanswered
from emceepee.backends.oauth.login_reach import LEADS_INSIDE, LoginReach
from emceepee.backends.oauth.oauth_messages import get, post_json
from emceepee.backends.oauth.oauth_sender import OAuthSender
from emceepee.clock import SystemClock
from emceepee.guard.policy import is_listed

PUBLIC, PRIVATE, HERE = "https://public.example/mcp", "https://inner.example/mcp", "http://127.0.0.1:8000/mcp"
ADDRESSES = {"public.example": "8.8.8.8", "login.example": "1.1.1.1", "inner.example": "10.0.0.1"}
SOCKET = "unix:///run/docker.sock:/v1.43/containers/create"


async def look_up(host: str, port: int) -> list[SocketAddress]:
    if host not in ADDRESSES:
        raise socket.gaierror("no such host")
    return [(socket.AF_INET, (ADDRESSES[host], port))]


@pytest.fixture
async def connector() -> AsyncIterator[Connector]:
    resolver = Resolver(SystemClock(), look_up)
    yield Connector(resolver, None, TlsContexts(), DIRECT)
    await resolver.close()


@pytest.mark.parametrize("reach", [LoginReach(server_url=HERE), LoginReach(server_url=PUBLIC, issuer=SOCKET)])
async def test_a_login_does_not_connect_to_a_unix_socket(connector: Connector, reach: LoginReach) -> None:
    with pytest.raises(NotConnected, match="http and https"):
        await reach.needs_public_address(SOCKET, connector)


@pytest.mark.parametrize(
    ("server", "url", "expected"),
    [
        (PUBLIC, "https://login.example/token", True),
        (PUBLIC, "https://127.0.0.1:2376/containers/create", True),
        (PUBLIC, "https://public.example/token", False),
        (PRIVATE, "https://127.0.0.1/token", False),
        (HERE, "http://127.0.0.1:9000/token", False),
    ],
)
async def test_a_login_at_a_public_server_connects_only_to_public_addresses(
    connector: Connector, server: str, url: str, expected: bool
) -> None:
    assert await LoginReach(server_url=server).needs_public_address(url, connector) is expected


async def test_a_server_whose_name_does_not_resolve_counts_as_public(connector: Connector) -> None:
    assert await LoginReach(server_url="https://gone.example/mcp").needs_public_address(
        "https://login.example", connector
    )


async def test_a_configured_issuer_or_identity_provider_may_be_private(connector: Connector) -> None:
    url = "https://inner.example/token"
    assert await LoginReach(server_url=PUBLIC).needs_public_address(url, connector)
    assert not await LoginReach(server_url=PUBLIC, issuer="https://inner.example").needs_public_address(url, connector)
    assert not await LoginReach(server_url=PUBLIC, trusted=(url,)).needs_public_address(url, connector)


async def test_behind_a_proxy_the_reach_of_the_proxy_decides_which_addresses_a_login_uses() -> None:
    resolver = Resolver(SystemClock(), look_up)
    proxies = ProxyRules.of({"https_proxy": "http://proxy.example:3128", "no_proxy": "127.0.0.1"})
    connector = Connector(resolver, None, TlsContexts(), proxies)
    reach = LoginReach(server_url=PUBLIC)
    assert not await reach.needs_public_address("https://inner.example/token", connector)
    assert await reach.needs_public_address("https://127.0.0.1/token", connector)  # which goes through no proxy
    await resolver.close()


def listing(*patterns: str) -> Callable[[str], bool]:
    return lambda url: is_listed(url, patterns)


@pytest.mark.parametrize(
    ("url", "is_refused", "expected"),
    [
        ("https://login.example/token", False, True),
        ("https://127.0.0.1/token", False, True),  # so the connection is refused
        ("http://login.example/token", True, False),
        ("http://127.0.0.1:9000/token", True, False),
        (SOCKET, True, False),
        ("https://inner.example/mcp/token", False, False),  # the server's own origin
        ("http://10.0.0.7/token", False, False),  # listed
    ],
)
async def test_a_login_at_a_guarded_server_connects_to_its_own_origin_to_listed_and_to_public_addresses(
    connector: Connector, url: str, is_refused: bool, expected: bool
) -> None:
    """With --allow-url, the server's own address may be private. Its authorization servers must be listed for that."""
    reach = LoginReach(
        server_url=PRIVATE,
        is_guarded=True,
        issuer="https://inner.example",
        trusted=(url,),
        is_listed=listing("https://inner.example", "http://10.0.0.*"),
    )
    if is_refused:
        with pytest.raises(NotConnected):
            await reach.needs_public_address(url, connector)
    else:
        assert await reach.needs_public_address(url, connector) is expected


async def test_a_login_sends_nothing_to_a_refused_address(tmp_path: Path) -> None:
    """The error does not depend on whether a server listens there, so a caller cannot scan the network."""
    connections = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    at_socket = await asyncio.start_unix_server(count, tmp_path / "s")
    on_loopback = await asyncio.start_server(count, "127.0.0.1", 0)
    port = on_loopback.sockets[0].getsockname()[1]
    async with ConnectionPool.running(SystemClock(), None) as pool, at_socket, on_loopback:
        sender = OAuthSender(
            pool=pool, clock=SystemClock(), reach=LoginReach(server_url="http://10.0.0.1/mcp", is_guarded=True)
        )
        for place in (f"unix://{tmp_path}/s:/x", f"http://127.0.0.1:{port}/x", "http://127.0.0.1:1/x"):
            for request in (get(place), post_json(place, b"{}")):
                assert isinstance(await sender.send(request), ExchangeUnanswered)
        public = OAuthSender(pool=pool, clock=SystemClock(), reach=LoginReach(server_url="https://8.8.8.8/mcp"))
        assert await public.send(get(f"http://127.0.0.1:{port}/x")) == ExchangeUnanswered(LEADS_INSIDE)
    assert connections == 0


async def test_a_redirect_is_returned_as_an_answer_and_not_followed() -> None:
    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:1/token\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/token"
    async with ConnectionPool.running(SystemClock(), None) as pool, server:
        sender = OAuthSender(pool=pool, clock=SystemClock(), reach=LoginReach(server_url=url))
        answered = await sender.send(post_json(url, b"{}"))
    assert isinstance(answered, ExchangeAnswered)
    assert answered.answer.status == 307

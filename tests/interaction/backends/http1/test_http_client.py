"""The bytes and effects of HTTP requests to a raw server in the test."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure, NoResponse, NotConnected
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.response import HttpResponse
from support.backends.raw_server import RawServer, raw_server
from support.fakes.clock import FakeClock, settle
from support.waiting import eventually

TLS = ssl.create_default_context()


@pytest.fixture
async def pool() -> AsyncIterator[ConnectionPool]:
    async with ConnectionPool.running(FakeClock(), TLS) as running:
        yield running
    assert running.open == set()


@pytest.fixture
def client(pool: ConnectionPool, server: RawServer) -> HttpClient:
    return HttpClient(pool, server.url, {"Content-Type": "application/json", "User-Agent": "test"})


def post(
    client: HttpClient, body: bytes = b"{}", headers: dict[str, str] | None = None
) -> "asyncio.Task[HttpResponse]":
    return asyncio.ensure_future(client.request("POST", body, headers))


async def exchanged(client: HttpClient, server: RawServer, *answer_headers: str) -> None:
    """One request and its answer, on a new or an idle connection."""
    asking = post(client)
    peer = server.accepted[-1] if client._connections._idle else await server.peer()
    await peer.request()
    peer.answer(b"{}", *answer_headers)
    await asking


# Requests.


async def test_an_http_request_contains_only_the_required_headers(client: HttpClient, server: RawServer) -> None:
    asking = post(client, b'{"a":1}', {"mcp-method": "tools/call"})
    peer = await server.peer()
    request = await peer.request()
    assert request.line == "POST /mcp HTTP/1.1"
    assert request.headers == [
        ("host", f"127.0.0.1:{server.port}"),
        ("accept-encoding", "identity"),
        ("content-type", "application/json"),
        ("user-agent", "test"),
        ("mcp-method", "tools/call"),
        ("content-length", "7"),
    ]
    assert request.body == b'{"a":1}'
    peer.answer(b"{}")
    assert (await asking).status == 200


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_a_request_without_a_body_has_no_content_length(
    method: str, client: HttpClient, server: RawServer
) -> None:
    asking = asyncio.ensure_future(client.request(method))
    peer = await server.peer()
    request = await peer.request()
    assert (request.line, request.all("content-length")) == (f"{method} /mcp HTTP/1.1", [])
    peer.answer()
    await asking


async def test_a_header_of_one_request_replaces_the_default_header(client: HttpClient, server: RawServer) -> None:
    for given in ("text/plain", None):
        asking = post(client, headers={"content-type": given} if given else None)
        peer = server.accepted[-1] if server.accepted else await server.peer()
        request = await peer.request()
        assert request.all("content-type") == [given or "application/json"]
        assert request.all("user-agent") == ["test"]
        peer.answer()
        await asking


async def test_a_default_header_can_be_set_changed_and_removed(client: HttpClient, server: RawServer) -> None:
    for value in ("one", "two", None):
        client.set_header("mcp-session-id", value)
        asking = post(client)
        peer = server.accepted[-1] if server.accepted else await server.peer()
        assert (await peer.request()).all("mcp-session-id") == ([value] if value else [])
        peer.answer()
        await asking


async def test_a_configuration_cannot_set_framing_headers(pool: ConnectionPool, server: RawServer) -> None:
    client = HttpClient(pool, server.url, {"Content-Length": "99", "Transfer-Encoding": "chunked", "Host": "own"})
    asking = post(client)
    peer = await server.peer()
    request = await peer.request()
    assert (request.all("content-length"), request.all("transfer-encoding")) == (["2"], [])
    assert request.all("host") == ["own"]
    peer.answer()
    await asking


async def test_credentials_in_the_address_are_sent_unless_a_configured_header_replaces_them(
    pool: ConnectionPool, server: RawServer
) -> None:
    url = server.url.replace("http://", "http://user:pass@")
    for headers, sent in (({}, "Basic dXNlcjpwYXNz"), ({"Authorization": "Bearer x"}, "Bearer x")):
        asking = post(HttpClient(pool, url, headers))
        peer = server.accepted[-1] if server.accepted else await server.peer()
        assert (await peer.request()).all("authorization") == [sent]
        peer.answer()
        await asking


async def test_a_header_that_http_cannot_encode_is_refused_before_anything_is_sent(
    client: HttpClient, pool: ConnectionPool, server: RawServer
) -> None:
    with pytest.raises(ValueError, match="the header x has"):
        HttpClient(pool, server.url, {"x": "a\r\nb: c"})
    with pytest.raises(ValueError, match="the header x has"):
        client.set_header("x", "€")
    with pytest.raises(ValueError, match="the header x has"):
        await post(client, headers={"x": "a\n"})
    assert server.accepted == []


async def test_a_large_request_body_is_sent_completely(client: HttpClient, server: RawServer) -> None:
    asking = post(client, bytes(8 << 20))
    peer = await server.peer()
    assert (await peer.request()).body == bytes(8 << 20)
    peer.answer()
    await asking


# Which connection.


async def test_the_http_client_reuses_connections(client: HttpClient, server: RawServer) -> None:
    for _ in range(5):
        await exchanged(client, server)
    assert len(server.accepted) == 1


async def test_a_stream_that_was_read_to_its_end_releases_its_connection(client: HttpClient, server: RawServer) -> None:
    asking = post(client)
    peer = await server.peer()
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
    response = await asking
    assert await response.readany() == b"hello"
    peer.send(b"0\r\n\r\n")
    assert await response.readany() == b""
    await exchanged(client, server)
    assert len(server.accepted) == 1


async def test_an_unread_stream_does_not_release_its_connection(client: HttpClient, server: RawServer) -> None:
    asking = post(client)
    peer = await server.peer()
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    (await asking).close()
    await peer.gone()
    await exchanged(client, server)
    assert len(server.accepted) == 2


async def test_a_post_on_a_connection_that_was_already_closed_is_not_sent_twice(
    client: HttpClient, server: RawServer
) -> None:
    await exchanged(client, server)
    peer = server.accepted[0]
    asking = post(client)
    await peer.request()
    peer.close()
    with pytest.raises(NoResponse, match="ended before an answer"):
        await asking
    assert len(server.accepted) == 1


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_an_idempotent_request_is_sent_again_if_the_idle_connection_was_closed(
    method: str, client: HttpClient, server: RawServer
) -> None:
    await exchanged(client, server)
    asking = asyncio.ensure_future(client.request(method))
    await server.accepted[0].request()
    server.accepted[0].close()
    fresh = await server.peer()
    assert (await fresh.request()).line == f"{method} /mcp HTTP/1.1"
    fresh.answer()
    assert (await asking).status == 200


async def test_a_request_on_a_new_connection_is_not_sent_again(client: HttpClient, server: RawServer) -> None:
    asking = asyncio.ensure_future(client.request("GET"))
    peer = await server.peer()
    await peer.request()
    peer.close()
    with pytest.raises(NoResponse):
        await asking
    assert len(server.accepted) == 1


async def test_a_connection_that_is_known_to_be_closed_is_not_reused(
    client: HttpClient, pool: ConnectionPool, server: RawServer
) -> None:
    await exchanged(client, server)
    server.accepted[0].close()
    await eventually(lambda: not pool.open)
    await exchanged(client, server)
    assert len(server.accepted) == 2


async def test_a_refused_connection_is_reported_as_nothing_sent(pool: ConnectionPool) -> None:
    async with raw_server() as server:
        url = server.url
    with pytest.raises(NotConnected):
        await post(HttpClient(pool, url, {}))


async def test_a_connection_reset_during_an_answer_is_reported_as_such(client: HttpClient, server: RawServer) -> None:
    asking = post(client)
    peer = await server.peer()
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
    response = await asking
    assert await response.readany() == b"half"
    peer.reset()
    with pytest.raises(HttpFailure, match="during the answer"):
        await response.readany()


@pytest.mark.parametrize(
    "heard", [None, b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe"]
)
async def test_a_canceled_request_closes_its_connection(
    heard: bytes | None, client: HttpClient, pool: ConnectionPool, server: RawServer
) -> None:
    async def whole() -> bytes:
        return await (await client.request("POST", b"{}")).read(100)

    asking = asyncio.ensure_future(whole())
    if heard is not None:
        peer = await server.peer()
        await peer.request()
        peer.send(heard)
        await peer.writer.drain()
        await settle()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await eventually(lambda: not pool.open)
    await exchanged(client, server)


# Another address.


async def test_another_address_of_the_same_origin_gets_the_same_headers_and_cookies(
    client: HttpClient, server: RawServer
) -> None:
    client.set_header("mcp-session-id", "one")
    moved = client.at(server.url.replace("/mcp", "/moved?x=1"))
    await exchanged(moved, server, "set-cookie: a=1; path=/")
    asking = post(moved)
    request = await server.accepted[0].request()
    assert request.line == "POST /moved?x=1 HTTP/1.1"
    assert (request.all("mcp-session-id"), request.all("cookie")) == (["one"], ["a=1"])
    server.accepted[0].answer()
    await asking
    asking = post(client)
    assert (await server.accepted[0].request()).all("cookie") == ["a=1"]
    server.accepted[0].answer()
    await asking


@pytest.mark.parametrize("url", ["https://127.0.0.1:{port}/", "http://127.0.0.1:1/", "http://localhost:{port}/"])
async def test_the_http_client_refuses_another_origin(url: str, client: HttpClient, server: RawServer) -> None:
    with pytest.raises(ValueError, match="another origin"):
        client.at(url.format(port=server.port))


# Cookies.


async def test_cookies_are_returned_only_to_their_server_and_not_shared_with_other_links(
    client: HttpClient, pool: ConnectionPool, server: RawServer
) -> None:
    await exchanged(client, server, "set-cookie: a=1; Path=/", "set-cookie: b=2; Path=/other")
    peer = server.accepted[0]
    for asker, cookies in ((client, ["a=1"]), (HttpClient(pool, server.url, {}), [])):
        asking = post(asker)
        assert (await peer.request()).all("cookie") == cookies
        peer.answer()
        await asking
    assert len(server.accepted) == 1


async def test_a_configured_cookie_is_sent_with_the_cookies_of_the_server(
    pool: ConnectionPool, server: RawServer
) -> None:
    client = HttpClient(pool, server.url, {"Cookie": "own=1"})
    await exchanged(client, server, "set-cookie: a=1")
    asking = post(client)
    assert (await server.accepted[0].request()).all("cookie") == ["own=1; a=1"]
    server.accepted[0].answer(b"", "set-cookie: a=; max-age=0")
    await asking
    asking = post(client)
    assert (await server.accepted[0].request()).all("cookie") == ["own=1"]
    server.accepted[0].answer()
    await asking

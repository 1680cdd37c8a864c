"""Redirects of a backend, byte by byte on the wire."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.dialer import Dialer
from emceepee.backends.http.redirects import MOST_REDIRECTS
from emceepee.backends.link import LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from support.backends.raw_links import HELLO, JSON, STREAM, a_dialer, dialing, event, failure_of, result_for
from support.backends.raw_server import Peer, RawServer, raw_server
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock
from support.waiting import eventually

HEADERS = {"authorization": "Bearer s3cret"}


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        yield running


@pytest.fixture
async def dialer() -> AsyncIterator[Dialer]:
    async with a_dialer(FakeClock()) as running:
        yield running


def redirect(peer: Peer, location: str | None, status: int = 307) -> None:
    peer.answer(b"", *([f"location: {location}"] if location is not None else []), status=f"{status} Elsewhere")


async def accept(peer: Peer, path: str) -> None:
    """Complete the handshake at an address to which it was redirected, and offer no stream."""
    request = await peer.request()
    assert (request.line, request.all("authorization")) == (f"POST {path} HTTP/1.1", ["Bearer s3cret"])
    peer.answer(result_for(request, **HELLO), JSON)
    assert (await peer.request()).line == f"POST {path} HTTP/1.1"  # it is remembered
    peer.answer(status="202 Accepted")


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("location", ["/mcp/", "{origin}/mcp/", "mcp/../mcp/"])
async def test_a_redirect_within_the_origin_is_followed_with_headers_and_body(
    status: int, location: str, server: RawServer, dialer: Dialer
) -> None:
    opening = dialing(dialer, server.url, headers=HEADERS)
    peer = await server.peer()
    await peer.request()
    redirect(peer, location.format(origin=server.url.removesuffix("/mcp")), status)
    await accept(peer, "/mcp/")
    link = await opening
    assert (await peer.request()).line == "GET /mcp/ HTTP/1.1"
    peer.answer(status="405 No")
    await link.close()


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://elsewhere.example/mcp?key=s3cret", "https://elsewhere.example/mcp?key=***"),
        ("//elsewhere.example/mcp", "http://elsewhere.example/mcp"),
        ("http://u:s3cret@elsewhere.example/", "http://elsewhere.example/"),
        ("unix:///run/docker.sock:/mcp", "unix:///run/docker.sock:/mcp"),
    ],
)
async def test_a_redirect_to_another_origin_is_an_error_that_names_it_and_sends_nothing_there(
    location: str, shown: str, server: RawServer, dialer: Dialer
) -> None:
    opening = dialing(dialer, server.url, headers=HEADERS)
    peer = await server.peer()
    await peer.request()
    redirect(peer, location)
    error = await failure_of(opening)
    said = "and is not followed there; if that is the server, use that address as its url"
    assert (error.failure, error.status) == (LinkFailure.REFUSED, 307)
    assert str(error) == f"HTTP 307 redirects to {shown}, {said}"


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_change_the_method_is_not_followed(
    status: int, server: RawServer, dialer: Dialer
) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    await peer.request()
    redirect(peer, "/new", status)
    origin = server.url.removesuffix("/mcp")
    assert f"HTTP {status} redirects to {origin}/new, and is not followed there; if that is the server, use" in str(
        await failure_of(opening)
    )


@pytest.mark.parametrize("location", [None, "", "http://[oh"])
async def test_a_redirect_without_a_usable_target_is_an_error_that_names_a_remedy(
    location: str | None, server: RawServer, dialer: Dialer
) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    await peer.request()
    redirect(peer, location)
    assert "redirects without an address; ask the server's operator" in str(await failure_of(opening))


async def test_redirects_are_followed_only_a_few_times(server: RawServer, dialer: Dialer) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    for number in range(MOST_REDIRECTS + 1):
        assert (await peer.request()).line == f"POST /{number or 'mcp'} HTTP/1.1"
        redirect(peer, f"/{number + 1}")
    assert f"redirects too often, most recently to http://127.0.0.1:{server.port}/4" in str(await failure_of(opening))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_push_stream_follows_a_redirect_within_the_origin(
    status: int, server: RawServer, dialer: Dialer
) -> None:
    listener = ScriptedListener()
    opening = dialing(dialer, server.url, listener=listener)
    peer = await server.peer()
    request = await peer.request()
    peer.answer(result_for(request, **HELLO), JSON)
    await peer.request()
    peer.answer(status="202 Accepted")
    link = await opening
    assert (await peer.request()).line == "GET /mcp HTTP/1.1"
    redirect(peer, "/pushes", status)
    assert (await peer.request()).line == "GET /pushes HTTP/1.1"
    peer.send(STREAM + event(b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'))
    await eventually(lambda: bool(listener.heard))
    calling = asyncio.ensure_future(link.request("tools/list"))
    posts = await server.peer()
    request = await posts.request()
    assert request.line == "POST /mcp HTTP/1.1"  # only the stream is elsewhere
    posts.answer(result_for(request, tools=[]), JSON)
    assert await calling == {"tools": []}
    await link.close()


# The older transport.


def dialing_sse(dialer: Dialer, url: str) -> Any:
    spec = BackendSpec(name="x", target=HttpTarget(url=url, headers=HEADERS, kind="sse"), mode="legacy")
    return asyncio.ensure_future(dialer.dial(spec, ScriptedListener()))


async def test_the_sse_transport_follows_a_redirect_within_the_origin(server: RawServer, dialer: Dialer) -> None:
    opening = dialing_sse(dialer, server.url)
    stream = await server.peer()
    await stream.request()
    redirect(stream, "/a/sse", 302)
    assert (await stream.request()).line == "GET /a/sse HTTP/1.1"
    stream.send(STREAM + _sse_endpoint("messages"))
    posts = await server.peer()
    request = await posts.request()
    assert request.line == "POST /a/messages HTTP/1.1"  # as seen from where the stream is
    redirect(posts, "/b/messages")
    assert (await posts.request()).line == "POST /b/messages HTTP/1.1"
    redirect(posts, "http://elsewhere.example/messages")
    assert "redirects to http://elsewhere.example/messages" in str(await failure_of(opening))


async def test_the_sse_transport_names_another_origin_in_its_error(server: RawServer, dialer: Dialer) -> None:
    opening = dialing_sse(dialer, server.url)
    stream = await server.peer()
    await stream.request()
    redirect(stream, "http://elsewhere.example/sse", 301)
    assert "redirects to http://elsewhere.example/sse, and is not followed" in str(await failure_of(opening))


def _sse_endpoint(place: str) -> bytes:
    data = f"event: endpoint\ndata: {place}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)

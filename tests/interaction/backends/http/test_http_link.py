"""A Streamable HTTP link to a raw server: the test controls every byte on the wire."""

import asyncio
import json
from collections.abc import Callable

import pytest

from emceepee import __version__
from emceepee.backends.link import Link, LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from support.backends.raw_links import (
    HELLO,
    LARGEST,
    STREAM,
    WatchedDialer,
    a_link,
    asking,
    dialing,
    event,
    failure_of,
    idle_again,
    result_for,
)
from support.backends.raw_server import Peer, RawServer, raw_server
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock
from support.waiting import eventually

NOBODY = ScriptedListener()
MODERN = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}


# Answers.


async def test_every_request_carries_the_protocol_version_and_the_session_id(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, "mcp-session-id: s1") as (link, peer):
        call = asking(link)
        request = await peer.request()
        assert request.all("user-agent") == [f"emceepee/{__version__}"]
        assert request.all("mcp-session-id") == ["s1"]
        assert request.all("mcp-protocol-version") == ["2025-11-25"]
        assert request.all("accept") == ["application/json, text/event-stream"]
        assert request.all("content-type") == ["application/json"]
        peer.answer(result_for(request, ok=True), "content-type: application/json")
        assert await call == {"ok": True}
        closing = asyncio.ensure_future(link.close())
        request = await peer.request()
        assert (request.line, request.all("mcp-session-id")) == ("DELETE /mcp HTTP/1.1", ["s1"])
        peer.answer()
        await closing


async def test_requests_of_2026_07_28_repeat_routing_information_in_headers(
    dialer: WatchedDialer, server: RawServer
) -> None:
    opening = dialing(dialer, server.url, mode="2026-07-28")
    peer = await server.peer()
    request = await peer.request()
    assert request.all("mcp-protocol-version") == ["2026-07-28"]
    assert request.all("mcp-method") == ["server/discover"]
    peer.answer(result_for(request, **MODERN), "content-type: application/json")
    link: Link = await opening
    call = asyncio.ensure_future(link.request("tools/call", {"name": "echo"}, headers={"mcp-param-x": "1"}))
    request = await peer.request()
    for name, value in (
        ("protocol-version", "2026-07-28"),
        ("method", "tools/call"),
        ("name", "echo"),
        ("param-x", "1"),
    ):
        assert request.all(f"mcp-{name}") == [value]
    peer.answer(result_for(request), "content-type: application/json")
    assert await call == {}
    call = asyncio.ensure_future(link.request("tasks/get", {"taskId": "a task"}))
    request = await peer.request()
    assert (request.all("mcp-method"), request.all("mcp-name")) == (["tasks/get"], ["a task"])
    peer.answer(result_for(request), "content-type: application/json")
    await call
    await link.close()


async def test_a_link_that_detaches_from_a_shared_session_sends_no_delete_request(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, "mcp-session-id: s1") as (link, peer):
        link.leave_session()
        await link.close()
        call = asyncio.ensure_future(dialer.dial(BackendSpec(name="x", target=HttpTarget(url=server.url)), NOBODY))
        assert (await peer.request()).line == "POST /mcp HTTP/1.1", "the next thing that the server hears of us"
        call.cancel()
        await asyncio.wait({call})


async def test_a_question_can_be_answered_on_another_link_of_the_same_session(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, "mcp-session-id: s1") as (link, peer):
        answer = {"jsonrpc": "2.0", "id": 7, "result": {"action": "decline"}}
        sending = asyncio.ensure_future(link.send_answer(answer))
        request = await peer.request()
        assert (json.loads(request.body), request.all("mcp-session-id")) == (answer, ["s1"])
        peer.answer(status="202 Accepted")
        await sending


async def test_links_of_different_principals_do_not_share_connections(dialer: WatchedDialer, server: RawServer) -> None:
    async with a_link(dialer, server) as (_, peer):
        spec = BackendSpec(name="x", target=HttpTarget(url=server.url, kind="http"), mode="legacy")
        opening = asyncio.ensure_future(dialer.dial(spec, ScriptedListener(), principal="another"))
        own = await server.peer()
        assert json.loads((await own.request()).body)["method"] == "initialize"
        assert own is not peer
        opening.cancel()
        await asyncio.wait({opening})


async def test_links_share_connections_but_never_cookies(dialer: WatchedDialer, server: RawServer) -> None:
    async with a_link(dialer, server, "set-cookie: seat=7; path=/") as (first, peer):
        opening = dialing(dialer, server.url)
        request = await peer.request()  # over the first link's connection
        assert request.all("cookie") == []
        peer.answer(result_for(request, **HELLO), "content-type: application/json")
        await peer.request()
        peer.answer(status="202 Accepted")
        second: Link = await opening
        await peer.request()
        peer.answer(status="405 Method Not Allowed")
        await idle_again(dialer)
        for link, cookies in ((first, ["seat=7"]), (second, [])):
            call = asking(link)
            request = await peer.request()
            assert request.all("cookie") == cookies
            peer.answer(result_for(request), "content-type: application/json")
            await call
        await second.close()


# What comes back.


async def test_after_an_answer_on_a_stream_the_link_drains_the_stream_and_reuses_the_connection(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        for _ in range(3):
            call = asking(link)
            request = await peer.request()
            peer.send(STREAM + event(result_for(request, ok=True)))
            assert await call == {"ok": True}
            peer.send(event(b"{}") + b"0\r\n\r\n")
            await idle_again(dialer)
        assert len(server.accepted) == 1


async def test_a_cut_stream_is_resumed_at_its_last_event(
    dialer: WatchedDialer, server: RawServer, clock: FakeClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        request = await peer.request()
        peer.send(STREAM + b"12\r\nid: \xc3\xa4\xe2\x82\xac\ndata:\n\n\r\n")
        peer.close()
        await eventually(lambda: not dialer.pool.open)
        await clock.advance(1)
        resumed = await server.peer()
        again = await resumed.request()
        assert (again.line, again.all("accept")) == ("GET /mcp HTTP/1.1", ["text/event-stream"])
        assert again.all("last-event-id") == ["ä€".encode().decode("latin-1")]
        resumed.send(STREAM + event(result_for(request, ok=True)))
        assert await call == {"ok": True}


def _half(peer: Peer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}")
    peer.close()


BREAKS: dict[str, tuple[Callable[[Peer], None], str]] = {
    "closes": (Peer.close, "ended before an answer"),
    "talks nonsense": (lambda peer: peer.send(b"nonsense\r\n\r\n"), "not HTTP"),
    "says too much": (lambda peer: peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}{}"), "beyond its end"),
    "stops halfway": (_half, "during the answer"),
}


@pytest.mark.parametrize(("breaks", "words"), BREAKS.values(), ids=BREAKS)
async def test_a_broken_connection_fails_its_call_as_possibly_executed(
    breaks: Callable[[Peer], None], words: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        breaks(peer)
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.UNREACHABLE, True)
        assert f"127.0.0.1:{server.port} cannot be reached: " in str(error)
        assert words in str(error)
        call = asking(link)  # on a new connection
        peer = await server.peer()
        peer.answer(result_for(await peer.request()), "content-type: application/json")
        assert await call == {}


async def test_a_call_over_a_broken_connection_reveals_that_the_server_is_gone(
    dialer: WatchedDialer, clock: FakeClock
) -> None:
    async with raw_server() as server, a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        server.stop_listening()
        peer.reset()
        assert (await failure_of(call)).may_have_run
        assert not link.closed.done()
        await clock.advance(1)
        async with asyncio.timeout(10):
            reason = (await link.closed).reason
        assert reason == f"127.0.0.1:{server.port} cannot be reached: Connection refused"


async def test_a_link_whose_server_is_still_reachable_opens_a_new_connection(
    dialer: WatchedDialer, server: RawServer, clock: FakeClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.reset()
        assert (await failure_of(call)).may_have_run
        await clock.advance(1)
        peer = await server.peer()
        await idle_again(dialer)
        call = asking(link)
        peer.answer(result_for(await peer.request()), "content-type: application/json")
        assert await call == {}
        assert not link.closed.done()
        assert len(server.accepted) == 2


async def test_a_refused_connection_proves_that_the_call_did_not_run(dialer: WatchedDialer) -> None:
    async with raw_server() as server:
        url = server.url
    error = await failure_of(dialing(dialer, url))
    assert (error.failure, error.may_have_run) == (LinkFailure.UNREACHABLE, False)
    assert str(error) == f"127.0.0.1:{server.port} cannot be reached: Connection refused"


@pytest.mark.parametrize(
    ("body", "said"),
    [(b"who are you?", "who are you?"), (b'{"error":{"code":1,"message":"no"}}', "no")],
)
async def test_a_401_reports_where_the_server_accepts_tokens(
    dialer: WatchedDialer, server: RawServer, body: bytes, said: str
) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    await peer.request()
    peer.answer(body, status="401 Unauthorized")
    error = await failure_of(opening)
    assert (error.failure, error.status) == (LinkFailure.REFUSED, 401)
    assert str(error).startswith(f"it wants a login (HTTP 401 {said}). Put a token for it into headers")
    assert "configuration file" in str(error)


@pytest.mark.parametrize("in_chunks", [True, False])
async def test_an_answer_over_the_size_limit_is_reported_as_too_large(
    in_chunks: bool, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        if in_chunks:
            peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + event(b"x" * LARGEST))
        else:
            peer.answer(b"x" * (LARGEST + 1))
        error = await failure_of(call)
        assert (error.failure, str(error)) == (LinkFailure.PROTOCOL, "the answer is larger than 10000 bytes")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"[" * 300 + b"]" * 300, "the answer is nested deeper than 200 levels"),
        (b"1" * 5000, "the answer is JSON with a number of more than 4300 digits"),
    ],
    ids=["deep", "digits"],
)
@pytest.mark.parametrize("streams", [True, False])
async def test_an_unreadable_answer_is_an_error_with_the_reason(
    streams: bool, value: bytes, words: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        key = json.loads((await peer.request()).body)["id"]
        body = b'{"jsonrpc":"2.0","id":%d,"result":{"a":%b}}' % (key, value)
        if streams:
            peer.send(STREAM + event(body))
        else:
            peer.answer(body, "content-type: application/json")
        failure = await failure_of(call)
        assert (failure.failure, str(failure)) == (LinkFailure.PROTOCOL, words)


async def test_an_answer_in_an_event_that_is_not_json_ends_its_call_while_the_stream_stays_open(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        key = json.loads((await peer.request()).body)["id"]
        peer.send(STREAM + event(b"no message") + event(b'{"jsonrpc":"2.0","id":%d,"result":{"a":}}' % key))
        failure = await failure_of(call)
        assert (failure.failure, str(failure)) == (LinkFailure.PROTOCOL, "the answer is not JSON")


async def test_an_endless_event_is_reported_and_its_connection_closed(dialer: WatchedDialer, server: RawServer) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.send(STREAM + b"%x\r\ndata: " % (1 << 30) + b"x" * LARGEST)
        error = await failure_of(call)
        assert (error.failure, str(error)) == (LinkFailure.PROTOCOL, "the answer is larger than 10000 bytes")
        await peer.gone()


async def test_a_push_stream_with_an_endless_event_is_closed_and_reopened(
    dialer: WatchedDialer, server: RawServer, clock: FakeClock
) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    peer.answer(result_for(await peer.request(), **HELLO), "content-type: application/json")
    await peer.request()
    peer.answer(status="202 Accepted")
    link: Link = await opening
    assert (await peer.request()).line.startswith("GET ")
    peer.send(STREAM + b"%x\r\ndata: " % (1 << 30) + b"x" * LARGEST)
    await peer.gone()
    await clock.advance(1)
    assert (await (await server.peer()).request()).line.startswith("GET ")
    await link.close()


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://127.0.0.1:1/", {"authorization": "Bearer s3cret\r\nx: y"}),
        ("http://127.0.0.1:1/", {"bad name": "s3cret"}),
        ("http://127.0.0.1:1/", {"x": "s3cret€"}),
        ("http://127.0.0.1:99999/", {}),
        ("http:///s3cret", {}),
    ],
)
async def test_a_link_refuses_a_request_that_it_cannot_encode_without_showing_its_content(
    url: str, headers: dict[str, str], dialer: WatchedDialer
) -> None:
    error = await failure_of(dialing(dialer, url, headers=headers))
    assert error.failure is LinkFailure.REFUSED
    assert str(error).startswith("the request cannot be sent: ")
    assert "s3cret" not in str(error)


async def test_a_link_refuses_a_session_id_that_does_not_fit_into_a_header(
    dialer: WatchedDialer, server: RawServer
) -> None:
    opening = dialing(dialer, server.url)
    peer = await server.peer()
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nmcp-session-id: a\0b\r\ncontent-length: 100\r\n\r\n")
    assert (await failure_of(opening)).failure is LinkFailure.REFUSED
    await peer.gone()


# Closing and cancelling.


@pytest.mark.parametrize("stage", ["nothing", "half a head", "half a body", "half a stream"])
async def test_closing_a_link_fails_its_pending_requests_and_closes_their_connections(
    stage: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        request = await peer.request()
        match stage:
            case "half a head":
                peer.send(b"HTTP/1.1 200 OK\r\n")
            case "half a body":
                peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{}")
            case "half a stream":
                peer.send(STREAM + event(result_for(request))[:-10])
        await peer.writer.drain()
        await link.close()
        error = await failure_of(call)
        assert (error.failure, str(error)) == (LinkFailure.CLOSED, "the connection was closed")
        await peer.gone()


async def test_closing_a_link_fails_a_link_that_is_still_connecting(
    dialer: WatchedDialer, server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(addresses: object) -> None:
        await asyncio.Event().wait()

    async with a_link(dialer, server) as (link, peer):
        monkeypatch.setattr("emceepee.backends.http1.connector.open_socket", silent)
        busy = asking(link)
        await peer.request()
        connecting = asking(link)
        await asyncio.sleep(0)
        await link.close()
        assert [(await failure_of(call)).failure for call in (busy, connecting)] == [LinkFailure.CLOSED] * 2


async def test_a_canceled_call_closes_its_connection_and_notifies_the_server(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        number = json.loads((await peer.request()).body)["id"]
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await peer.gone()
        other = await server.peer()
        notice = json.loads((await other.request()).body)
        assert (notice["method"], notice["params"]["requestId"]) == ("notifications/cancelled", number)
        other.answer(status="202 Accepted")


async def test_the_repr_of_a_link_shows_its_host_its_pending_requests_and_its_end(
    dialer: WatchedDialer, server: RawServer
) -> None:
    host = server.url.split("/")[2]
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        assert repr(link) == f"<HttpLink {host} requests=1 open>"
        await link.close()
        await failure_of(call)
        assert repr(link) == f"<HttpLink {host} requests=0 closed: the connection was closed>"

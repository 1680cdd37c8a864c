"""The older HTTP+SSE transport with a raw server in the test."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.dialer import Dialer
from emceepee.backends.http.event_stream import TURN_BYTES
from emceepee.backends.link import Link, LinkError, LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.state.limits import Limits
from support.backends.raw_links import LARGEST, WatchedDialer, a_dialer
from support.backends.raw_server import Peer, RawServer
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock
from support.figures import record_figure
from support.waiting import eventually

FLOOD_BYTES = 1 << 20
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}


@pytest.fixture
async def dialer() -> AsyncIterator[WatchedDialer]:
    async with a_dialer(FakeClock()) as running:
        yield running


def dialing(dialer: Dialer, server: RawServer, listener: ScriptedListener | None = None) -> Any:
    target = HttpTarget(url=server.url, headers={"authorization": "Bearer x"}, kind="sse")
    spec = BackendSpec(name="x", target=target, mode="legacy")
    return asyncio.ensure_future(dialer.dial(spec, listener or ScriptedListener()))


async def stream_of(server: RawServer) -> Peer:
    stream = await server.peer()
    request = await stream.request()
    assert (request.line, request.all("accept")) == ("GET /mcp HTTP/1.1", ["text/event-stream"])
    return stream


def event(data: str, name: str = "message") -> bytes:
    return f"event: {name}\r\ndata: {data}\r\n\r\n".encode()


async def failure_of(work: "asyncio.Future[Any]") -> LinkError:
    async with asyncio.timeout(10):
        with pytest.raises(LinkError) as raised:
            await work
    return raised.value


async def test_a_post_request_is_answered_on_the_sse_stream(dialer: WatchedDialer, server: RawServer) -> None:
    opening = dialing(dialer, server)
    stream = await stream_of(server)
    stream.send(STREAM + event("/messages?id=1", "endpoint"))
    posts = await server.peer()
    asked = await posts.request()
    assert (asked.line, asked.all("authorization")) == ("POST /messages?id=1 HTTP/1.1", ["Bearer x"])
    posts.answer(b"Accepted", status="202 Accepted")
    stream.send(event(json.dumps({"jsonrpc": "2.0", "id": json.loads(asked.body)["id"], "result": HELLO})))
    await posts.request()
    posts.answer(status="202 Accepted")
    link: Link = await opening
    call = asyncio.ensure_future(link.request("tools/list"))
    asked = await posts.request()
    posts.answer(b"no", status="500 Oh")
    assert str(await failure_of(call)) == "HTTP 500 no"
    stream.close()
    assert (await link.closed).reason == "the server ended the event stream"
    host = server.url.split("/")[2]
    assert repr(link) == f"<SseLink {host} requests=0 lost: the server ended the event stream>"
    await link.close()


@pytest.mark.parametrize("place", ["http://elsewhere.example/messages", "https://127.0.0.1/", "http://[oh"])
async def test_the_sse_transport_refuses_an_endpoint_of_another_origin(
    place: str, dialer: WatchedDialer, server: RawServer
) -> None:
    """The headers of emceepee may hold a credential."""
    opening = dialing(dialer, server)
    stream = await stream_of(server)
    stream.send(STREAM + event(place, "endpoint"))
    error = await failure_of(opening)
    assert error.failure is LinkFailure.PROTOCOL
    assert "endpoint" in str(error)
    await stream.gone()


async def test_a_response_that_is_not_an_event_stream_is_named_in_the_error(
    dialer: WatchedDialer, server: RawServer
) -> None:
    opening = dialing(dialer, server)
    stream = await stream_of(server)
    stream.answer(b"hello", "content-type: text/html")
    error = await failure_of(opening)
    assert (error.failure, str(error)) == (LinkFailure.REFUSED, "HTTP 200 text/html is not an event stream")


async def test_an_sse_stream_that_breaks_before_its_endpoint_event_makes_the_server_unreachable(
    dialer: WatchedDialer, server: RawServer
) -> None:
    opening = dialing(dialer, server)
    (await stream_of(server)).reset()
    error = await failure_of(opening)
    assert (error.failure, error.may_have_run) == (LinkFailure.UNREACHABLE, True)


async def test_an_endless_sse_event_ends_the_link(dialer: WatchedDialer, server: RawServer) -> None:
    opening = dialing(dialer, server)
    stream = await stream_of(server)
    stream.send(STREAM + b"data: " + b"x" * (LARGEST + 1))
    error = await failure_of(opening)
    assert (error.failure, str(error)) == (LinkFailure.PROTOCOL, "the answer is larger than 10000 bytes")
    await stream.gone()


async def test_the_link_stops_reading_a_server_that_sends_endless_requests_and_reads_no_answers(
    server: RawServer,
) -> None:
    limits = Limits(line_bytes=LARGEST, requests_per_link=2)
    async with Dialer.running(FakeClock(), limits) as dialer:
        opening = dialing(dialer, server)
        stream = await stream_of(server)
        stream.send(STREAM + event("/messages", "endpoint"))
        posts = await server.peer()
        asked = await posts.request()
        posts.answer(status="202 Accepted")
        stream.send(event(json.dumps({"jsonrpc": "2.0", "id": json.loads(asked.body)["id"], "result": HELLO})))
        await posts.request()
        posts.answer(status="202 Accepted")
        link: Link = await opening
        for number in range(50):
            stream.send(event(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"})))
        busy = [posts, await server.peer(), await server.peer()]
        answers = [json.loads((await peer.request()).body) for peer in busy]
        assert sorted((answer["id"], "error" in answer) for answer in answers) == [(0, False), (1, False), (2, True)]
        assert len(server.accepted) == 4  # the stream, two answers, and one refusal after the other
        for peer in busy:
            peer.answer(status="202 Accepted")
        await (await next_of(busy))
        stream.close()
        await link.close()


async def test_a_flood_of_sse_events_is_handled_in_small_batches(dialer: WatchedDialer, server: RawServer) -> None:
    listener = ScriptedListener()
    opening = dialing(dialer, server, listener)
    stream = await stream_of(server)
    stream.send(STREAM + event("/messages", "endpoint"))
    posts = await server.peer()
    asked = await posts.request()
    posts.answer(status="202 Accepted")
    stream.send(event(json.dumps({"jsonrpc": "2.0", "id": json.loads(asked.body)["id"], "result": HELLO})))
    await posts.request()
    posts.answer(status="202 Accepted")
    link: Link = await opening
    heard, loop, in_turns = listener.heard, asyncio.get_running_loop(), [0]

    def turn() -> None:
        in_turns.append(len(heard) - sum(in_turns))
        loop.call_soon(turn)

    message = event(json.dumps({"jsonrpc": "2.0", "method": "notifications/odd"}))
    count = FLOOD_BYTES // len(message)
    loop.call_soon(turn)
    stream.send(message * count)
    await eventually(lambda: len(heard) == count, what="all is heard", within=10)
    record_figure(f"{count} messages arrive: at most {max(in_turns)} are handled in one turn of the loop")
    assert max(in_turns) <= 2 * (TURN_BYTES // len(message) + 1), "the end of one chunk, and the beginning of the next"
    stream.close()
    await link.close()


async def next_of(peers: list[Peer]) -> "asyncio.Future[Any]":
    """The next request on any of these connections."""
    waiting = [asyncio.ensure_future(peer.request()) for peer in peers]
    done, others = await asyncio.wait(waiting, timeout=10, return_when=asyncio.FIRST_COMPLETED)
    for other in others:
        other.cancel()
    return done.pop()

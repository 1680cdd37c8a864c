"""Responses that mean a lost session, and the requests that they answer, byte by byte on the wire."""

import asyncio
import json
from typing import Any

import pytest

from emceepee.backends.link import Link, LinkFailure, RpcError
from support.backends.raw_links import (
    JSON,
    STREAM,
    WatchedDialer,
    a_link,
    asking,
    chunk,
    failure_of,
    idle_again,
    number_of,
)
from support.backends.raw_server import RawServer
from support.fakes.clock import FakeClock
from support.waiting import eventually

SESSION = "mcp-session-id: s1"


def an_error(key: Any, words: str = "no", code: int = -32000) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": words}}).encode()


def a_result(key: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": key, "result": {}}).encode()


async def refused(call: "asyncio.Future[Any]") -> RpcError:
    async with asyncio.timeout(10):
        with pytest.raises(RpcError) as raised:
            await call
    return raised.value


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
async def test_an_error_response_with_the_id_of_another_request_is_ignored(
    status: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        number = number_of(await peer.request())
        peer.answer(an_error(number + 1), JSON, status=status)
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.PROTOCOL, True)
        assert f"names another request (id {number + 1})" in str(error)


@pytest.mark.parametrize("key", [999_999, None, "server-error", [], {}])
async def test_a_result_with_the_id_of_another_request_is_rejected(
    key: Any, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.answer(a_result(key), JSON)
        error = await failure_of(call)
        assert (error.failure, "names another request" in str(error)) == (LinkFailure.PROTOCOL, True)
        assert not link.closed.done()


@pytest.mark.parametrize("key", [None, "server-error"])
@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
async def test_an_error_response_without_an_id_answers_the_request_of_its_connection(
    status: str, key: Any, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.answer(an_error(key, "your session cannot do that"), JSON, status=status)
        assert str(await refused(call)) == "your session cannot do that"


async def test_session_loss_wording_in_an_event_of_a_stream_is_not_a_lost_session(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        number = number_of(await peer.request())
        peer.send(STREAM.replace(b"200 OK", b"400 Bad Request"))
        peer.send(chunk(b"data: " + an_error(number, "Session not found") + b"\n\n") + b"0\r\n\r\n")
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.REFUSED, True)


@pytest.mark.parametrize("words", ["Session not found", ""])
async def test_a_404_with_session_loss_wording_or_without_json_rpc_is_a_lost_session(
    words: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.answer(an_error(None, words) if words else b"{}", JSON, status="404 Not Found")
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.SESSION_LOST, False)


async def test_a_404_with_another_json_rpc_error_is_the_answer_to_the_call(
    dialer: WatchedDialer, server: RawServer
) -> None:
    """The tool may have run, so the call must not be sent again."""
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        peer.answer(an_error(number_of(await peer.request()), "no such page"), JSON, status="404 Not Found")
        error = await refused(call)
        assert (str(error), error.status) == ("no such page", 404)
        ping = await peer.request()
        peer.answer(a_result(number_of(ping)), JSON)
        await idle_again(dialer)
        assert not link.closed.done()


async def test_a_call_answered_by_a_404_with_a_json_rpc_result_is_not_sent_again(
    dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        peer.answer(a_result(number_of(await peer.request())), JSON, status="404 Not Found")
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.REFUSED, True)


async def test_a_call_whose_stream_is_cut_and_whose_session_is_lost_may_have_run(
    dialer: WatchedDialer, server: RawServer, clock: FakeClock
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.send(STREAM + chunk(b"id: 1\ndata:\n\n"))
        peer.close()
        await eventually(lambda: not dialer.pool.open)
        await clock.advance(1)
        again = await server.peer()
        assert (await again.request()).line.startswith("GET ")
        again.answer(status="404 Not Found")
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.SESSION_LOST, True)


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "400 Bad Request"])
async def test_a_cut_stream_that_cannot_be_resumed_is_not_an_answer_of_the_tool(
    status: str, dialer: WatchedDialer, server: RawServer, clock: FakeClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        await peer.request()
        peer.send(STREAM + chunk(b"id: 1\ndata:\n\n"))
        peer.close()
        await eventually(lambda: not dialer.pool.open)
        await clock.advance(1)
        again = await server.peer()
        await again.request()
        again.answer(an_error(None, "Event store not configured"), JSON, status=status)
        error = await failure_of(call)
        assert (error.failure, error.may_have_run) == (LinkFailure.UNREACHABLE, True)
        assert "could not be taken up again: Event store not configured" in str(error)


async def test_the_request_ids_of_each_link_begin_at_a_random_number(dialer: WatchedDialer, server: RawServer) -> None:
    numbers = []
    for _ in range(3):
        async with a_link(dialer, server) as (link, peer):
            call = asking(link)
            numbers.append(number_of(await peer.request()))
            peer.answer(a_result(numbers[-1]), JSON)
            await call
            await idle_again(dialer)
            peer.close()
            await eventually(lambda: not dialer.pool.open)
    assert len(set(numbers)) == 3


# A server that has words of its own for a lost session.


async def with_own_words(
    link: Link, dialer: WatchedDialer, server: RawServer, ping: bytes, status: str, *, refusal: str = "400 Bad Request"
) -> None:
    """Refuse a call with an error status, then answer the ping that follows as given."""
    peer = server.accepted[0]
    call = asking(link)
    await peer.request()
    peer.answer(an_error(None, "No active session"), JSON, status=refusal)
    assert str(await refused(call)) == "No active session"
    request = await peer.request()
    assert json.loads(request.body)["method"] == "ping"
    peer.answer(ping.replace(b'"ours"', str(number_of(request)).encode()), JSON, status=status)
    await idle_again(dialer)


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found"])
async def test_a_server_that_refuses_a_ping_with_session_loss_wording_has_lost_the_session(
    status: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, _):
        await with_own_words(link, dialer, server, an_error(None, "No active session"), status, refusal=status)
        async with asyncio.timeout(10):
            assert (await link.closed).reason == "the server no longer knows our session"
        assert link.resumption is None


@pytest.mark.parametrize(
    ("ping", "status"),
    [
        (a_result("ours"), "200 OK"),
        (an_error("ours", "Method not found", -32601), "400 Bad Request"),
        (an_error("ours", "No active session", -32601), "400 Bad Request"),
        (an_error("ours", "something else"), "400 Bad Request"),
    ],
)
async def test_a_server_that_answers_a_ping_in_any_other_way_still_has_the_session(
    ping: bytes, status: str, dialer: WatchedDialer, server: RawServer
) -> None:
    async with a_link(dialer, server, SESSION) as (link, peer):
        await with_own_words(link, dialer, server, ping, status)
        call = asking(link)
        peer.answer(a_result(number_of(await peer.request())), JSON)
        assert await call == {}
        assert not link.closed.done()
        assert link.resumption is not None

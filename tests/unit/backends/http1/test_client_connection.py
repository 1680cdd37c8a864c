"""Every framing of a response, split at every byte and cut off at every byte."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.backends.http1.client_connection import HEAD_BYTES
from emceepee.backends.http1.http_failures import HttpFailure, NoResponse
from emceepee.backends.http1.response import HttpResponse
from support.chunks import chunked
from support.fakes.connection import FakeConnection

OK = b"HTTP/1.1 200 OK\r\n"
MOST = 1 << 20
# The response data: status, body, and whether the connection can be reused.
WHOLE = {
    "with a length": (OK + b"Content-Length: 5\r\n\r\nhello", 200, b"hello", True),
    "with a length of nothing": (b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n", 202, b"", True),
    "in chunks": (OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", 200, b"hello", True),
    "in chunks with trailers": (
        OK + b"transfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nContent-Type: x\r\nX-Sum: 9\r\n\r\n",
        200,
        b"hello",
        True,
    ),
    "without content": (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    "not modified": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304, b"", True),
    "after a hint": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\ncontent-type: no\r\n\r\n"
        + OK
        + b"content-length: 5\r\n\r\nhello",
        200,
        b"hello",
        True,
    ),
    "and closing": (OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello", False),
    "in chunks and closing": (
        OK + b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        200,
        b"hello",
        False,
    ),
    "of the old version": (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello", False),
    "of the old version and staying": (
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello",
        200,
        b"hello",
        True,
    ),
    "with careless line ends": (b"HTTP/1.1 200 OK\ncontent-length: 5\n\nhello", 200, b"hello", True),
    "with a folded header": (OK + b"a: b\r\n c\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello", True),
    "without a reason": (b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello", 200, b"hello", True),
    "an error": (b"HTTP/1.1 500 Oh\r\ncontent-length: 5\r\n\r\nhello", 500, b"hello", True),
}
# These have no length: they end with the connection.
OPEN_ENDED = {
    "without a length": OK + b"\r\nhello",
    "of the old version": b"HTTP/1.0 200 OK\r\n\r\nhello",
    "in a coding that is not chunked": OK + b"transfer-encoding: gzip, identity\r\n\r\nhello",
}
MALFORMED = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "two lengths": OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello.",
    "a length and chunks": OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "a length below zero": OK + b"content-length: -5\r\n\r\n",
    "a length beyond measure": OK + b"content-length: " + b"9" * 30 + b"\r\n\r\n",
    "a chunk of no size": OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n",
    "a chunk longer than it says": OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
    "a space in a name": OK + b"content length: 5\r\n\r\nhello",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    "an unknown compression": OK + b"content-encoding: br\r\ncontent-length: 5\r\n\r\nhello",
}


async def outcome(response: HttpResponse) -> "tuple[int, bytes] | HttpFailure":
    async with asyncio.timeout(5):
        try:
            await response.wait_for_head()
            return response.status, await response.read(MOST)
        except HttpFailure as failure:
            return failure


@pytest.mark.parametrize(("data", "status", "body", "lasts"), WHOLE.values(), ids=WHOLE)
async def test_a_response_is_parsed_whole_however_its_bytes_are_split(
    data: bytes, status: int, body: bytes, lasts: bool
) -> None:
    singly = [data[place : place + 1] for place in range(len(data))]
    for pieces in ([data], singly, *([data[:cut], data[cut:]] for cut in range(1, len(data)))):
        line = FakeConnection()
        response = line.ask()
        line.hear(*pieces)
        assert await outcome(response) == (status, body)
        assert line.is_kept is lasts
        assert line.transport.is_closing() is not lasts


@pytest.mark.parametrize("data", OPEN_ENDED.values(), ids=OPEN_ENDED)
async def test_a_body_without_a_length_ends_with_the_connection(data: bytes) -> None:
    for cut in range(1, len(data)):
        line = FakeConnection()
        response = line.ask()
        line.hear(data[:cut], data[cut:])
        assert not response.is_over
        line.hang_up()
        assert await outcome(response) == (200, b"hello")
        assert not line.is_kept


@pytest.mark.parametrize("data", OPEN_ENDED.values(), ids=OPEN_ENDED)
async def test_a_body_without_a_length_is_incomplete_if_the_connection_is_reset(data: bytes) -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(data)
    line.hang_up(ConnectionResetError(104, "Connection reset by peer"))
    failure = await outcome(response)
    assert str(failure) == "the connection ended during the answer: Connection reset by peer"


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
async def test_a_malformed_response_fails_and_closes_its_connection_however_its_bytes_are_split(data: bytes) -> None:
    singly = [data[place : place + 1] for place in range(len(data))]
    for pieces in ([data], singly, *([data[:cut], data[cut:]] for cut in range(1, len(data)))):
        line = FakeConnection()
        response = line.ask()
        line.hear(*pieces)
        assert isinstance(await outcome(response), HttpFailure)
        assert line.transport.is_closing()
        assert line.kept == []


@pytest.mark.parametrize("beyond", [b"x", b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"\0"])
@pytest.mark.parametrize("name", ["with a length", "in chunks", "and closing", "without content"])
async def test_bytes_after_the_end_of_a_response_never_reach_the_next_request(name: str, beyond: bytes) -> None:
    """Surplus bytes in the same chunk fail the response; later ones close only the connection."""
    data = WHOLE[name][0]
    line = FakeConnection()
    response = line.ask()
    line.hear(data + beyond)
    assert isinstance(await outcome(response), HttpFailure)
    assert line.transport.is_closing()
    for cut in range(1, len(data)):
        line = FakeConnection()
        response = line.ask()
        line.hear(data[:cut], data[cut:], beyond)
        assert await outcome(response) == WHOLE[name][1:3]
        assert line.transport.is_closing()
        assert line.kept == []


@pytest.mark.parametrize("error", [None, ConnectionResetError(104, "Connection reset by peer")])
@pytest.mark.parametrize("data", [data for data, *_ in WHOLE.values()], ids=WHOLE)
async def test_a_connection_that_ends_early_fails_its_response_at_every_byte(
    data: bytes, error: Exception | None
) -> None:
    for cut in range(len(data)):
        line = FakeConnection()
        response = line.ask()
        line.hear(data[:cut])
        line.hang_up(error)
        failure = await outcome(response)
        assert isinstance(failure, HttpFailure)
        assert isinstance(failure, NoResponse) is (cut == 0)
        assert not line.is_kept
        assert line.is_gone


@given(st.lists(st.sampled_from(sorted(WHOLE)), min_size=1, max_size=4), st.lists(st.integers(0, 5000)))
def test_successive_requests_on_one_connection_each_get_their_own_response(names: list[str], cuts: list[int]) -> None:
    async def conversation() -> None:
        line = FakeConnection()
        for name in names:
            data, status, body, lasts = WHOLE[name]
            response = line.ask()
            line.hear(*chunked(data, cuts))
            assert await outcome(response) == (status, body)
            if not lasts:
                return
            assert line.is_kept

    asyncio.run(conversation())


FRAGMENTS = [
    OK,
    b"HTTP/1.1 100 Continue\r\n",
    b"HTTP/1.0 204 No\n",
    b"content-length: 3\r\n",
    b"transfer-encoding: chunked\r\n",
    b"connection: close\r\n",
    b"content-encoding: gzip\r\n",
    b"keep-alive: timeout=5\r\n",
    b"upgrade: x\r\n",
    b"\r\n",
    b"\n",
    b"3\r\nabc\r\n",
    b"0\r\n",
    b"abc",
    b"\x1f\x8b\x08\0",
    b" ",
    b":",
]


@given(st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=4)), max_size=12), st.booleans())
def test_arbitrary_server_bytes_end_the_response_and_break_nothing_else(pieces: list[bytes], resets: bool) -> None:
    async def exchange() -> None:
        line = FakeConnection()
        response = line.ask()
        line.hear(*pieces)
        if response.is_over:
            assert line.is_kept is not line.transport.is_closing()
        line.hang_up(ConnectionResetError(104, "reset") if resets else None)
        found = await outcome(response)
        assert isinstance(found, HttpFailure | tuple)
        assert line.kept == []

    asyncio.run(exchange())


async def test_a_request_is_sent_in_one_write() -> None:
    line = FakeConnection()
    line.ask()
    assert line.transport.written == [b"request"]


async def test_the_head_of_a_response_is_available_before_its_body() -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(OK + b"Content-Type: Text/Event-Stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n")
    await response.wait_for_head()
    assert (response.status, response.content_type, response.is_over) == (200, "text/event-stream", False)


async def test_the_first_of_duplicate_headers_counts_and_every_cookie_is_stored() -> None:
    line = FakeConnection()
    response = line.ask()
    head = b"X: a\r\nx: b\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nServer: \xe9 \t\r\ncontent-length: 0\r\n\r\n"
    line.hear(OK + head)
    await response.wait_for_head()
    assert response.headers == {"x": "a", "set-cookie": "a=1", "server": "é", "content-length": "0"}
    assert response.cookies == ["a=1", "b=2"]


async def test_a_content_encoding_may_be_listed_in_several_headers() -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(OK + b"content-encoding: gzip\r\ncontent-encoding: br\r\ncontent-length: 0\r\n\r\n")
    assert "'gzip, br'" in str(await outcome(response))


BIG_HEADS = {
    "one long header": [OK + b"x: ", b"y" * 40_000, b"y" * 40_000],
    "one long header at once": [OK + b"x: " + b"y" * 80_000 + b"\r\ncontent-length: 0\r\n\r\n"],
    "many headers": [OK, *([b"x: y\r\n" * 100] * 200)],
    "a long reason": [b"HTTP/1.1 200 ", *([b"OK" * 1000] * 40)],
    "hints without end": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 4000,
    "empty lines without end": [b"\r\n" * 1000] * 40,
    "trailers without end": [OK + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n", *([b"x: y\r\n" * 100] * 200)],
    "one long trailer": [OK + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx: ", *([b"y" * 1000] * 80)],
    "an extension without end": [OK + b"transfer-encoding: chunked\r\n\r\n1;x=", *([b"y" * 1000] * 80)],
}


@pytest.mark.parametrize("pieces", BIG_HEADS.values(), ids=BIG_HEADS)
async def test_an_endless_response_head_is_rejected(pieces: list[bytes]) -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(*pieces)
    assert "larger than 65536" in str(await outcome(response))
    assert line.transport.is_closing()


async def test_a_large_body_does_not_count_toward_the_head_limit() -> None:
    line = FakeConnection()
    response = line.ask()
    size = 3 * HEAD_BYTES
    line.hear(OK + b"content-length: %d\r\n\r\n" % size + b"x" * size)
    assert await outcome(response) == (200, b"x" * size)


async def test_tiny_chunks_that_arrive_together_are_stored_as_one_part() -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 5000)
    assert response.parts == [b"x" * 5000]


async def test_unsolicited_bytes_close_an_idle_connection() -> None:
    for data in (b"x", b"\r\n", b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n"):
        line = FakeConnection()
        line.ask()
        line.hear(WHOLE["with a length"][0])
        assert line.is_kept
        line.hear(data)
        assert line.kept == []
        assert line.transport.is_closing()


async def test_an_idle_connection_that_the_server_closes_is_retired_at_once() -> None:
    line = FakeConnection()
    line.ask()
    line.hear(WHOLE["with a length"][0])
    line.connection.eof_received()
    assert line.kept == []
    assert not line.connection.is_open


async def test_a_connection_whose_server_responds_before_reading_the_whole_request_is_not_reused() -> None:
    line = FakeConnection()
    response = line.ask()
    line.transport.unwritten = 100
    line.hear(b"HTTP/1.1 413 Too Large\r\ncontent-length: 5\r\n\r\nhello")
    assert await outcome(response) == (413, b"hello")
    assert line.transport.is_closing()
    assert line.kept == []


async def test_aborting_a_connection_fails_its_pending_response() -> None:
    line = FakeConnection()
    response = line.ask()
    line.connection.abort()
    assert str(await outcome(response)) == "the connection was closed"


async def test_the_repr_of_a_response_and_its_connection_shows_their_state() -> None:
    line = FakeConnection()
    assert repr(line.connection) == "<ClientConnection idle>"
    response = line.ask()
    assert repr(line.connection) == "<ClientConnection <Response awaited open unread=0>>"
    line.hear(OK + b"content-length: 5\r\n\r\nhel")
    assert repr(response) == "<Response 200 open unread=3>"
    line.hang_up()
    assert (repr(response), repr(line.connection)) == (
        "<Response 200 failed unread=3>",
        "<ClientConnection closed>",
    )


# Cancelling a waiting caller at every point of the wait.

SLOW = [OK, b"content-type: x\r\n", b"content-length: 10\r\n\r\n", b"he", b"llo", b"wor", b"ld"]


@pytest.mark.parametrize("heard", range(len(SLOW) + 1))
async def test_a_cancelled_request_closes_its_connection(heard: int) -> None:
    line = FakeConnection()
    waiting = asyncio.ensure_future(outcome(line.ask()))
    for piece in SLOW[:heard]:
        await asyncio.sleep(0)
        line.hear(piece)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    is_whole = heard == len(SLOW)
    assert waiting.cancelled() is not is_whole
    assert line.transport.is_closing() is not is_whole
    assert line.is_kept is is_whole


async def test_cancelling_a_request_with_a_complete_response_does_not_affect_the_next_one_on_its_connection() -> None:
    line = FakeConnection()
    first = asyncio.ensure_future(outcome(line.ask()))
    await asyncio.sleep(0)
    line.hear(WHOLE["with a length"][0])
    second = line.ask()  # the connection is free before the first has woken up
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    line.hear(WHOLE["in chunks"][0])
    assert await outcome(second) == (200, b"hello")

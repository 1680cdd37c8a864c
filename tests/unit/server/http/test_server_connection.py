"""A connection with the test as its peer: limits, timeouts, and reports about its end."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from emceepee.server.http.connection_table import TICK_SECONDS, ConnectionTable
from emceepee.server.http.server_connection import ServerConnection
from emceepee.state.limits import Limits
from emceepee.web.asgi import CONNECTION, Receive, Scope, Send, respond
from support.fakes.clock import settle
from support.waiting import eventually

GET = b"GET /x HTTP/1.1\r\nhost: here\r\n\r\n"
POST = b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: 4\r\n\r\n"


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


class FakeTransport(asyncio.Transport):
    """Records the written data; the test sets how much of it the caller has not read yet."""

    def __init__(self) -> None:
        super().__init__()
        self.written, self.unsent, self.closed = b"", 0, ""
        self.is_unread = self.is_ended = False
        self.is_reading_paused = False

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.is_ended = True

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False

    def is_closing(self) -> bool:
        return bool(self.closed)

    def close(self) -> None:
        self.closed = self.closed or "closed"

    def abort(self) -> None:
        self.closed = "aborted"

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default


@pytest.fixture(autouse=True)
def acknowledged_as_the_test_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the socket query by the value of the test, and check for acknowledgments without a delay."""
    place = "emceepee.server.http.server_connection"
    monkeypatch.setattr(f"{place}.unacknowledged_bytes", lambda transport: int(transport.is_unread))
    monkeypatch.setattr(f"{place}.CHECK_SECONDS", 0)


class Served:
    """A listening server with its collaborators, and the requests that reached its application."""

    def __init__(self, **limits: Any) -> None:
        self.table = ConnectionTable(Limits(**limits))
        self.seen: list[Scope] = []
        self.hold = asyncio.Event()  # the application waits for it before it responds
        self.hold.set()
        self.config = uvicorn.Config(
            cast(Any, self._answer),
            interface="asgi3",
            lifespan="off",
            access_log=False,
            proxy_headers=False,
            log_config=None,
        )
        self.config.load()
        self.state = ServerState()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.seen.append(scope)
        part = await receive()
        while part.get("more_body"):
            part = await receive()
        await self.hold.wait()
        if part["type"] == "http.request":
            await respond(send, 200, b"ok")

    def connect(self) -> tuple[ServerConnection, FakeTransport]:
        connection = ServerConnection(self.config, self.state, {}, asyncio.get_running_loop(), table=self.table)
        transport = FakeTransport()
        connection.connection_made(cast(Any, transport))
        return connection, transport

    def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK_SECONDS)):
            self.table.tick()


async def test_a_connection_is_in_the_scope_of_its_request_and_is_released_at_its_end() -> None:
    served = Served()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    assert transport.written.startswith(b"HTTP/1.1 200 ")
    assert served.seen[0]["extensions"][CONNECTION] is connection
    connection.connection_lost(None)
    assert (connection.cycle, connection.scope) == (None, None)
    assert served.table.waiting == {}


@pytest.mark.parametrize(
    ("sent", "seconds", "answer"),
    [
        (b"", 10, b""),
        (b"GE", 10, b"408"),
        (GET[:-2], 10, b"408"),
        (POST, 30, b"408"),
        (POST + b"abc", 30, b"408"),
        (GET, 75, b"200"),
        (POST + b"body", 75, b"200"),
    ],
)
async def test_a_client_that_stops_sending_is_disconnected_after_a_timeout(
    sent: bytes, seconds: float, answer: bytes
) -> None:
    served = Served()
    connection, transport = served.connect()
    if sent:
        connection.data_received(sent)
    await settle()
    served.pass_time(seconds)
    assert (transport.closed, transport.written.count(b"408")) == ("", 0)
    served.pass_time(TICK_SECONDS)
    assert transport.written[9:12] == answer
    served.pass_time(3)
    assert transport.closed == "aborted"


async def test_a_response_may_take_any_time_to_be_computed() -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    served.pass_time(3600)
    served.hold.set()
    await settle()
    assert transport.written.startswith(b"HTTP/1.1 200 ")


async def test_a_slow_reader_does_not_count_as_idle_until_it_stops() -> None:
    served = Served()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    for unsent in range(5, 0, -1):
        transport.unsent = unsent
        served.pass_time(29)
        assert transport.closed == ""
    served.pass_time(2)
    assert transport.closed == "aborted"


async def begin_stream(served: Served) -> tuple[ServerConnection, FakeTransport]:
    """Return a connection whose caller has stopped reading."""
    served.hold.clear()
    connection, transport = served.connect()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        await served.hold.wait()

    connection.app = cast(Any, stream)
    connection.data_received(GET)
    await settle()
    transport.unsent = 1000
    connection.pause_writing()
    return connection, transport


async def test_an_unread_stream_is_closed_after_a_timeout_that_restarts_with_progress() -> None:
    served = Served(unread_answer_seconds=10)
    connection, transport = await begin_stream(served)
    for unsent in (900, 800):
        served.pass_time(9)
        transport.unsent = unsent
        served.pass_time(1)
        assert transport.closed == ""
    connection.resume_writing()
    served.pass_time(100)
    assert transport.closed == ""
    connection.pause_writing()
    served.pass_time(11)
    assert transport.closed == "aborted"
    served.hold.set()
    connection.connection_lost(None)


async def test_bytes_that_the_caller_acknowledges_count_as_progress() -> None:
    served = Served(unread_answer_seconds=10)
    connection, transport = await begin_stream(served)
    transport.is_unread = True
    served.pass_time(9)
    transport.is_unread = False
    served.pass_time(9)
    assert transport.closed == ""
    served.pass_time(2)
    assert transport.closed == "aborted"
    served.hold.set()
    connection.connection_lost(None)


async def test_the_rest_of_an_aborted_response_is_closed_after_the_usual_timeout(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served(unread_answer_seconds=10)
    connection, transport = await begin_stream(served)
    connection.resume_writing()  # too few bytes remain for backpressure
    served.hold.set()
    await settle()
    assert transport.closed == "closed"
    assert [record.message for record in caplog.records] == ["ASGI callable returned without completing response."]
    served.pass_time(11)
    assert transport.closed == "aborted"
    connection.connection_lost(None)
    assert served.table.waiting == {}


async def test_the_connection_that_uses_the_most_memory_is_closed_when_the_budget_is_exceeded() -> None:
    served = Served(unread_bytes_in_all=1 << 20)
    (_, small), (connection, large) = await begin_stream(served), await begin_stream(served)
    connection.hold(1 << 20)
    await settle()
    assert (small.closed, large.closed) == ("", "aborted")
    served.hold.set()


@pytest.mark.parametrize(("closing", "patience"), [(b"connection: close\r\n", 30)])
async def test_a_client_that_does_not_read_its_last_response_is_disconnected(closing: bytes, patience: float) -> None:
    served = Served()
    connection, transport = served.connect()
    connection.data_received(GET[:-2] + closing + b"\r\n")
    transport.unsent = 100
    await settle()
    assert transport.closed == "closed"
    served.pass_time(patience)
    assert transport.closed == "closed"
    served.pass_time(2)
    assert transport.closed == "aborted"


async def test_a_request_body_after_an_early_response_has_a_timeout() -> None:
    served = Served()
    connection, transport = served.connect()

    async def turn_away(scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 401, b"")

    connection.app = cast(Any, turn_away)
    connection.data_received(POST + b"a")
    await settle()
    served.pass_time(29)
    connection.data_received(b"bcd")
    served.pass_time(75)
    assert transport.closed == ""
    connection.data_received(POST + b"a")
    await settle()
    served.pass_time(33)
    assert transport.closed == "aborted"


async def test_pipelined_requests_wait_and_too_many_of_them_end_the_connection() -> None:
    served = Served(pipelined_requests=3)
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET * 10)
    connection.data_received(GET)
    await settle()
    assert len(served.seen) == 1
    served.hold.set()
    await settle()
    assert (transport.written.count(b"HTTP/1.1 200 "), len(served.seen)) == (4, 4)
    assert transport.closed == "closed"


async def test_the_timeout_for_a_pipelined_request_body_starts_when_the_request_is_served() -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET + POST + b"a")
    await settle()
    served.pass_time(100)
    assert transport.closed == ""
    served.hold.set()
    await settle()
    served.pass_time(29)
    assert b"408" not in transport.written
    served.pass_time(2)
    assert b"408" in transport.written


async def test_reading_continues_after_a_large_body_so_that_a_disconnect_is_noticed() -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    size = 200_000
    connection.data_received(b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size)
    await settle()
    assert not transport.is_reading_paused
    served.hold.set()
    await settle()


# Framing and limits.

CHUNKED = b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("trailers", "status"),
    [
        (b"a: " + b"x" * 60_000 + b"\r\n", b"200"),
        (b"a: " + b"x" * 66_000 + b"\r\n", b"431"),
        (b"a: " + b"x" * 200_000, b"431"),
        (b"a:\r\n" * 200, b"200"),
        (b"a:\r\n" * 201, b"431"),
        ((b"a: " + b"x" * 1000 + b"\r\n") * 70, b"431"),
    ],
    ids=["long", "too long", "too long to end", "many", "too many", "too long together"],
)
@pytest.mark.parametrize("piece", [1 << 20, 1000])
async def test_trailers_are_limited_like_a_head_and_are_not_headers(trailers: bytes, status: bytes, piece: int) -> None:
    served = Served()
    connection, transport = served.connect()
    for part in pieces(CHUNKED + b"4\r\nbody\r\n0\r\n" + trailers + b"\r\n", piece):
        connection.data_received(part)
    await settle()
    assert transport.written[9:12] == status
    assert all([name for name, _ in scope["headers"]] == [b"host", b"transfer-encoding"] for scope in served.seen)
    assert transport.is_ended == (status == b"431")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"3\r\nxxx\r\n" * 200_000, b"200"),
        (b"1\r\nx\r\n" * 10_000, b"200"),
        (b"1\r\nx\r\n" * 60_000, b"431"),
        (b"1;" + b"x" * 200_000 + b"\r\nx\r\n", b"431"),
        ((b"1;" + b"x" * 1000 + b"\r\nx\r\n") * 200, b"431"),
        (b"100000\r\n" + b"x" * 0x100000 + b"\r\n0\r\na: " + b"x" * 200_000, b"431"),
    ],
    ids=["small", "tiny", "very many tiny", "an extension", "extensions", "a trailer behind a large body"],
)
async def test_the_framing_bytes_of_a_body_are_limited(body: bytes, status: bytes) -> None:
    served = Served()
    connection, transport = served.connect()
    for part in pieces(CHUNKED + body + b"0\r\n\r\n", 10_000):
        connection.data_received(part)
    await settle()
    assert transport.written[9:12] == status


async def test_blank_lines_before_a_request_are_skipped_up_to_a_limit() -> None:
    served = Served()
    connection, transport = served.connect()
    connection.data_received(b"\r\n" * 30_000 + GET)
    await settle()
    assert (transport.written[9:12], transport.is_ended) == (b"200", False)
    for _ in range(4):
        connection.data_received(b"\r\n" * 10_000)
    assert b"HTTP/1.1 400 " in transport.written
    assert transport.is_ended


async def test_each_request_head_has_its_own_limit_wherever_the_previous_body_ended() -> None:
    served = Served()
    connection, transport = served.connect()
    size = 150_000
    first = b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size
    for part in pieces(first + GET, len(first) + 10):
        connection.data_received(part)
    await settle()
    assert transport.written.count(b"HTTP/1.1 200 ") == 2


async def test_the_body_of_a_refused_request_is_skipped_up_to_a_limit() -> None:
    served = Served(request_body_bytes=4 << 10)
    connection, transport = served.connect()

    async def turn_away(scope: Scope, receive: Receive, send: Send) -> None:
        await respond(send, 401, b"")

    connection.app = cast(Any, turn_away)
    connection.data_received(POST.replace(b"length: 4", b"length: 9999999") + b"a")
    await settle()
    seen = []
    for _ in range(4):
        connection.data_received(b"x" * (1 << 20))
        await settle()
        seen.append((transport.is_ended, transport.is_closing()))
    assert seen == [(False, False), (True, False), (True, True), (True, True)]
    assert transport.written.count(b"HTTP/1.1 ") == 1, "a request has one response"


async def test_a_large_amount_of_data_at_once_pauses_reading_for_one_loop_turn() -> None:
    """The transport would continue reading in the same turn as long as data is available."""
    served = Served()
    connection, transport = served.connect()
    connection.data_received(CHUNKED)
    await settle()
    connection.data_received(b"3\r\nxxx\r\n" * 20_000)
    was_paused = transport.is_reading_paused
    await settle()
    assert (was_paused, transport.is_reading_paused) == (True, False)


async def test_a_body_that_is_far_too_large_is_refused_with_413() -> None:
    served = Served(request_body_bytes=4 << 10)
    connection, transport = served.connect()
    connection.data_received(POST.replace(b"length: 4", b"length: 9999999"))
    for _ in range(17):
        connection.data_received(b"x" * (1 << 16))
        await settle()
    assert transport.written[9:12] == b"413"


# The number of connections.


async def test_the_longest_waiting_connection_is_closed_and_an_active_one_is_not() -> None:
    served = Served(caller_connections=2)
    served.hold.clear()
    busy, busy_transport = served.connect()
    busy.data_received(GET)
    _, first = served.connect()
    _, second = served.connect()
    assert (busy_transport.closed, first.closed, second.closed) == ("", "aborted", "")
    served.hold.set()
    await settle()


async def test_if_all_connections_are_active_a_new_one_gets_503_and_is_closed() -> None:
    served = Served(caller_connections=1)
    served.hold.clear()
    busy, _ = served.connect()
    busy.data_received(GET)
    connection, transport = served.connect()
    assert transport.written.startswith(b"HTTP/1.1 503 ")
    connection.data_received(GET)
    await settle()
    assert len(served.seen) == 1
    served.pass_time(3)
    assert transport.closed == "aborted"
    busy.connection_lost(None)
    connection.connection_lost(None)
    _, transport = served.connect()
    assert (transport.written, transport.closed) == (b"", "")
    served.hold.set()
    await settle()


# The end of a connection.


@pytest.mark.parametrize(
    ("error", "is_unread"), [(ConnectionResetError(), True), (BrokenPipeError(), True), (None, False)]
)
async def test_an_observer_is_notified_that_the_last_response_was_not_read(
    error: Exception | None, is_unread: bool
) -> None:
    served, told = Served(), list[str]()
    connection, _ = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("first"))
    await settle()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("second"))
    await settle()
    connection.connection_lost(error)
    assert told == (["second"] if is_unread else [])


@pytest.mark.parametrize("header", [b"x-forwarded-for: 10.0.0.9", b"forwarded: for=10.0.0.9", b"via: 1.1 cache"])
@pytest.mark.parametrize(
    ("is_unread", "is_paused", "heard"), [(False, False, "read"), (True, False, "not read"), (False, True, "not read")]
)
async def test_a_proxy_that_resets_its_connection_has_read_the_responses_that_it_acknowledged(
    header: bytes, is_unread: bool, is_paused: bool, heard: str
) -> None:
    """HAProxy resets when its own client leaves. A paused transport still holds a part of the response."""
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    connection.data_received(GET[:-2] + header + b"\r\n\r\n")
    connection.if_unread(lambda: told.append("not read"), if_read=lambda: told.append("read"))
    await settle()
    transport.is_unread = is_unread
    if is_paused:
        connection.pause_writing()
    connection.connection_lost(ConnectionResetError())
    assert told == [heard]


async def test_a_response_counts_as_read_after_two_seconds() -> None:
    served, told = Served(), list[str]()
    connection, _ = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("late"))
    await settle()
    served.pass_time(2)
    connection.connection_lost(ConnectionResetError())
    assert told == []


@pytest.mark.parametrize("unsent", [0, 100])
async def test_an_unacknowledged_response_never_counts_as_read(unsent: int) -> None:
    """Its caller may have lost its network."""
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("late"))
    await settle()
    transport.is_unread, transport.unsent = True, unsent
    served.pass_time(74)
    connection.connection_lost(None)
    assert told == ["late"]


async def test_a_response_that_is_acknowledged_late_counts_as_read() -> None:
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("not read"), if_read=lambda: told.append("read"))
    await settle()
    transport.is_unread = True
    served.pass_time(10)
    transport.is_unread = False
    served.pass_time(TICK_SECONDS)
    assert told == ["read"]


@pytest.mark.parametrize("how", ["the caller asks for it", "the server stops", "the server stops while it answers"])
@pytest.mark.parametrize("is_taken", [True, False])
async def test_a_closing_connection_waits_until_its_last_response_is_acknowledged(how: str, is_taken: bool) -> None:
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    transport.is_unread = True
    served.hold.clear()
    connection.data_received(GET[:-2] + b"connection: close\r\n\r\n" if how == "the caller asks for it" else GET)
    connection.if_unread(lambda: told.append("not read"), if_read=lambda: told.append("read"))
    await settle()
    if how == "the server stops while it answers":
        connection.shutdown()
    served.hold.set()
    await settle(2)
    if how == "the server stops":
        connection.shutdown()
    assert (transport.is_ended, transport.closed, told) == (True, "", [])
    connection.data_received(GET)
    transport.is_unread = not is_taken
    await eventually(lambda: transport.closed == "closed")
    connection.connection_lost(None)
    assert (told, len(served.seen)) == (["read" if is_taken else "not read"], 1)


async def test_a_slow_reader_of_the_last_response_is_waited_for_like_any_other() -> None:
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    connection.data_received(GET[:-2] + b"connection: close\r\n\r\n")
    connection.if_unread(lambda: told.append("not read"))
    transport.unsent, transport.is_unread = 100, True
    await settle(200)
    assert transport.closed == ""
    transport.unsent, transport.is_unread = 0, False
    await eventually(lambda: transport.closed == "closed")
    connection.connection_lost(None)
    assert told == []


async def test_a_connection_whose_response_was_acknowledged_closes_at_once_without_an_eof() -> None:
    """The caller would also have to acknowledge the end of the stream."""
    served, told = Served(), list[str]()
    connection, transport = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("not read"), if_read=lambda: told.append("read"))
    await settle()
    connection.shutdown()
    assert (transport.closed, transport.is_ended) == ("closed", False)
    connection.connection_lost(None)
    assert told == ["read"]


async def test_a_connection_without_observers_closes_at_once() -> None:
    served = Served()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    transport.is_unread = True
    connection.shutdown()
    assert transport.closed == "aborted"


@pytest.mark.parametrize("end", ["asks again", "waits", "closes", "resets"])
async def test_an_observer_is_notified_that_a_response_was_read(end: str) -> None:
    served, told = Served(), list[str]()
    connection, _ = served.connect()
    connection.data_received(GET)
    connection.if_unread(lambda: told.append("not read"), if_read=lambda: told.append("read"))
    await settle()
    assert told == []
    if end == "asks again":
        connection.data_received(GET)
    elif end == "waits":
        served.pass_time(2)
    connection.connection_lost(ConnectionResetError() if end == "resets" else None)
    assert told == ["not read" if end == "resets" else "read"]


async def test_an_aborted_response_ends_its_connection_without_a_log_entry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    connection.abort_response()
    served.hold.set()
    await settle()
    assert (transport.closed, transport.written) == ("aborted", b"")
    assert not caplog.records


async def test_a_request_notices_at_once_that_its_caller_disconnected() -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    assert not connection.is_gone()
    transport.close()
    assert connection.is_gone()


async def test_an_abandoned_response_is_not_written_and_causes_no_log_entry(caplog: pytest.LogCaptureFixture) -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    connection.data_received(GET)
    await settle()
    transport.close()
    connection.give_up_response()
    served.hold.set()
    await settle()
    assert transport.written == b""
    assert not caplog.records


async def test_the_repr_of_a_connection_shows_its_state() -> None:
    served = Served()
    served.hold.clear()
    connection, transport = served.connect()
    assert repr(connection) == "<ServerConnection idle reading=nothing unconfirmed=0>"
    connection.data_received(GET[:10])
    assert repr(connection) == "<ServerConnection idle reading=head unconfirmed=0>"
    connection.data_received(GET[10:])
    connection.if_unread(lambda: None)
    assert repr(connection) == "<ServerConnection serving reading=nothing unconfirmed=1>"
    transport.close()
    assert repr(connection) == "<ServerConnection gone reading=nothing unconfirmed=1>"
    served.hold.set()
    await settle()

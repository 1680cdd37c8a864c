"""Callers and replicas that leave: the holder of the session stores unread replies."""

import asyncio
import socket
import struct

import pytest

from emceepee.backends.http1.client_connection import ClientConnection
from emceepee.backends.http1.origin import HttpOrigin
from emceepee.backends.http1.response import HttpResponse
from emceepee.replicas.delivery_reports import DeliveryReport
from emceepee.replicas.holder_link import SETTLE_AFTER
from emceepee.replicas.hop_app import HopConnection
from emceepee.replicas.inbound_hops import GONE_SECONDS
from emceepee.replicas.signature import Hop
from emceepee.server.http.exchange import DISCONNECT_CHECK_AFTER, HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome
from emceepee.server.http.server_connection import CONFIRMED_TICKS, ServerConnection, is_unread
from emceepee.web.asgi import respond_json
from support.callers.raw_connection import RawConnection
from support.in_process.hops import HeldStream, Replicas, post, two_replicas
from support.waiting import eventually


def reset(caller: RawConnection) -> None:
    """Close without reading what has come."""
    caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    caller.cut()


def answer_with_news(replicas: Replicas) -> None:
    """Each response carries something that must not be lost."""

    async def serve(request: HttpRequest, body: bytes) -> bool:
        replicas.target.keep_if_unread(request, body.decode())
        await respond_json(request.send, 200, {"news": 1})
        return True

    replicas.target.serve = serve


def kept(replicas: Replicas) -> int:
    return sum(len(sender.exchanges) for sender in replicas.listener._hops._known.values())


class SlowAnswer:
    """A response that the test lets go."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self.go, self.was_gone = asyncio.Event(), asyncio.Event()
        self.began = asyncio.Event()
        replicas.target.serve = self.serve

    async def serve(self, request: HttpRequest, body: bytes) -> bool:
        self.began.set()
        await self.go.wait()
        if request.connection.is_gone():
            self.was_gone.set()
            request.connection.give_up_response()
            return True
        self._replicas.target.keep_if_unread(request, body.decode())
        await respond_json(request.send, 200, {"news": 1})
        return True


async def test_a_caller_that_disconnects_during_its_call_is_reported_to_the_holder(replicas: Replicas) -> None:
    answer = SlowAnswer(replicas)
    caller = replicas.post(b"1")
    await asyncio.wait_for(answer.began.wait(), 10)
    await replicas.clock.advance(DISCONNECT_CHECK_AFTER)
    caller.cut()
    connection = replicas.target.requests[0].connection
    await eventually(connection.is_gone, what="the holder sees that the caller is gone")
    answer.go.set()
    await asyncio.wait_for(answer.was_gone.wait(), 10)
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED])


async def test_a_disconnect_during_a_quick_call_is_noticed_before_the_response_is_written(
    replicas: Replicas,
) -> None:
    answer = SlowAnswer(replicas)
    caller = replicas.post(b"1")
    await asyncio.wait_for(answer.began.wait(), 10)
    caller.cut()
    await eventually(replicas.asked[0].connection.is_gone)
    answer.go.set()
    await eventually(lambda: replicas.target.unread == ["1"], what="the holder hears that its response was not read")
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED])


async def test_a_caller_that_closes_its_stream_is_reported_to_the_holder_at_once(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    await replicas.clock.advance(DISCONNECT_CHECK_AFTER)
    await stream.write(b": one\n\n")
    await eventually(lambda: caller.read_some() and b": one" in caller.received)
    caller.cut()
    await asyncio.wait_for(stream.was_left.wait(), 10)
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED])


async def test_an_unread_response_is_reported_to_the_holder(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.until_data()
    reset(caller)
    await eventually(lambda: replicas.target.unread == ["1"], what="the holder hears of it")
    assert kept(replicas) == 0


async def test_the_unread_end_of_a_stream_is_reported_to_the_holder(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post(b"1")
    await eventually(lambda: stream.request is not None)
    assert stream.request is not None
    replicas.target.keep_if_unread(stream.request, "end")
    await stream.write(b"data: 1\n\n", is_last=True)
    await caller.until_data()
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED])
    reset(caller)
    await eventually(lambda: replicas.target.unread == ["end"], what="the holder hears of it")


async def test_the_next_request_of_the_same_caller_confirms_that_the_response_was_read(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    assert kept(replicas) == 1
    for number in range(2, 5):
        caller.received = b""
        caller.received = b""
        caller.send(post(b"%d" % number))
        await caller.answer()
        assert kept(replicas) == 1  # what came before rode on the request
    assert replicas.target.unread == []


async def test_a_caller_that_reads_its_response_and_closes_leaves_no_unconfirmed_reply(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    caller.cut()

    async def is_settled() -> bool:
        await replicas.clock.advance(SETTLE_AFTER)
        return kept(replicas) == 0

    await eventually(is_settled)
    assert replicas.target.unread == []


async def test_a_request_of_another_caller_on_the_same_connection_confirms_nothing(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.until_data()
    for number in range(2, 5):
        await replicas.post(b"%d" % number).answer()
    assert "(1, 7, 1, 4)" in repr(replicas.listener)  # slot, epoch, connections, what is kept
    reset(caller)
    await eventually(lambda: replicas.target.unread == ["1"])


async def test_a_response_counts_as_read_after_two_seconds(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    for _ in range(CONFIRMED_TICKS + 1):
        replicas.table.tick()
    await replicas.clock.advance(SETTLE_AFTER)
    await eventually(lambda: kept(replicas) == 0)
    reset(caller)
    assert replicas.target.unread == []


async def test_a_caller_that_disconnects_does_not_make_responses_of_other_callers_unread(replicas: Replicas) -> None:
    """The connection between the replicas, which closes with the caller, also carried another caller's response."""
    answer_with_news(replicas)
    reader = replicas.post(b"1")
    await reader.answer()
    answer = SlowAnswer(replicas)
    leaver = replicas.post(b"2")
    await asyncio.wait_for(answer.began.wait(), 10)
    await replicas.clock.advance(DISCONNECT_CHECK_AFTER)
    leaver.cut()
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED] * 2)
    await eventually(lambda: "(1, 7, 1, 1)" in repr(replicas.listener), what="another connection is there")
    await replicas.clock.advance(2 * GONE_SECONDS)
    assert replicas.target.unread == []
    answer.go.set()


async def test_a_holder_that_was_unreachable_later_receives_the_report_of_an_unread_response() -> None:
    async with two_replicas(listen=("127.0.0.1", 0)) as replicas:
        answer_with_news(replicas)
        caller = replicas.post(b"1")
        await caller.until_data()
        link = replicas.forwarder._links[replicas.holder]
        connections, link._connections = link._connections, link.parts.pool.of(HttpOrigin(False, "127.0.0.1", 1))
        reset(caller)
        await eventually(lambda: link._attempts > 0, what="the holder was unreachable")
        link._connections = connections
        await replicas.clock.advance(SETTLE_AFTER)
        await eventually(lambda: replicas.target.unread == ["1"])


async def test_a_holder_that_proves_to_be_alive_receives_the_report_that_its_response_was_lost(
    replicas: Replicas,
) -> None:
    async def break_off(request: HttpRequest, body: bytes) -> bool:
        replicas.target.keep_if_unread(request, body.decode())
        request.connection.abort_response()
        return True

    replicas.target.serve = break_off
    assert await replicas.post(b"1").answer() == {"outcome": "LOST"}
    await eventually(lambda: replicas.target.unread == ["1"])


async def test_a_failed_report_of_a_lost_request_is_sent_again(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def abort(request: HttpRequest, body: bytes) -> bool:
        request.connection.abort_response()
        return True

    told: list[DeliveryReport] = []

    def keep(hop: Hop, news: DeliveryReport, *, is_farewell: bool) -> None:
        told.append(news)

    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    monkeypatch.setattr(replicas.listener._hops, "settle", keep)
    replicas.target.serve = abort
    caller.received = b""
    caller.send(post(b"2"))
    assert await caller.answer() == {"outcome": "LOST"}
    await eventually(lambda: told == [DeliveryReport(read=(1,), unread=(2,))])


async def test_a_replica_that_stops_in_order_leaves_no_unconfirmed_reply() -> None:
    async with two_replicas() as replicas:
        answer_with_news(replicas)
        caller = replicas.post(b"1")
        await caller.answer()
        await replicas.forwarder.take_leave()
        assert kept(replicas) == 0
        assert replicas.target.unread == []


@pytest.mark.parametrize("is_acknowledged", [False, True])
async def test_a_response_forwarded_just_before_its_replica_stops_counts_as_read(
    replicas: Replicas, is_acknowledged: bool
) -> None:
    """The caller's system has received the response, but acknowledges only the first ones at once."""
    answer_with_news(replicas)
    caller = replicas.caller()
    for _ in range(19):
        caller.received = b""
        caller.send(post(b"early"))
        await caller.answer()
    answer = SlowAnswer(replicas)
    caller.send(post(b"last"))
    await asyncio.wait_for(answer.began.wait(), 10)
    answer.go.set()
    passing = replicas.tasks[-1]
    assert passing is not None
    await asyncio.wait_for(passing, 10)
    connection = replicas.asked[-1].connection
    assert isinstance(connection, ServerConnection)
    if is_acknowledged:
        await eventually(lambda: not is_unread(connection.transport))
    connection.shutdown()
    await eventually(connection.is_gone)
    await replicas.forwarder.take_leave()
    assert (replicas.target.unread, kept(replicas)) == ([], 0)


async def test_the_responses_of_a_killed_replica_count_as_unread(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    replicas.forwarder.drop(replicas.holder)  # it tells nothing any more
    for connection in list(replicas.forwarder._parts.pool.open):
        connection.abort()
    await eventually(lambda: "(1, 7, 0, 1)" in repr(replicas.listener))
    await replicas.clock.advance(GONE_SECONDS)
    assert replicas.target.unread == ["1"]


async def test_the_responses_of_a_replica_whose_lease_expired_count_as_unread(replicas: Replicas) -> None:
    answer_with_news(replicas)
    caller = replicas.post(b"1")
    await caller.answer()
    replicas.listener.drop(replicas.own)
    assert replicas.target.unread == ["1"]


@pytest.mark.parametrize(
    "standing", [b"GET /mcp HTTP/1.1\r\nhost: here\r\n\r\n", post(b"{}", "mcp-method: subscriptions/listen")]
)
async def test_a_stopping_replica_ends_streams_without_pending_calls_and_then_stops_waiting(
    replicas: Replicas, standing: bytes
) -> None:
    streams = [HeldStream(), HeldStream()]
    waiting = iter(streams)

    async def serve(request: HttpRequest, body: bytes) -> bool:
        return await next(waiting).serve(request, body)

    replicas.target.serve, replicas.lost_reply = serve, lambda: b"lost"
    listening, asking = replicas.caller(), replicas.caller()
    listening.send(standing)
    await eventually(lambda: streams[0].request is not None)
    asking.send(post())
    await eventually(lambda: streams[1].request is not None)
    await eventually(lambda: all(caller.read_some() and caller.received for caller in (listening, asking)))
    assert replicas.forwarder.is_passing
    replicas.forwarder.end_streams()
    await eventually(lambda: listening.read_some() and listening.received.endswith(b"0\r\n\r\n"))
    await asyncio.wait_for(streams[0].was_left.wait(), 10)
    assert replicas.outcomes == [ForwardOutcome.ANSWERED]
    assert replicas.forwarder.is_passing
    replicas.forwarder.break_off()
    await eventually(lambda: asking.read_some() and asking.received.endswith(b"data: lost\n\n\r\n0\r\n\r\n"))
    await asyncio.wait_for(streams[1].was_left.wait(), 10)
    await eventually(lambda: not replicas.forwarder.is_passing)


@pytest.mark.parametrize("is_watched", [False, True])
async def test_canceling_a_forwarded_request_cancels_it_at_the_holder(replicas: Replicas, is_watched: bool) -> None:
    answer = SlowAnswer(replicas)
    replicas.post(b"1")
    await asyncio.wait_for(answer.began.wait(), 10)
    if is_watched:
        await replicas.clock.advance(DISCONNECT_CHECK_AFTER)
    [task] = replicas.tasks
    assert task is not None
    task.cancel()
    await eventually(replicas.target.requests[0].connection.is_gone)
    answer.go.set()
    await asyncio.wait_for(answer.was_gone.wait(), 10)


async def test_a_request_that_arrives_at_a_stopping_holder_did_not_run(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is still in the socket buffer when the connection closes. Its sender learns that it was not read."""
    joined: list[HopConnection] = []
    join, send = HopConnection.join, ClientConnection.send

    def watched_join(connection: HopConnection, hop: Hop) -> None:
        joined.append(connection)
        join(connection, hop)

    def send_too_late(connection: ClientConnection, request: bytes) -> HttpResponse:
        response = send(connection, request)
        joined[0].shutdown()
        return response

    monkeypatch.setattr(HopConnection, "join", watched_join)
    replicas.post(b"1")
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED])
    monkeypatch.setattr(ClientConnection, "send", send_too_late)
    replicas.post(b"2")
    await eventually(lambda: replicas.outcomes == [ForwardOutcome.ANSWERED, ForwardOutcome.UNREACHABLE])
    assert replicas.target.bodies == [b"1"]

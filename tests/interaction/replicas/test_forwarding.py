"""Requests that a replica forwards to the holder of their session, over real sockets."""

import asyncio
import json
import socket
from pathlib import Path

import pytest

from emceepee.replicas.listener import bind
from emceepee.replicas.replication import tls_contexts
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome
from emceepee.state.replica import Replica
from emceepee.web.asgi import respond
from support.callers.raw_connection import RawConnection
from support.in_process.hops import ADA, KEY, HeldStream, Replicas, post, two_replicas
from support.system.certificates import self_signed
from support.waiting import eventually

LOOPBACK = ("127.0.0.1", 0)


def status_of(caller: RawConnection) -> int:
    return int(caller.received.split(b" ", 2)[1])


async def outcome_of(replicas: Replicas) -> ForwardOutcome:
    await eventually(lambda: bool(replicas.outcomes), what="the request has an outcome")
    return replicas.outcomes[-1]


async def test_the_response_of_the_holder_is_returned_to_the_caller(replicas: Replicas) -> None:
    caller = replicas.post(b'{"a":1}', "mcp-session-id: S-02", "x-twice: 1", "x-twice: 2", target="/mcp?session=x%20y")
    assert await caller.answer() == {"a": 1}
    [request] = replicas.target.requests
    assert (request.scope["method"], request.scope["path"], request.query) == ("POST", "/mcp", b"session=x%20y")
    assert request.headers[b"mcp-session-id"] == b"S-02"
    assert [text for name, text in request.scope["headers"] if name == b"x-twice"] == [b"1", b"2"]
    assert request.identity == ADA
    assert replicas.outcomes == [ForwardOutcome.ANSWERED]


async def test_consecutive_forwarded_requests_share_a_connection(replicas: Replicas) -> None:
    caller = replicas.caller()
    for _ in range(5):
        caller.received = b""
        caller.send(post())
        await caller.answer()
    other = replicas.post()
    await other.answer()
    assert "(1, 7, 1, 0)" in repr(replicas.listener)  # slot, epoch, connections, what is kept


async def test_no_credential_and_no_forged_signature_leaves_the_forwarding_replica(replicas: Replicas) -> None:
    forged = ("emceepee-hop: 1 2.9 1.7 0 x.1 0:cm9vdA== - 00", "authorization: Bearer t", "cookie: login=c")
    caller = replicas.post(b"{}", *forged)
    await caller.answer()
    [request] = replicas.target.requests
    assert request.identity == ADA
    assert request.headers.keys().isdisjoint({b"emceepee-hop", b"authorization", b"cookie"})
    assert b"emceepee-hop" not in caller.received


async def test_the_holder_distinguishes_the_connections_of_different_callers(replicas: Replicas) -> None:
    """All callers share one connection of the forwarding replica, and no caller can use the identity of another."""
    first, second = replicas.caller(), replicas.caller()
    for caller in (first, second, first):
        caller.received = b""
        caller.send(post(b"{}", "emceepee-line: forged 1"))
        await caller.answer()
    names = [request.connection.line.name for request in replicas.target.requests]
    assert (names[0] == names[2], names[0] == names[1], "forged" in names) == (True, False, False)
    assert all(b"emceepee-line" not in request.headers for request in replicas.target.requests)


@pytest.mark.parametrize("size", [0, 100, 300_000, 8_000_000])
async def test_bodies_of_any_size_are_forwarded_in_both_directions(replicas: Replicas, size: int) -> None:
    body = bytes(range(256)) * (size // 256)
    reader, writer = await asyncio.open_connection("127.0.0.1", int(replicas.url.rpartition(":")[2]), limit=1 << 25)
    writer.write(post(body))
    async with asyncio.timeout(20):
        head = await reader.readuntil(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head
        assert await reader.readexactly(len(body)) == body
    writer.close()
    assert replicas.target.bodies == [body]


async def test_a_caller_that_does_not_read_pauses_the_holder(replicas: Replicas) -> None:
    written = 0
    part = b"x" * 100_000

    async def flood(request: HttpRequest, body: bytes) -> bool:
        nonlocal written
        await request.send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(600):
            await request.send({"type": "http.response.body", "body": part, "more_body": number < 599})
            written += len(part)
        return True

    replicas.target.serve = flood
    caller = replicas.post()
    seen: list[int] = []

    def is_stuck() -> bool:
        seen.append(written)
        return written > 0 and len(seen) > 10 and len(set(seen[-10:])) == 1

    await eventually(is_stuck, what="the holder waits")
    assert written < 30_000_000
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"0\r\n\r\n"))
    assert len(caller.received) > 60_000_000


async def test_a_stream_is_forwarded_chunk_by_chunk(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    for number in range(3):
        await stream.write(b"event: message\ndata: %d\n\n" % number)
        await eventually(lambda: caller.read_some() and caller.received.count(b"data: ") > number)  # noqa: B023  # at once
    await stream.write(b"", is_last=True)
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"0\r\n\r\n"))
    assert caller.received.count(b"content-type: text/event-stream") == 1
    assert await outcome_of(replicas) is ForwardOutcome.ANSWERED


async def test_a_forwarded_stream_may_be_idle_for_long(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    await replicas.clock.advance(3600)
    await stream.write(b": late\n\n", is_last=True)
    await eventually(lambda: caller.read_some() and b": late" in caller.received)


# Nobody there, or not the right one.


async def test_a_replica_that_does_not_hold_the_session_does_not_run_the_request(replicas: Replicas) -> None:
    async def not_here(request: HttpRequest, body: bytes) -> bool:
        return False

    replicas.target.serve = not_here
    assert await replicas.post().answer() == {"outcome": "NOT_HELD"}


async def test_a_replica_without_a_console_reports_that_it_does_not_hold_it(replicas: Replicas) -> None:
    assert await replicas.post(target="/api/sessions").answer() == {"outcome": "NOT_HELD"}
    assert replicas.target.requests == []


@pytest.mark.parametrize("listen", [None, LOOPBACK])
async def test_a_stopped_replica_is_reported_as_unreachable(listen: tuple[str, int] | None) -> None:
    async with two_replicas(listen=listen) as replicas:
        await replicas.stop_holder()
        assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}
        replicas.target.requests.clear()


async def test_an_idle_connection_that_the_holder_closed_is_not_reused(replicas: Replicas) -> None:
    await replicas.post().answer()
    await replicas.stop_holder()
    assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}


async def test_a_replica_with_an_invalid_address_is_reported_as_unreachable(replicas: Replicas) -> None:
    replicas.holder = Replica(slot=3, epoch=1, address="")
    assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}


async def test_connecting_to_another_replica_times_out_after_two_seconds(replicas: Replicas) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        url = f"http://127.0.0.1:{full.getsockname()[1]}"
        with socket.create_connection(full.getsockname()):  # the one place that there is
            replicas.holder = Replica(slot=3, epoch=1, address=url)
            caller = replicas.post()
            await eventually(lambda: replicas.clock.is_waited_for)
            await replicas.clock.advance(2)
            assert await caller.answer() == {"outcome": "UNREACHABLE"}


@pytest.mark.parametrize(
    "other", [Replica(slot=2, epoch=8, address=""), Replica(slot=4, epoch=9, address="")], ids=["epoch", "slot"]
)
async def test_a_request_for_an_earlier_replica_at_the_same_address_is_not_served(
    replicas: Replicas, other: Replica
) -> None:
    replicas.holder = Replica(slot=other.slot, epoch=other.epoch, address=replicas.holder.address)
    assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}
    assert replicas.target.requests == []


async def test_replicas_with_different_secrets_do_not_serve_each_other() -> None:
    async with two_replicas(holder_key=KEY[::-1]) as replicas:
        assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}
        assert replicas.target.requests == []


# The holder is lost.


async def abort_at_once(request: HttpRequest, body: bytes) -> bool:
    request.connection.abort_response()
    return True


async def abort_after_head(request: HttpRequest, body: bytes) -> bool:
    headers = [(b"content-length", b"10")]
    await request.send({"type": "http.response.start", "status": 200, "headers": headers})
    await request.send({"type": "http.response.body", "body": b"12345", "more_body": True})
    request.connection.abort_response()
    return True


@pytest.mark.parametrize("serve", [abort_at_once, abort_after_head])
async def test_a_holder_that_dies_before_its_response_loses_the_request_and_writes_nothing(
    replicas: Replicas, serve: "object"
) -> None:
    replicas.target.serve = serve  # type: ignore[assignment]  # pytest cannot say what it is
    assert await replicas.post().answer() == {"outcome": "LOST"}


async def test_a_holder_that_dies_during_a_large_response_truncates_it(replicas: Replicas) -> None:
    is_time_to_go = asyncio.Event()

    async def half(request: HttpRequest, body: bytes) -> bool:
        headers = [(b"content-length", b"1000000")]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        await request.send({"type": "http.response.body", "body": b"x" * 500_000, "more_body": True})
        await is_time_to_go.wait()
        request.connection.abort_response()
        return True

    replicas.target.serve = half
    caller = replicas.post()
    await eventually(lambda: caller.read_some() and len(caller.received) > 500_000)
    is_time_to_go.set()
    assert len(await caller.until_closed()) < 600_000
    assert await outcome_of(replicas) is ForwardOutcome.ANSWERED


async def test_a_stream_whose_holder_dies_ends_with_an_error_response(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    await stream.write(b"event: message\ndata: 1\n\n")
    await eventually(lambda: caller.read_some() and b"data: 1" in caller.received)
    assert stream.request is not None
    stream.request.connection.abort_response()
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"0\r\n\r\n"))
    assert b'event: message\ndata: {"lost":1}\n\n' in caller.received
    assert await outcome_of(replicas) is ForwardOutcome.ANSWERED


async def test_a_stream_that_is_cut_inside_an_event_ends_without_an_error_response(replicas: Replicas) -> None:
    """The parser would read later bytes as the second half of the event."""
    stream = HeldStream()
    replicas.target.serve = stream.serve
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    await stream.write(b"event: message\ndata: {")
    await eventually(lambda: caller.read_some() and b"data: {" in caller.received)
    assert stream.request is not None
    stream.request.connection.abort_response()
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"0\r\n\r\n"))
    assert b"lost" not in caller.received


async def test_a_stream_without_a_pending_response_ends_when_its_holder_dies(replicas: Replicas) -> None:
    stream = HeldStream()
    replicas.target.serve, replicas.lost_reply = stream.serve, lambda: None
    caller = replicas.post()
    await eventually(lambda: stream.request is not None)
    assert stream.request is not None
    stream.request.connection.abort_response()
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"\r\n\r\n0\r\n\r\n"))


async def test_a_forwarded_request_ends_when_the_lease_of_a_silent_holder_expires(replicas: Replicas) -> None:
    stopped = asyncio.Event()

    async def never(request: HttpRequest, body: bytes) -> bool:
        await stopped.wait()
        return True

    replicas.target.serve = never
    caller = replicas.post()
    await eventually(lambda: bool(replicas.target.requests))
    replicas.forwarder.drop(Replica(slot=2, epoch=8, address=""))  # another
    replicas.forwarder.drop(replicas.holder)
    assert await caller.answer() == {"outcome": "LOST"}
    replicas.target.requests[0].connection.give_up_response()
    stopped.set()


async def test_a_failure_of_the_holder_is_returned_to_the_caller(
    replicas: Replicas, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(request: HttpRequest, body: bytes) -> bool:
        raise ZeroDivisionError

    replicas.target.serve = fail
    caller = replicas.post()
    await eventually(lambda: caller.read_some() and caller.received.endswith(b"\r\n\r\n"))
    assert status_of(caller) == 500
    assert "ZeroDivisionError" in caplog.text


# Roads.


async def test_forwarding_works_over_a_tcp_port_as_over_a_unix_socket() -> None:
    async with two_replicas(listen=LOOPBACK) as replicas:
        assert replicas.bound.address.startswith("http://127.0.0.1:")
        assert await replicas.post(b'{"a":1}').answer() == {"a": 1}


def test_the_unix_socket_of_a_replica_is_in_a_private_folder_and_is_removed_at_the_end() -> None:
    with bind(None) as bound:
        path = Path(bound.address.removeprefix("unix:"))
        assert path.is_socket()
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.parent.exists()


async def test_replicas_use_tls_and_show_their_certificates(tmp_path: Path) -> None:
    file = self_signed(tmp_path)
    contexts = tls_contexts(file, file, file)
    async with two_replicas(listen=LOOPBACK, server_tls=contexts.server, client_tls=contexts.client) as replicas:
        assert replicas.bound.address.startswith("https://127.0.0.1:")
        assert await replicas.post(b'{"a":1}').answer() == {"a": 1}


async def test_replicas_that_share_one_certificate_need_no_authority(tmp_path: Path) -> None:
    file = self_signed(tmp_path)
    contexts = tls_contexts(file, file)
    async with two_replicas(listen=LOOPBACK, server_tls=contexts.server, client_tls=contexts.client) as replicas:
        assert await replicas.post(b'{"a":1}').answer() == {"a": 1}


async def test_a_replica_without_the_certificate_authority_does_not_trust_the_others(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    file, other = self_signed(mine), self_signed(theirs)
    server, client = tls_contexts(file, file, file).server, tls_contexts(other, other, other).client
    async with two_replicas(listen=LOOPBACK, server_tls=server, client_tls=client) as replicas:
        assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}


async def test_a_replica_without_tls_cannot_reach_a_replica_that_requires_it(tmp_path: Path) -> None:
    file = self_signed(tmp_path)
    async with two_replicas(listen=LOOPBACK, server_tls=tls_contexts(file, file).server) as replicas:
        assert await replicas.post().answer() == {"outcome": "UNREACHABLE"}


async def test_status_and_headers_of_a_response_are_forwarded(replicas: Replicas) -> None:
    async def moved(request: HttpRequest, body: bytes) -> bool:
        await respond(request.send, 404, json.dumps({"error": 1}).encode(), (b"x-own", b"1"))
        return True

    replicas.target.serve = moved
    caller = replicas.post()
    assert await caller.answer() == {"error": 1}
    assert status_of(caller) == 404
    assert b"x-own: 1\r\n" in caller.received

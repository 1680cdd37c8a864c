"""Streams that end early: the position, the delay, and the number of their resumptions."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from emceepee.backends.http.resumed_stream import PROOF_SECONDS
from emceepee.backends.link import Link
from support.backends.raw_links import JSON, STREAM, WatchedDialer, a_dialer, a_link, asking, chunk, event, result_for
from support.backends.raw_server import Peer, RawServer
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock, FakeHandle, settle
from support.figures import record_figure
from support.waiting import eventually


class NotingClock(FakeClock):
    """Keeps how long each sleep was to be."""

    def __init__(self) -> None:
        super().__init__()
        self.sleeps: list[float] = []
        self.alarms: list[float] = []  # after how long each was to ring

    def call_later(self, delay: float, callback: Callable[[], None]) -> FakeHandle:
        self.alarms.append(delay)
        return super().call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        self.sleeps.append(delay)
        await super().sleep(delay)

    async def slept(self, times: int) -> None:
        """Let as much time pass as the last of so many sleeps wants."""
        await eventually(lambda: len(self.sleeps) == times)
        await self.advance(self.sleeps[-1])


@pytest.fixture
def clock() -> NotingClock:
    return NotingClock()


@pytest.fixture
async def dialer(clock: NotingClock) -> AsyncIterator[WatchedDialer]:
    async with a_dialer(clock) as running:
        yield running


async def test_a_stream_that_is_cut_inside_an_answer_is_resumed_before_it(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    taken_up_from: list[list[str]] = []
    async with a_link(dialer, server) as (link, peer):
        for cut in itertools.count():
            call = asking(link)
            answer = b"id: 2\nevent: message\ndata: " + result_for(await peer.request(), ok=True) + b"\n\n"
            peer.send(STREAM + chunk(b"id: 1\ndata:\n\n") + (chunk(answer[:cut]) if cut else b""))
            if cut == len(answer):
                assert await call == {"ok": True}
                break
            peer.close()
            await eventually(lambda: not dialer.pool.open)
            await clock.advance(60)
            peer = await server.peer()
            taken_up_from.append((await peer.request()).all("last-event-id"))
            peer.send(STREAM + chunk(answer) + b"0\r\n\r\n")
            assert await call == {"ok": True}
    kept = taken_up_from.count(["1"])
    record_figure(f"{kept} of {len(taken_up_from)} cuts lose nothing")
    assert kept == len(taken_up_from) > 50


def rounded(pauses: list[float]) -> list[float]:
    return [round(pause, 3) for pause in pauses]


GROWING = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


async def test_a_push_stream_that_always_ends_at_once_is_reopened_after_ever_longer_pauses(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server, pushes=True) as (_, peer):
        for times in range(1, len(GROWING) + 1):
            assert (await peer.request()).line.startswith("GET ")
            peer.send(STREAM + chunk(b"retry: 0\n\n") + b"0\r\n\r\n")
            await clock.slept(times)
        within = sum(1 for total in itertools.accumulate(clock.sleeps) if total <= 3) + 1
        record_figure(f"{within} GETs in three seconds")
        assert rounded(clock.sleeps) == GROWING


async def test_a_push_stream_that_lasted_is_reopened_after_the_retry_time_of_its_server(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    heard = (listener := ScriptedListener()).heard
    async with a_link(dialer, server, pushes=True, listener=listener) as (_, peer):
        for times, lasts in enumerate((0, 0, 0, 5, 0, 5), start=1):
            assert (await peer.request()).line.startswith("GET ")
            peer.send(STREAM + chunk(b'retry: 150\ndata: {"method": "notifications/x"}\n\n'))
            await eventually(lambda times=times: len(heard) == times)  # type: ignore[misc]  # bound to this turn
            await clock.advance(lasts)
            peer.send(b"0\r\n\r\n")
            await clock.slept(times)
        assert rounded(clock.sleeps) == [0.15, 0.2, 0.4, 0.15, 0.2, 0.15]


async def test_an_answer_that_is_cut_repeatedly_is_requested_less_and_less_often(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        request = await peer.request()
        for times in range(1, 10):
            peer.send(STREAM + chunk(b"id: 1\nretry: 0\ndata:\n\n") + b"0\r\n\r\n")
            await clock.slept(times)
            assert (await peer.request()).all("last-event-id") == ["1"]
        peer.send(STREAM + chunk(b"data: " + result_for(request, ok=True) + b"\n\n") + b"0\r\n\r\n")
        assert await call == {"ok": True}
        assert rounded(clock.sleeps) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]


async def test_a_push_stream_with_an_unknown_last_event_id_starts_from_scratch(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server, "mcp-session-id: s1", pushes=True) as (link, peer):
        await peer.request()
        peer.send(STREAM + chunk(b"id: 7\ndata:\n\n") + b"0\r\n\r\n")
        await clock.slept(1)
        assert (await peer.request()).all("last-event-id") == ["7"]
        peer.answer(b"Invalid event ID format", status="400 Bad Request")
        ping = await peer.request()
        peer.answer(result_for(ping), JSON)
        await clock.slept(2)
        again = await peer.request()
        assert (again.line, again.all("last-event-id")) == ("GET /mcp HTTP/1.1", [])
        assert not link.closed.done()


async def test_a_push_stream_that_is_refused_for_a_lost_session_ends_the_link(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server, "mcp-session-id: s1", pushes=True) as (link, peer):
        await peer.request()
        peer.send(STREAM + b"0\r\n\r\n")
        await clock.slept(1)
        await peer.request()
        peer.answer(b"what session?", status="400 Bad Request")
        assert (await peer.request()).line.startswith("POST ")
        peer.answer(b"what session?", status="400 Bad Request")
        async with asyncio.timeout(10):
            assert (await link.closed).reason == "the server no longer knows our session"


# A stream that was taken up again and stays silent: the server may have lost track of it.


async def taken_up(
    server: RawServer, clock: NotingClock, link: Link, peer: Peer
) -> tuple[asyncio.Task[Any], bytes, Peer]:
    """A call whose stream was cut and taken up again, its answer, and the server's end of the second stream."""
    call = asking(link)
    answer = chunk(b"id: 2\ndata: " + result_for(await peer.request(), ok=True) + b"\n\n")
    peer.send(STREAM + chunk(b"id: 1\nretry: 0\ndata:\n\n"))
    await eventually(lambda: not call.done())
    peer.reset()
    await clock.slept(1)
    second = await server.peer()
    assert (await second.request()).all("last-event-id") == ["1"]
    second.send(STREAM)
    return call, answer, second


async def beside(server: RawServer, clock: NotingClock, seconds: float) -> Peer:
    """The stream that is opened after so long a silence."""
    before = len(server.accepted)
    await clock.advance(seconds - 1)
    assert len(server.accepted) == before
    await clock.advance(1)
    peer = await server.peer()
    assert (await peer.request()).all("last-event-id") == ["1"]
    return peer


async def refuse(peer: Peer) -> None:
    peer.answer(b"", "connection: close", status="409 Conflict")
    peer.close()
    await peer.gone()


async def test_an_answer_that_the_server_stored_but_did_not_send_arrives_over_another_stream(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call, answer, silent = await taken_up(server, clock, link, peer)
        third = await beside(server, clock, 5)
        third.send(STREAM + answer)
        assert await call == {"ok": True}
        await silent.gone()


async def test_a_silent_stream_that_the_server_still_serves_is_not_replaced(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    """The server refuses another stream, or ends it at once."""
    async with a_link(dialer, server) as (link, peer):
        call, answer, second = await taken_up(server, clock, link, peer)
        await refuse(await beside(server, clock, 5))
        second.send(chunk(b": still here\n\n"))
        ended = await beside(server, clock, 10)
        ended.send(STREAM + b"0\r\n\r\n")
        ended.close()
        await ended.gone()
        second.send(answer)
        assert await call == {"ok": True}


async def test_a_new_push_stream_that_stays_open_replaces_the_silent_one(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call, answer, second = await taken_up(server, clock, link, peer)
        third = await beside(server, clock, 5)
        third.send(STREAM)
        await eventually(lambda: clock.alarms[-1] == PROOF_SECONDS)
        await clock.advance(PROOF_SECONDS)
        await second.gone()
        third.send(answer)
        assert await call == {"ok": True}


async def test_a_stream_that_was_never_cut_may_stay_silent(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    async with a_link(dialer, server) as (link, peer):
        call = asking(link)
        answer = chunk(b"data: " + result_for(await peer.request(), ok=True) + b"\n\n")
        peer.send(STREAM + chunk(b"id: 1\ndata:\n\n"))
        await clock.advance(600)
        assert len(server.accepted) == 1
        peer.send(answer)
        assert await call == {"ok": True}


async def test_a_cut_push_stream_is_probed_only_a_few_times(
    dialer: WatchedDialer, server: RawServer, clock: NotingClock
) -> None:
    heard = (listener := ScriptedListener()).heard
    async with a_link(dialer, server, pushes=True, listener=listener) as (_, peer):
        await peer.request()
        peer.send(STREAM + chunk(b"id: 1\nretry: 0\ndata:\n\n") + b"0\r\n\r\n")
        await clock.slept(1)
        await peer.request()
        peer.send(STREAM)
        await settle()
        for seconds in (5, 10, 20):
            await refuse(await beside(server, clock, seconds))
        last = await beside(server, clock, 40)
        last.send(STREAM + event(b'{"method": "notifications/x"}'))
        await eventually(lambda: len(heard) == 1)
        count = len(server.accepted)
        await clock.advance(3600)
        assert len(server.accepted) == count

"""Streams that end too early: what is taken up where, how soon, and how often."""

import itertools
from collections.abc import AsyncIterator

import pytest

from emceepee.backends.dialer import Dialer
from support.fake_clock import FakeClock
from support.raw_links import STREAM, a_dialer, a_link, asking, chunk, result_for
from support.raw_server import RawServer, raw_server
from support.waiting import eventually


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def dialer(clock: FakeClock) -> AsyncIterator[Dialer]:
    async with a_dialer(clock) as running:
        yield running


async def test_a_stream_cut_anywhere_inside_the_answer_is_taken_up_before_it(
    dialer: Dialer, server: RawServer, clock: FakeClock
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
            await eventually(lambda: not dialer._pool.open)
            await clock.advance(60)
            peer = await server.peer()
            taken_up_from.append((await peer.request()).all("last-event-id"))
            peer.send(STREAM + chunk(answer) + b"0\r\n\r\n")
            assert await call == {"ok": True}
    kept = taken_up_from.count(["1"])
    print(f"{kept} of {len(taken_up_from)} cuts lose nothing")
    assert kept == len(taken_up_from) > 50

"""The log behind resumable streams."""

import asyncio
from contextlib import aclosing
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emceepee.clock import milliseconds
from emceepee.ids import Ulids
from emceepee.server.message_log import FRESH_SECONDS, PUSH, Kept, MessageLog
from emceepee.state.limits import Limits
from support.fake_clock import FakeClock, settle


def a_log(clock: FakeClock | None = None, **limits: Any) -> MessageLog:
    clock = clock or FakeClock()
    return MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), Limits(**limits))


async def read(log: MessageLog, stream: str, after: int, count: int | None = None) -> list[bytes]:
    """What a reader hears, until the stream ends or it has heard `count` messages."""
    heard: list[bytes] = []
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow(stream, after))) as entries:
        while count is None or len(heard) < count:
            entry = await anext(entries, None)
            if entry is None:
                break
            heard.append(entry.data)
    return heard


@settings(max_examples=200, deadline=None)
@given(
    streams=st.lists(st.sampled_from(["a", "b", PUSH]), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    pauses=st.lists(st.booleans(), min_size=40, max_size=40),
)
async def test_a_reader_that_is_cut_anywhere_hears_everything_once(
    streams: list[str], cuts: list[int], pauses: list[bool]
) -> None:
    """However appending and reading interleave, and wherever the reader is cut and comes back by its last id."""
    log = a_log()
    opening = log.append("a", b"")
    expected: list[bytes] = []

    async def write() -> None:
        for number, stream in enumerate(streams):
            log.append(stream, str(number).encode())
            if stream == "a":
                expected.append(str(number).encode())
            if pauses[number]:
                await settle(3)
        log.append("a", b"end", is_final=True)

    async def follow() -> list[bytes]:
        heard: list[bytes] = []
        last = opening
        for cut in [*cuts, None]:
            found = log.find(last.event_id)
            assert found == last
            taken = 0
            async with aclosing(cast(Any, log.follow("a", found.number))) as entries:
                while cut is None or taken < cut:
                    entry: Kept | None = await anext(entries, None)
                    if entry is None:
                        break
                    heard.append(entry.data)
                    last, taken = entry, taken + 1
        return heard

    async with asyncio.timeout(5):
        heard, _ = await asyncio.gather(follow(), write())
    assert heard == [*expected, b"end"]


async def test_it_holds_so_many_messages_and_no_more() -> None:
    log = a_log(replay_messages=3)
    entries = [log.append("a", b"%d" % number) for number in range(5)]
    assert [log.find(entry.event_id) is not None for entry in entries] == [False, False, True, True, True]


async def test_it_forgets_what_is_old() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    old = log.append("a", b"old", is_final=True)
    await clock.advance(301)
    log.append("b", b"new")
    assert log.find(old.event_id) is None


async def test_a_stream_that_goes_on_can_be_taken_up_after_hours_of_silence() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    first = log.append("a", b"")
    await clock.advance(7200)
    log.append("b", b"elsewhere")
    assert log.find(first.event_id) == first
    log.append("a", b"end", is_final=True)
    assert await read(log, "a", first.number) == [b"end"]


async def test_large_messages_go_sooner_but_not_before_they_can_be_read() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_bytes=1000)
    first = log.append("a", b"x" * 900, is_final=True)
    second = log.append("b", b"y" * 900, is_final=True)
    assert log.find(first.event_id) == first
    await clock.advance(FRESH_SECONDS + 1)
    log.append("c", b"z")
    assert log.find(first.event_id) is None
    assert log.find(second.event_id) == second


async def test_a_stream_whose_end_is_no_longer_kept_ends_all_the_same() -> None:
    log = a_log(replay_messages=2)
    first = log.append("a", b"1")
    log.append("a", b"end", is_final=True)
    for number in range(5):
        log.append("b", b"%d" % number)
    assert await read(log, "a", first.number) == []


async def test_a_silent_stream_is_kept_awake() -> None:
    clock = FakeClock()
    log = a_log(clock)
    entries = log.follow(PUSH, 0)
    coming = asyncio.ensure_future(anext(aiter(entries)))
    await clock.advance(16)
    assert await coming is None
    await cast(Any, entries).aclose()


@pytest.mark.parametrize("given", ["", "1", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
async def test_an_id_that_was_never_given_out_is_unknown(given: str) -> None:
    log = a_log()
    log.append("a", b"1")
    assert log.find(given) is None


async def test_a_reader_that_falls_too_far_behind_is_let_go_instead_of_being_told_half() -> None:
    log = a_log(replay_messages=5)
    log.append("a", b"0")
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow("a", 0))) as entries:
        assert (await anext(entries)).data == b"0"
        for number in range(1, 9):
            log.append("a", str(number).encode(), is_final=number == 8)
        assert await anext(entries, None) is None
    assert await read(log, "a", 4) == [b"4", b"5", b"6", b"7", b"8"], "who comes back with what is kept hears the rest"


async def test_a_new_reader_of_pushes_hears_what_is_kept_even_if_older_ones_are_gone() -> None:
    log = a_log(replay_messages=3)
    for number in range(6):
        log.append(PUSH, str(number).encode())
    assert await read(log, PUSH, 0, count=3) == [b"3", b"4", b"5"]

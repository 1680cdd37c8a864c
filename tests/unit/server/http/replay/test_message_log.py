"""The log behind resumable streams."""

import asyncio
from contextlib import aclosing
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emceepee.clock import milliseconds
from emceepee.ids import Ulids
from emceepee.server.http.replay.message_eviction import FRESH_ROOM, FRESH_SECONDS
from emceepee.server.http.replay.message_log import BATCH_BYTES, BATCH_MESSAGES, PUSH, REPLAY_BYTES, Gap, MessageLog
from emceepee.server.http.replay.message_stream import Kept
from emceepee.state.limits import Limits
from support.fakes.clock import FakeClock, settle
from support.figures import record_figure


def a_log(clock: FakeClock | None = None, *, most_bytes: int = REPLAY_BYTES, **limits: Any) -> MessageLog:
    clock = clock or FakeClock()
    return MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), Limits(**limits), most_bytes=most_bytes)


async def read(log: MessageLog, stream: str, after: int, count: int | None = None) -> list[bytes]:
    """Return the messages of a reader until the stream ends or `count` messages have arrived."""
    heard: list[bytes] = []
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow(stream, after))) as entries:
        while count is None or len(heard) < count:
            entry = await anext(entries, None)
            if entry is None:
                break
            heard.append(b"(%d missed)" % entry.count if isinstance(entry, Gap) else entry.data)
    return heard


@settings(max_examples=200, deadline=None)
@given(
    streams=st.lists(st.sampled_from(["a", "b", PUSH]), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    pauses=st.lists(st.booleans(), min_size=40, max_size=40),
)
async def test_a_reader_that_disconnects_anywhere_receives_every_message_exactly_once(
    streams: list[str], cuts: list[int], pauses: list[bool]
) -> None:
    """For any interleaving of writes and reads, and any point where the reader disconnects and resumes."""
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


async def test_the_message_log_holds_a_limited_number_of_messages() -> None:
    log = a_log(replay_messages=3)
    entries = [log.append("a", b"%d" % number) for number in range(5)]
    assert [log.find(entry.event_id) is not None for entry in entries] == [False, False, True, True, True]


async def test_the_message_log_drops_old_messages() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    old = log.append("a", b"old", is_final=True)
    await clock.advance(301)
    log.append("b", b"new")
    assert log.find(old.event_id) is None


async def test_an_open_stream_can_be_resumed_after_hours_of_silence() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    first = log.append("a", b"")
    await clock.advance(7200)
    log.append("b", b"elsewhere")
    assert log.find(first.event_id) == first
    log.append("a", b"end", is_final=True)
    assert await read(log, "a", first.number) == [b"end"]


async def test_large_messages_are_evicted_by_a_timer_even_if_nothing_else_is_written() -> None:
    clock = FakeClock()
    log = a_log(clock, most_bytes=1000)
    first, second = (log.append(name, b"x" * 900, is_final=True) for name in ("a", "b"))
    await clock.advance(FRESH_SECONDS - 1)
    assert log.numbers == [first.number, second.number]
    await clock.advance(2)
    assert log.numbers == [second.number]


async def test_large_messages_are_evicted_earlier_but_not_before_they_can_be_read() -> None:
    clock = FakeClock()
    log = a_log(clock, most_bytes=1000)
    first = log.append("a", b"x" * 900, is_final=True)
    second = log.append("b", b"y" * 900, is_final=True)
    assert log.find(first.event_id) == first
    await clock.advance(FRESH_SECONDS + 1)
    log.append("c", b"z")
    assert log.find(first.event_id) is None
    assert log.find(second.event_id) == second


async def test_a_stream_whose_last_message_was_evicted_still_ends() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    first = log.append("a", b"1")
    log.append("a", b"end", is_final=True)
    await clock.advance(301)
    log.append("b", b"2")
    assert await read(log, "a", first.number) == []


async def test_a_silent_stream_sends_keep_alives() -> None:
    clock = FakeClock()
    log = a_log(clock)
    entries = log.follow(PUSH, 0)
    coming = asyncio.ensure_future(anext(aiter(entries)))
    await clock.advance(16)
    assert await coming is None
    await cast(Any, entries).aclose()


@pytest.mark.parametrize("given", ["", "1", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
async def test_an_unknown_event_id_is_not_found(given: str) -> None:
    log = a_log()
    log.append("a", b"1")
    assert log.find(given) is None


# Eviction.


async def test_a_reader_that_falls_behind_receives_the_size_of_the_gap_and_continues() -> None:
    log = a_log(replay_messages=5)
    log.append("a", b"0")
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow("a", 0))) as entries:
        assert (await anext(entries)).data == b"0"
        for number in range(1, 9):
            log.append("a", str(number).encode(), is_final=number == 8)
        heard = [entry async for entry in entries]
    assert isinstance(heard[0], Gap)
    assert [entry.data for entry in heard[1:]] == [b"4", b"5", b"6", b"7", b"8"]
    assert heard[0].count == 3


async def test_a_reader_of_evicted_messages_continues_after_them() -> None:
    log = a_log(replay_messages=4)
    for number in range(4):
        log.append("a", str(number).encode())
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow("a", 0))) as entries:
        assert (await anext(entries)).data == b"0"
        for number in range(4, 8):
            log.append("a", str(number).encode(), is_final=number == 7)
        heard = [entry async for entry in entries]
    assert (heard[0], [entry.data for entry in heard[1:]]) == (Gap(3), [b"4", b"5", b"6", b"7"])


@pytest.mark.parametrize("most", [5, 50, 1000])
async def test_a_response_is_never_evicted_before_its_reader_received_it(most: int) -> None:
    """Even if it is written before its reader has run at all, and a flood follows."""
    log = a_log(replay_messages=most)
    log.append("a", b"")
    reading = asyncio.create_task(read(log, "a", 0))
    await settle()
    for number in range(most * 2):
        log.append("a", b"%d" % number)
    log.append("a", b"answer", is_final=True)
    for number in range(most * 2):
        log.append("b", b"%d" % number)
    heard = await reading
    assert heard[-1] == b"answer"
    record_figure(f"{len(heard)} of {most * 2 + 2} heard")


async def test_a_flood_on_one_stream_evicts_nothing_from_another() -> None:
    log = a_log(replay_messages=20)
    for number in range(3):
        log.append("quiet", b"%d" % number, is_final=number == 2)
    for number in range(500):
        log.append("loud", b"%d" % number)
    assert await read(log, "quiet", 0) == [b"0", b"1", b"2"], "nobody read it until now"


async def test_messages_that_were_read_are_evicted_before_unread_ones() -> None:
    log = a_log(replay_messages=4)
    for number in range(4):
        log.append("a", b"%d" % number, is_final=number == 3)
    await read(log, "a", 0)
    log.append("b", b"4")
    log.append("b", b"5")
    log.append("b", b"6", is_final=True)
    assert await read(log, "a", 0) == [b"3"]
    assert await read(log, "b", 0) == [b"4", b"5", b"6"]


async def test_unread_responses_are_limited_in_number() -> None:
    log = a_log(replay_messages=10)
    for number in range(100):
        log.append(f"s{number}", b"", is_final=False)
        log.append(f"s{number}", b"%d" % number, is_final=True)
    kept = [number for number in range(100) if b"%d" % number in await read(log, f"s{number}", 0)]
    assert kept == list(range(100 - len(kept), 100))
    assert 5 <= len(kept) <= 11


async def test_more_responses_than_the_log_can_hold_all_reach_their_waiting_readers() -> None:
    """A thousand responses arrive at the same time."""
    log = a_log(replay_messages=100)
    for number in range(1000):
        log.append(f"s{number}", b"")
    reading = [asyncio.create_task(read(log, f"s{number}", 0)) for number in range(1000)]
    await settle()
    for number in range(1000):
        log.append(f"s{number}", b"%d" % number, is_final=True)
    heard = await asyncio.gather(*reading)
    assert [each[-1] for each in heard] == [b"%d" % number for number in range(1000)]


async def test_a_new_reader_of_pushes_receives_the_stored_messages_and_the_number_of_missed_ones() -> None:
    log = a_log(replay_messages=3)
    for number in range(6):
        log.append(PUSH, str(number).encode())
    assert await read(log, PUSH, 0, count=4) == [b"(3 missed)", b"3", b"4", b"5"]


class LostRecords:
    """Records of a session that another process owns; a save discovers this."""

    def __init__(self) -> None:
        self.is_unsaved = self.is_lost = False

    def mark(self, number: int) -> None:
        self.is_unsaved = True

    async def save(self) -> None:
        self.is_lost = True


async def test_every_reader_gets_the_response_but_no_event_id_of_an_unsaved_message() -> None:
    """A client that resumed with such an id would get an error for an unknown id."""
    clock = FakeClock()
    log = MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), Limits(), LostRecords())
    log.append("a", b"")
    log.append("a", b"progress")
    log.append("a", b"answer", is_final=True)
    assert await read(log, "a", 0) == [b"answer"]


# Floods on neighboring streams.


@pytest.mark.parametrize("is_read", [False, True], ids=["a slow reader", "a quick reader"])
@pytest.mark.parametrize("flood", [900, 1100, 5000])
async def test_a_flood_on_a_neighboring_stream_never_evicts_a_written_response(flood: int, is_read: bool) -> None:
    """Twenty written and unread responses are followed by the flood of another stream."""
    log = a_log()
    openings = [log.append(f"request {number}", b"") for number in range(20)]
    for opening in openings:
        log.append(opening.stream, b"answer", is_final=True)
        await read(log, opening.stream, 0)
    for number in range(flood):
        log.append("request 99", b"%d" % number)
        if is_read:
            await read(log, "request 99", log.last_number - 1, 1)
    found = [log.position(opening.sent_id) for opening in openings]
    heard = [await read(log, *position) for position in found if position is not None]
    record_figure(f"{flood} messages: {sum(one == [b'answer'] for one in heard)} of 20 answers kept")
    assert heard == [[b"answer"]] * 20


async def test_a_reader_that_disconnected_during_its_own_flood_still_receives_the_response() -> None:
    """The reader resumes with the id of a message that was evicted."""
    log = a_log(replay_messages=20)
    early = [log.append("request 1", b"%d" % number) for number in range(5)]
    for number in range(500):
        log.append("request 1", b"%d" % number)
        log.append("request 2", b"%d" % number)
    log.append("request 1", b"answer", is_final=True)
    assert log.find(early[-1].event_id) is None
    position = log.position(early[-1].sent_id)
    assert position is not None
    heard = await read(log, *position)
    assert heard[-1] == b"answer"
    assert heard[-2] == b"499"


async def test_an_event_id_leads_only_to_its_own_stream() -> None:
    log = a_log(replay_messages=20)
    first, other = log.append("request 1", b"1"), log.append("request 2", b"2")
    assert log.position(first.event_id) == ("request 1", first.number)
    assert log.position(f"{first.event_id}-2") == ("request 2", first.number)
    assert log.position(f"{first.event_id}-3") is None
    assert log.position("1-1") is None
    for number in range(100):
        log.append("request 1", b"%d" % number)
    assert log.find(first.event_id) is None
    assert log.position(first.event_id) is None
    assert log.position(first.sent_id) is not None
    assert log.position(other.sent_id) == ("request 2", other.number)


async def test_an_event_id_is_unknown_once_its_response_was_evicted() -> None:
    """The alternative would be a stream that ends without a response."""
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    opening = log.append("request 1", b"")
    log.append("request 1", b"answer", is_final=True)
    assert log.position(opening.sent_id) is not None
    await clock.advance(301)
    log.append("request 2", b"")
    assert log.position(opening.sent_id) is None


@pytest.mark.parametrize("size", [1 << 20, 4 << 20])
async def test_a_few_huge_messages_are_limited_and_evict_nothing_from_a_neighboring_stream(size: int) -> None:
    log = a_log()
    opening = log.append("request 1", b"")
    log.append("request 1", b"answer", is_final=True)
    await read(log, "request 1", 0)
    largest = 0
    for _ in range(200):
        log.append("request 2", bytes(size))
        largest = max(largest, sum(len(found.data) for number in log.numbers if (found := log.message(number))))
    room = REPLAY_BYTES
    record_figure(f"200 messages of {size >> 20} MiB: at most {largest / room:.2f} times the room")
    assert largest <= (FRESH_ROOM + 0.25) * room
    assert await read(log, *log.position(opening.sent_id) or ("", 0)) == [b"answer"]


async def test_the_largest_response_is_evicted_first_when_responses_exceed_the_limit() -> None:
    clock = FakeClock()
    log = a_log(clock, most_bytes=10_000)
    for number, size in enumerate([100, 8000, 1000, 2000]):
        log.append(f"request {number + 1}", b"")
        log.append(f"request {number + 1}", bytes(size), is_final=True)
    await clock.advance(FRESH_SECONDS + 1)
    log.append("request 5", b"")
    assert [len((await read(log, f"request {number}", 0))[-1]) for number in (1, 3, 4)] == [100, 1000, 2000]
    assert [len(data) for data in await read(log, "request 2", 0)] != [0, 8000]


async def test_many_responses_leave_room_for_the_messages_before_the_next_response() -> None:
    log = a_log(replay_messages=100)
    for number in range(500):
        log.append(f"request {number}", b"answer", is_final=True)
        await read(log, f"request {number}", 0)
    for number in range(20):
        log.append("request 900", b"%d" % number)
    assert await read(log, "request 900", 0, 20) == [b"%d" % number for number in range(20)]


async def test_a_response_is_retained_while_its_reader_is_slow() -> None:
    clock = FakeClock()
    log = a_log(clock, replay_seconds=300)
    log.append("request 1", b"")
    async with asyncio.timeout(5), aclosing(cast(Any, log.follow("request 1", 0))) as entries:
        assert (await anext(entries)).data == b""
        log.append("request 1", b"answer", is_final=True)
        await clock.advance(400)
        log.append("request 2", b"")
        assert [entry.data async for entry in entries] == [b"answer"]


async def test_eviction_costs_the_same_per_message_however_long_the_flood() -> None:
    """The average number of scanned messages per message does not grow with the flood."""
    log = a_log(replay_messages=1000)
    looked_at = 0
    make_room = log._make_room

    def counted(now: float) -> None:
        nonlocal looked_at
        looked_at += len(log.numbers)
        make_room(now)

    log._make_room = counted  # type: ignore[method-assign]  # to count
    for number in range(10_000):
        log.append("request 1", b"%d" % number)
    record_figure(f"{looked_at / 10_000:.1f} messages looked at for each of 10,000")
    assert looked_at <= 15 * 10_000


async def test_unclaimed_responses_take_no_room_from_a_newer_one() -> None:
    log = a_log(replay_messages=100)
    for number in range(200):
        log.append(f"request {number}", b"", is_final=True)
    newest = log.append("request 900", b"")
    log.append("request 900", b"answer", is_final=True)
    await read(log, "request 900", 0)
    for number in range(50):
        log.append(f"request {number + 200}", b"", is_final=True)
    assert log.position(newest.sent_id) is not None


class CountingRecords:
    """A store whose commits take time, during which other messages are marked."""

    is_lost = False

    def __init__(self) -> None:
        self.is_unsaved = False
        self.saves = 0
        self.marked: set[int] = set()
        self.saved: set[int] = set()

    def mark(self, number: int) -> None:
        self.is_unsaved = True
        self.marked.add(number)

    async def save(self) -> None:
        self.saves += 1
        self.saved |= self.marked
        await settle(2)
        self.is_unsaved = True  # as a flood on a neighboring stream would


async def test_messages_are_saved_in_batches_and_each_is_saved_before_it_is_read() -> None:
    clock, records = FakeClock(), CountingRecords()
    log = MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), Limits(replay_messages=2000), records)
    for number in range(1000):
        log.append("request 1", b"%d" % number)
    log.append("request 1", b"answer", is_final=True)
    heard = 0
    async with asyncio.timeout(30):
        async for entry in log.follow("request 1", 0):
            assert isinstance(entry, Kept)
            assert entry.number in records.saved
            heard += 1
    record_figure(f"{heard} messages, {records.saves} commits")
    assert heard == 1001
    assert records.saves <= 1 + 1000 // BATCH_MESSAGES


async def test_large_messages_are_saved_in_small_batches() -> None:
    clock, records = FakeClock(), CountingRecords()
    log = MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), Limits(), records)
    for _ in range(10):
        log.append("request 1", bytes(BATCH_BYTES))
    log.append("request 1", b"answer", is_final=True)
    async with asyncio.timeout(30):
        assert len([entry async for entry in log.follow("request 1", 0)]) == 11
    assert records.saves >= 5

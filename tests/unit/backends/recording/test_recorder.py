"""What is written, and when it ends."""

import json

from emceepee.backends.recording.entries import EntryKind
from emceepee.backends.recording.recorder import Recorder
from support.fakes.clock import FakeClock


def a_recorder(lines: list[bytes], clock: FakeClock, most_bytes: int = 10_000) -> Recorder:
    return Recorder(lines.append, clock, server="shop", target="stdio://shop", most_bytes=most_bytes)


async def test_the_first_line_says_what_it_is_and_the_others_when_they_were() -> None:
    lines, clock = list[bytes](), FakeClock()
    recorder = a_recorder(lines, clock)
    await clock.advance(1.5)
    recorder.write(EntryKind.CANCELLED, id=3)
    header, entry = map(json.loads, lines)
    assert (header["emceepee_recording"], header["server"], header["target"]) == (1, "shop", "stdio://shop")
    assert entry == {"at": 1.5, "type": "cancelled", "id": 3}


def test_at_its_largest_size_it_ends_and_says_so() -> None:
    lines = list[bytes]()
    recorder = a_recorder(lines, FakeClock(), most_bytes=1000)
    for number in range(100):
        recorder.write(EntryKind.RESULT, id=number, result={"text": "x" * 50})
    assert not recorder.is_open
    assert sum(map(len, lines)) <= 1000
    assert json.loads(lines[-1])["type"] == "cut"
    assert "recording_bytes" in json.loads(lines[-1])["reason"]


def test_without_any_room_nothing_is_written() -> None:
    lines = list[bytes]()
    assert not a_recorder(lines, FakeClock(), most_bytes=-5).is_open
    assert lines == []

"""The contents of a recording, and its end."""

import json
from typing import Any
from weakref import ref

from emceepee.backends.recording.entries import EntryKind
from emceepee.backends.recording.recorder import Recorder
from support.fakes.clock import FakeClock


def a_recorder(lines: list[bytes], clock: FakeClock, most_bytes: int = 10_000) -> Recorder:
    return Recorder(lines.append, clock, server="shop", target="stdio://shop", most_bytes=most_bytes)


async def test_the_first_line_of_a_recording_is_its_header_and_entries_have_timestamps() -> None:
    lines, clock = list[bytes](), FakeClock()
    recorder = a_recorder(lines, clock)
    await clock.advance(1.5)
    recorder.write(EntryKind.CANCELLED, lambda: {"id": 3})
    header, entry = map(json.loads, lines)
    assert (header["emceepee_recording"], header["server"], header["target"]) == (1, "shop", "stdio://shop")
    assert entry == {"at": 1.5, "type": "cancelled", "id": 3}


def test_a_recording_ends_with_a_note_when_it_reaches_its_largest_size() -> None:
    lines = list[bytes]()
    recorder = a_recorder(lines, FakeClock(), most_bytes=1000)
    for _ in range(100):
        recorder.write(EntryKind.RESULT, lambda: {"id": 1, "result": {"text": "x" * 50}})
    assert not recorder.is_open
    assert sum(map(len, lines)) <= 1000
    assert json.loads(lines[-1])["type"] == "cut"
    assert "recording_bytes" in json.loads(lines[-1])["reason"]


def test_a_recorder_without_room_writes_nothing() -> None:
    lines = list[bytes]()
    assert not a_recorder(lines, FakeClock(), most_bytes=-5).is_open
    assert lines == []


def never() -> dict[str, Any]:
    raise AssertionError("nobody will read it")


def test_a_stopped_recorder_does_not_prepare_entries() -> None:
    stopped, full = a_recorder([], FakeClock()), a_recorder([], FakeClock(), most_bytes=-5)
    stopped.stop()
    for recorder in (stopped, full):
        recorder.write(EntryKind.RESULT, never)


class Lines(list[bytes]):
    """A list that supports weak references."""


def test_a_stopped_recorder_releases_its_lines() -> None:
    """A link that continues refers to its recorder as long as it lasts."""
    lines = Lines()
    recorder = a_recorder(lines, FakeClock())
    held = ref(lines)
    recorder.stop()
    del lines
    assert held() is None
    assert not recorder.is_open

"""The files that recordings are written to."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emceepee.backends.recording.entries import EntryKind
from emceepee.backends.recording.recordings import Recordings, open_recording
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.errors import EmceepeeError
from emceepee.replay.recording_reader import read_recording
from emceepee.state.limits import Limits
from support.fakes.clock import FakeClock
from support.waiting import eventually


def a_spec(record: Path | None = None, name: str = "shop") -> BackendSpec:
    return BackendSpec(name=name, target=StdioTarget(command="shop"), record=None if record is None else str(record))


async def test_a_file_is_for_its_owner_alone_and_is_added_to(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    for number in (1, 2):
        recordings = Recordings(FakeClock(), Limits())
        recorder = recordings.in_file(a_spec(file))
        assert recorder is not None
        assert recordings.in_file(a_spec(file)) is recorder
        recorder.write(EntryKind.CANCELLED, partial(dict[str, Any], id=number))
        await recordings.close()
    assert file.stat().st_mode & 0o777 == 0o600
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert [entry.get("id", "header") for entry in entries] == ["header", 1, "header", 2]


async def test_a_file_whose_last_line_was_cut_off_is_added_to_on_a_line_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    for _ in range(2):
        recordings = Recordings(FakeClock(), Limits())
        recorder = recordings.in_file(a_spec(file))
        assert recorder is not None
        recorder.write(EntryKind.OPENED, lambda: {"server": {}})
        recorder.write(EntryKind.NOTIFICATION, lambda: {"method": "m", "params": {}})
        await recordings.close()
        file.write_bytes(file.read_bytes()[:-20])
    assert len(read_recording(file).notes) == 2


async def test_a_write_that_fails_ends_the_recording_for_good(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A later entry would be appended to half a line."""
    file = tmp_path / "shop.jsonl"
    recordings = Recordings(FakeClock(), Limits())
    recorder = recordings.in_file(a_spec(file))
    assert recorder is not None
    (descriptor,) = [each for each in open_files() if os.readlink(f"/proc/self/fd/{each}") == str(file)]
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor)
    os.close(full)
    recorder.write(EntryKind.CANCELLED, lambda: {"id": 1})
    await eventually(lambda: not recorder.is_open, what="the recorder has stopped")
    assert recordings.in_file(a_spec(file)) is None
    await recordings.close()
    assert [record.message for record in caplog.records] == ["not_recorded"]


def open_files() -> list[int]:
    return [each for each in map(int, os.listdir("/proc/self/fd")) if Path(f"/proc/self/fd/{each}").exists()]


async def test_a_file_is_of_one_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, recordings = tmp_path / "shop.jsonl", Recordings(FakeClock(), Limits())
    assert recordings.in_file(a_spec(file)) is not None
    assert [recordings.in_file(a_spec(file, "other")) for _ in range(2)] == [None, None]
    assert [record.message for record in caplog.records] == ["not_recorded"]
    assert "by another server or another emceepee" in str(vars(caplog.records[0])["fields"])
    await recordings.close()
    assert file.read_text().count("emceepee_recording") == 1


async def test_a_file_with_something_else_is_left_alone_and_stops_nothing(tmp_path: Path) -> None:
    file = tmp_path / "diary.txt"
    file.write_text("Dear diary,\n")
    recordings = Recordings(FakeClock(), Limits())
    assert recordings.in_file(a_spec(file)) is None
    assert recordings.in_file(a_spec(tmp_path / "missing" / "shop.jsonl")) is None
    await recordings.close()
    assert file.read_text() == "Dear diary,\n"
    assert not (tmp_path / "missing").exists()


def test_no_link_is_followed_and_no_device_written(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", Path("/dev/null"), tmp_path):
        with pytest.raises(OSError, match=r"symbolic link|no recording"):
            open_recording(path)
    assert not (tmp_path / "target").exists()


def test_one_process_at_a_time_records_to_a_file(tmp_path: Path) -> None:
    descriptor, size = open_recording(tmp_path / "shop.jsonl")
    with pytest.raises(OSError, match="it is recorded to already"):
        open_recording(tmp_path / "shop.jsonl")
    os.close(descriptor)
    assert size == 0
    os.close(open_recording(tmp_path / "shop.jsonl")[0])


def test_few_are_kept_in_memory_at_once() -> None:
    recordings = Recordings(FakeClock(), Limits(recordings_in_all=2))
    kept = [recordings.in_memory(a_spec()) for _ in range(2)]
    with pytest.raises(EmceepeeError, match="2 recordings are kept"):
        recordings.in_memory(a_spec())
    kept.pop()
    assert recordings.in_memory(a_spec()).text.startswith('{"emceepee_recording":1')


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (StdioTarget(command="shop", args=("--key", "t0ps3cret")), "stdio://shop"),
        (HttpTarget(url="https://ann:pw@shop.test:8443/t0ps3cret/mcp?key=t0ps3cret"), "https://shop.test:8443"),
        (HttpTarget(url="unix:///run/shop.sock:/t0ps3cret"), "unix:///run/shop.sock"),
    ],
)
def test_the_header_says_where_the_server_is_and_not_what_is_secret_in_its_address(
    target: HttpTarget | StdioTarget, told: str
) -> None:
    text = Recordings(FakeClock(), Limits()).in_memory(BackendSpec(name="shop", target=target)).text
    assert json.loads(text)["target"] == told

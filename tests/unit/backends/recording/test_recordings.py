"""The files of recordings."""

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


async def test_a_recording_file_is_private_to_its_owner_and_appended_to(tmp_path: Path) -> None:
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


async def test_a_recording_file_whose_last_line_is_cut_off_continues_on_a_new_line(tmp_path: Path) -> None:
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


async def test_a_failed_write_ends_the_recording(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A later entry would be appended to an incomplete line."""
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


async def test_a_recording_file_belongs_to_one_server(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, recordings = tmp_path / "shop.jsonl", Recordings(FakeClock(), Limits())
    assert recordings.in_file(a_spec(file)) is not None
    assert [recordings.in_file(a_spec(file, "other")) for _ in range(2)] == [None, None]
    assert [record.message for record in caplog.records] == ["not_recorded"]
    assert "another server or another emceepee is already recording to it" in str(vars(caplog.records[0])["fields"])
    await recordings.close()
    assert file.read_text().count("emceepee_recording") == 1


async def test_a_file_that_is_not_a_recording_is_left_unchanged_and_does_not_stop_the_server(tmp_path: Path) -> None:
    file = tmp_path / "diary.txt"
    file.write_text("Dear diary,\n")
    recordings = Recordings(FakeClock(), Limits())
    assert recordings.in_file(a_spec(file)) is None
    assert recordings.in_file(a_spec(tmp_path / "missing" / "shop.jsonl")) is None
    await recordings.close()
    assert file.read_text() == "Dear diary,\n"
    assert not (tmp_path / "missing").exists()


def test_recordings_follow_no_symbolic_link_and_open_no_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "link", tmp_path / "pipe", Path("/dev/null"), tmp_path):
        with pytest.raises(OSError, match=r"symbolic link|other than a recording"):
            open_recording(path)
    assert not (tmp_path / "target").exists()


def test_a_recording_file_is_locked_by_one_process_at_a_time(tmp_path: Path) -> None:
    descriptor, size = open_recording(tmp_path / "shop.jsonl")
    with pytest.raises(OSError, match="is already recording to it"):
        open_recording(tmp_path / "shop.jsonl")
    os.close(descriptor)
    assert size == 0
    os.close(open_recording(tmp_path / "shop.jsonl")[0])


def test_the_number_of_recordings_in_memory_is_limited() -> None:
    recordings = Recordings(FakeClock(), Limits(recordings_in_all=2))
    kept = [recordings.in_memory(a_spec()) for _ in range(2)]
    with pytest.raises(EmceepeeError, match="2 recordings are already stored"):
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
def test_a_recording_header_shows_the_address_of_its_server_without_secrets(
    target: HttpTarget | StdioTarget, told: str
) -> None:
    text = Recordings(FakeClock(), Limits()).in_memory(BackendSpec(name="shop", target=target)).text
    assert json.loads(text)["target"] == told

"""A thread writes lines in order; lines that do not fit are dropped and counted without blocking."""

import errno
import fcntl
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from emceepee.telemetry.log_writer import LogWriter

BOUND = 20.0
COUNTED = re.compile(r"^(\d+) dropped$", re.MULTILINE)
LINE = "x" * 99  # a hundred bytes with its line ending


class Pipe:
    """A pipe of one page, which is full quickly."""

    def __init__(self) -> None:
        self.read_end, self.write_end = os.pipe()
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(self.read_end, fcntl.F_SETPIPE_SZ, 4096)

    def read(self, count: int) -> bytes:
        data = b""
        while data.count(b"\n") < count:
            data += os.read(self.read_end, 4096)
        return data


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.read_end)
    with suppress(OSError):
        os.close(made.write_end)


def dropped(count: int) -> str:
    return f"{count} dropped"


def in_a_thread(writer: LogWriter, count: int) -> None:
    """Put lines from a thread, and fail if that blocks."""

    def put() -> None:
        for _ in range(count):
            writer.put(LINE)

    putting = threading.Thread(target=put, daemon=True)
    putting.start()
    putting.join(BOUND)
    assert not putting.is_alive()


def test_log_lines_are_written_in_order(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_end, dropped_line=dropped)
    for number in range(100):
        writer.put(str(number))
    assert writer.flush(within=BOUND)
    assert pipe.read(100).split() == [str(number).encode() for number in range(100)]


def test_log_lines_that_do_not_fit_are_dropped_and_counted_without_blocking(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_end, dropped_line=dropped, most_bytes=10_000)
    in_a_thread(writer, 1000)
    assert not writer.flush(within=0.01)
    kept, counted = read_all(pipe, 1000)
    assert 100 <= kept <= 200  # the queue, and the buffer of the pipe
    assert kept + counted == 1000


def test_log_lines_are_written_again_once_there_is_room(pipe: Pipe) -> None:
    writer = LogWriter(pipe.write_end, dropped_line=dropped, most_bytes=10_000)
    in_a_thread(writer, 1000)
    read_all(pipe, 1000)
    assert writer.flush(within=BOUND)
    writer.put("after")
    assert pipe.read(1) == b"after\n"


def read_all(pipe: Pipe, count: int) -> tuple[int, int]:
    """Return how many of `count` lines arrived, and how many were reported as dropped."""
    text = ""
    while (kept := text.count(LINE)) + (counted := sum(map(int, COUNTED.findall(text)))) < count:
        text += os.read(pipe.read_end, 4096).decode()
    return kept, counted


def test_a_log_write_failure_is_reported_once_and_lost_lines_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, failures = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY), list[str]()
    is_full = True
    write = os.write

    def limited(descriptor: int, data: bytes) -> int:
        if descriptor == file and is_full:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", limited)
    writer = LogWriter(file, dropped_line=dropped, on_failure=lambda error: failures.append(str(error.strerror)))
    for _ in range(5):
        writer.put("lost")
        assert writer.flush(within=BOUND)
    is_full = False
    writer.put("kept")
    assert writer.flush(within=BOUND)
    writer.close()
    assert failures == ["full"]
    assert (tmp_path / "log").read_text() == "kept\n5 dropped\n"


def test_an_all_or_nothing_log_writes_no_line_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, failures, really_write = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY), list[str](), os.write
    is_full = True

    def write(descriptor: int, data: bytes) -> int:
        if descriptor == file and is_full:
            raise OSError(errno.ENOSPC, "full")
        return really_write(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    fail = failures.append
    writer = LogWriter(file, dropped_line=dropped, on_failure=lambda error: fail(str(error.strerror)), gives_up=True)
    for line in ("one", "two"):
        writer.put(line)
        assert writer.flush(within=BOUND)
        is_full = False
    writer.close()
    assert (failures, (tmp_path / "log").read_text()) == (["full"], "")


def test_a_log_line_truncated_by_a_full_disk_does_not_run_into_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    room = [3, 0]
    write = os.write

    def limited(descriptor: int, data: bytes) -> int:
        if descriptor != file or not room:
            return write(descriptor, data)
        if (left := room.pop(0)) == 0:
            raise OSError(errno.ENOSPC, "full")
        return write(descriptor, data[:left])

    monkeypatch.setattr(os, "write", limited)
    writer = LogWriter(file, dropped_line=dropped)
    writer.put("first")
    assert writer.flush(within=BOUND)
    writer.put("second")
    assert writer.flush(within=BOUND)
    writer.close()
    assert (tmp_path / "log").read_text() == "fir\nsecond\n1 dropped\n"


def test_the_log_writer_waits_for_a_non_blocking_pipe(pipe: Pipe) -> None:
    """Programs that share standard error may have set it to non-blocking."""
    os.set_blocking(pipe.write_end, False)
    writer = LogWriter(pipe.write_end, dropped_line=dropped)
    in_a_thread(writer, 200)
    assert pipe.read(200).count(LINE.encode()) == 200


def test_closing_the_log_writer_writes_the_remaining_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    before = set(threading.enumerate())
    writer = LogWriter(descriptor, dropped_line=dropped)
    writer.put("last words")
    [thread] = set(threading.enumerate()) - before
    writer.close()
    thread.join(BOUND)
    assert file.read_text() == "last words\n"
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)

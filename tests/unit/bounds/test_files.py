"""Reading files that others may have written."""

import os
import threading
from pathlib import Path

import pytest

from emceepee.bounds.files import read_file, read_head


def test_a_regular_file_is_read_whole_up_to_the_size_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2048)
    assert read_file(file, 2048) == b"x" * 2048
    with pytest.raises(OSError, match="it is larger than 1 KiB"):
        read_file(file, 2047)
    assert read_head(file, 3) == b"xxx"


def test_a_file_that_grows_during_the_read_is_limited() -> None:
    with pytest.raises(OSError, match="it is larger than"):
        read_file("/proc/self/maps", 10)  # its size is 0


@pytest.mark.parametrize("name", ["pipe", "/dev/zero", "/dev/tty", "."])
def test_no_pipe_device_or_folder_is_read_as_a_file(name: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (read_file, read_head):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory|No such device"):
            read(tmp_path / name, 100)


def test_a_pipe_is_read_to_its_end_if_the_caller_allows_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"x" * 3000))
    writer.start()
    assert read_file(pipe, 3000, allows_pipe=True) == b"x" * 3000
    writer.join(10)


def test_a_pipe_has_the_same_size_limit_as_a_file() -> None:
    read, write = os.pipe()
    try:
        os.write(write, b"x" * 200)
        os.close(write)
        with pytest.raises(OSError, match="it is larger than"):
            read_file(f"/dev/fd/{read}", 100, allows_pipe=True)
    finally:
        os.close(read)

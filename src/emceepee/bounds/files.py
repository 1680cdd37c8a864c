"""Bounded reads of files that others may have written. Devices are never read, and pipes only on request."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_file(path: Path | str, most_bytes: int, *, allows_pipe: bool = False) -> bytes:
    """Return the content of a regular file or, with `allows_pipe`, of a pipe until its end.

    Raises: OSError, also for other kinds of files and for more than `most_bytes`.
    """
    with _open(path, waits=allows_pipe) as file:
        found = os.fstat(file.fileno())
        if not (allows_pipe and stat.S_ISFIFO(found.st_mode)):
            check_regular(found, path, most_bytes)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise _too_large(path, most_bytes)
    return content


def read_head(path: Path | str, most_bytes: int) -> bytes:
    """Return the first bytes of a regular file of any size. Raises: OSError."""
    with _open(path, waits=False) as file:
        check_regular(os.fstat(file.fileno()), path)
        return file.read(most_bytes)


def _open(path: Path | str, *, waits: bool) -> BinaryIO:
    """Open the file. With `waits`, wait for the writer of a named pipe."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY  # without O_NOCTTY, a terminal could become ours
    return open(os.open(path, flags if waits else flags | os.O_NONBLOCK), "rb")


def check_regular(found: os.stat_result, path: Path | str, most_bytes: int | None = None) -> None:
    """Raises: OSError if it is not a regular file, or larger than `most_bytes`."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    if most_bytes is not None and found.st_size > most_bytes:
        raise _too_large(path, most_bytes)


def _too_large(path: Path | str, most_bytes: int) -> OSError:
    size = f"{most_bytes >> 20} MiB" if most_bytes >= 1 << 20 else f"{most_bytes >> 10} KiB"
    return OSError(errno.EFBIG, f"it is larger than {size}", str(path))

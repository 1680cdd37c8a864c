"""Who is alive: each process that uses a state file holds a lock that ends with it, however it ends.

`STATE.owners/` has a file per process, named by its owner id and locked with `flock`, and `opening`, which is locked by
whoever opens the state file.
"""

import errno
import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
_OPENING = "opening"
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.02  # for another that opens the file: it takes milliseconds


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.owners")


class Owners:
    """The processes that use one state file, and this one's place among them. OSErrors are the caller's to explain."""

    def __init__(self, path: Path) -> None:
        self._folder = folder_of(path)
        self._id = secrets.token_hex(8)
        self._descriptor: int | None = None

    @property
    def own_id(self) -> str:
        return self._id

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Alone among those that are about to open the file. Raises: OSError."""
        with suppress(FileExistsError):
            self._folder.mkdir(mode=PRIVATE_DIRECTORY)
        descriptor = self._open(_OPENING)
        try:
            _lock_patiently(descriptor)
            yield
        finally:
            os.close(descriptor)

    def dead(self) -> list[str]:
        """Those that ended without leaving, and were not cleared away yet. Only while `opening`."""
        return [name for name in self._others() if not self.is_alive(name)]

    def join(self) -> None:
        """Become one of them, and clear away the dead. Only while `opening`."""
        for name in self.dead():
            (self._folder / name).unlink(missing_ok=True)
        if self._descriptor is None or not (self._folder / self._id).exists():
            self.vanish()
            self._descriptor = self._open(self._id)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def leave(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                (self._folder / self._id).unlink(missing_ok=True)
            self.vanish()

    def vanish(self) -> None:
        """What the end of the process does by itself."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_alive(self, owner: str) -> bool:
        """Locks of those who only look are shared, so that they do not take each other for owners."""
        if owner == self._id:
            return True
        try:
            descriptor = os.open(self._folder / owner, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def alive(self) -> list[str]:
        """This process and all others."""
        return [self._id, *(name for name in self._others() if self.is_alive(name))]

    def _others(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name not in (_OPENING, self._id)]
        except FileNotFoundError:
            return []

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


def _lock_patiently(descriptor: int) -> None:
    for _ in range(int(_PATIENCE_SECONDS / _PAUSE_SECONDS)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Event().wait(_PAUSE_SECONDS)
        else:
            return
    raise OSError(errno.EBUSY, "another emceepee has been opening it for long")

"""The daemon's end: one daemon per user, a socket that is nobody else's, and what it answers to a greeting."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from emceepee.attach.greeting import Hello
from emceepee.attach.place import LOCK_NAME, SOCKET_NAME
from emceepee.attach.starting import NoDaemon

BACKLOG = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which daemon it is."""

    version: str
    configuration: str
    pid: int

    def refusal(self, hello: Hello) -> str | None:
        """Why whoever says that works by itself."""
        if hello.version != self.version:
            differs = f"is emceepee {self.version}, and this is {hello.version}"
        elif hello.configuration != self.configuration:
            differs = "has another configuration, or had other flags"
        else:
            return None
        return f"the daemon that runs (process {self.pid}) {differs}; to change that, end it: kill {self.pid}"


@contextmanager
def listening_socket(folder: Path) -> Iterator[socket.socket]:
    """Raises: NoDaemon if another daemon runs, OSError."""
    # Of fcntl's kind: such a lock is the process's own, and not that of what it starts.
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NoDaemon("a daemon of this user is running already") from None
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())  # for people, and for `kill`
        path = folder / SOCKET_NAME
        path.unlink(missing_ok=True)  # of one that was killed
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listener:
            before = os.umask(0o177)
            try:
                listener.bind(str(path))
            finally:
                os.umask(before)
            listener.listen(BACKLOG)
            listener.setblocking(False)
            try:
                yield listener
            finally:
                path.unlink(missing_ok=True)
    finally:
        os.close(lock)

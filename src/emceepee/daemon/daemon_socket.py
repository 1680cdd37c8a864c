"""The daemon's end: one daemon per user, a private socket, and the daemon's answer to a greeting."""

import fcntl
import os
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from emceepee.daemon.daemon_folder import LOCK_NAME, SOCKET_NAME
from emceepee.daemon.greeting import DaemonHello
from emceepee.daemon.launcher import ENDING_SECONDS, LOOK_SECONDS, NoDaemon
from emceepee.paths import PRIVATE_FILE

BACKLOG = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The identity of a daemon."""

    version: str
    configuration: str
    pid: int

    def refusal(self, hello: DaemonHello) -> str | None:
        """Return why the client must work without this daemon, or None."""
        if hello.version != self.version:
            differs = f"is emceepee {self.version}, and this is {hello.version}"
        elif hello.configuration != self.configuration:
            differs = "has another configuration or other flags"
        else:
            return None
        return f"the running daemon (process {self.pid}) {differs}; to change that, end it: kill {self.pid}"


@contextmanager
def listening_socket(folder: Path) -> Iterator[socket.socket]:
    """Listen, after waiting for a daemon that is about to end. Raises: NoDaemon if another runs, OSError."""
    path = folder / SOCKET_NAME
    # An fcntl lock belongs to the process alone: child processes do not inherit it.
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        _take(lock, path)
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode())  # for people, and for `kill`
        path.unlink(missing_ok=True)  # left behind by a daemon that was killed
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


def _take(lock: int, path: Path) -> None:
    """Acquire the lock. An ending daemon removes its socket first, and holds the lock until its servers have ended.

    Raises: NoDaemon.
    """
    for _ in range(round(ENDING_SECONDS / LOOK_SECONDS)):
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if path.exists():
                raise NoDaemon("a daemon of this user is running already") from None
        select.select([], [], [], LOOK_SECONDS)
    raise NoDaemon(f"a daemon of this user has been ending for {ENDING_SECONDS:g} s")

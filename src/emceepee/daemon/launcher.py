"""Connects to the daemon, and starts it if none runs. Only one process at a time starts a daemon."""

import fcntl
import os
import select
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from emceepee.daemon.daemon_folder import LOCK_NAME, LOG_NAME, SOCKET_NAME, STARTING_NAME, UnsafePlace, check_peer
from emceepee.daemon.greeting import LONGEST_GREETING, BadGreeting, DaemonHello, Welcome, read_welcome, write_greeting
from emceepee.paths import PRIVATE_FILE

GREETING_SECONDS = 10.0  # for a busy daemon
ENDING_SECONDS = 30.0  # for the previous daemon to end its servers
START_SECONDS = ENDING_SECONDS + 30.0  # for a new daemon to load on a slow machine, after that
LOOK_SECONDS = 0.05  # interval for checking whether another process has started a daemon, or has ended
READY = "ready"  # the first output of a daemon that listens


class NoDaemon(Exception):
    """No daemon is available for attaching; the text gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """A connection on which the protocol may begin."""

    connection: socket.socket
    welcome: Welcome


def reach(folder: Path, hello: DaemonHello, *, now: Callable[[], float] = perf_counter) -> Attached | None:
    """Connect to the daemon, or return None if none listens there.

    Raises: NoDaemon if it rejects us or cannot be trusted.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path = folder / SOCKET_NAME
    try:
        connection.connect(str(path))
        check_peer(connection)
        connection.settimeout(GREETING_SECONDS)
        connection.sendall(write_greeting(hello))
        line = _read_line(connection, now)
        if not line:
            connection.close()
            return None  # it was about to end
        welcome = read_welcome(line)
        connection.settimeout(None)
    except (FileNotFoundError, ConnectionError):
        connection.close()
        return None
    except TimeoutError as error:
        connection.close()
        end = f"to end it: kill $(cat {folder / LOCK_NAME})"
        raise NoDaemon(f"the daemon at {path} did not answer within {GREETING_SECONDS:g} s; {end}") from error
    except BadGreeting as error:
        connection.close()
        end = "end the program that listens there, or set XDG_RUNTIME_DIR to another folder"
        raise NoDaemon(f"{path} did not answer as emceepee's daemon does ({error}); {end}") from error
    except (OSError, UnsafePlace) as error:
        connection.close()
        raise NoDaemon(str(error) or type(error).__name__) from error
    if welcome.refusal is not None:
        connection.close()
        raise NoDaemon(welcome.refusal)
    return Attached(connection=connection, welcome=welcome)


def _read_line(connection: socket.socket, now: Callable[[], float]) -> bytes:
    """Read byte by byte, because the bytes after the line are the protocol's. Return b"" if the other end has closed.

    Raises: TimeoutError if the line is not complete in time, OSError, BadGreeting.
    """
    line = bytearray()
    deadline = now() + GREETING_SECONDS
    while not line.endswith(b"\n"):
        if len(line) >= LONGEST_GREETING:
            raise BadGreeting(f"its first line is longer than {LONGEST_GREETING:,} bytes")
        left = deadline - now()
        if left <= 0:  # a timeout of 0 would not wait, and a negative one is an error
            raise TimeoutError
        connection.settimeout(left)
        byte = connection.recv(1)
        if not byte:
            return b""
        line += byte
    return bytes(line)


def reach_or_start(folder: Path, hello: DaemonHello, command: Sequence[str]) -> Attached:
    """Connect to the daemon, or start one with `command`. Raises: NoDaemon."""
    if (attached := reach(folder, hello)) is not None:
        return attached
    with _turn(folder):
        if (attached := reach(folder, hello)) is not None:  # started by the process that held the lock before us
            return attached
        _start(folder, command)
        if (attached := reach(folder, hello)) is None:
            raise NoDaemon(f"the daemon has ended at once; see {folder / LOG_NAME}")
        return attached


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / STARTING_NAME, os.O_RDWR | os.O_CREAT, PRIVATE_FILE)
    try:
        for _ in range(round(START_SECONDS / LOOK_SECONDS)):
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                select.select([], [], [], LOOK_SECONDS)
        else:
            raise NoDaemon(f"another process has been starting the daemon for {START_SECONDS:g} s")
        yield
    finally:
        os.close(descriptor)


def _start(folder: Path, command: Sequence[str]) -> None:
    """Start a daemon, and return when it listens. Raises: NoDaemon."""
    log = os.open(folder / LOG_NAME, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    try:
        starting = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    except OSError as error:
        raise NoDaemon(f"the daemon cannot be started: {error}") from error
    finally:
        os.close(log)
    assert starting.stdout is not None  # it is a pipe
    with starting.stdout as said:
        is_there, _, _ = select.select([said], [], [], START_SECONDS)
        words = os.read(said.fileno(), 4096).decode("utf-8", "replace").strip() if is_there else ""
    if not is_there:
        starting.kill()
    starting.wait()  # it exits at once: the daemon is its child process
    if words != READY:
        raise NoDaemon(f"the daemon cannot be started: {words or f'see {folder / LOG_NAME}'}")

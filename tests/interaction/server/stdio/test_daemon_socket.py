"""The socket between a caller and its daemon: both ends must belong to the same user."""

import asyncio
import errno
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emceepee.daemon import daemon_socket as listening_module
from emceepee.daemon.attached_callers import ACCEPT_PAUSE_SECONDS
from emceepee.daemon.daemon_folder import LOCK_NAME, SOCKET_NAME
from emceepee.daemon.daemon_socket import listening_socket
from emceepee.daemon.greeting import read_welcome, write_greeting
from emceepee.daemon.launcher import NoDaemon, reach
from support.callers.daemon_socket import HELLO, listening
from support.fakes.clock import FakeClock
from support.waiting import eventually

BOUND = 10.0


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="emc-") as made:  # a socket's path must be short
        yield Path(made)


def be_another_user(patch: pytest.MonkeyPatch) -> None:
    """In our own eyes: then the peer is a different user."""
    other = os.geteuid() + 1
    patch.setattr(os, "geteuid", lambda: other)


async def greet(folder: Path) -> bytes:
    """Return the answer of a daemon; nothing if it disconnects."""
    reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
    try:
        writer.write(write_greeting(HELLO))
        return await asyncio.wait_for(reader.readline(), BOUND)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_the_daemon_socket_is_private_to_its_owner_with_any_umask(folder: Path) -> None:
    before = os.umask(0)
    try:
        with listening_socket(folder):
            assert stat.S_IMODE((folder / SOCKET_NAME).stat().st_mode) == 0o600
        assert not (folder / SOCKET_NAME).exists()
    finally:
        os.umask(before)


async def test_a_daemon_serves_its_own_user_and_disconnects_any_other(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with listening(folder):
        assert read_welcome(await greet(folder)).refusal == "not for one"
        with monkeypatch.context() as patch:
            be_another_user(patch)
            assert await greet(folder) == b""
        assert read_welcome(await greet(folder)).refusal == "not for one"


class FullSocket(socket.socket):
    """Has no descriptor for the first who come."""

    def __init__(self, listener: socket.socket) -> None:
        super().__init__(fileno=os.dup(listener.fileno()))
        self.setblocking(False)
        self.failures = [OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError(errno.ECONNABORTED, "x")]

    def accept(self) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        return super().accept()


def is_logged(caplog: pytest.LogCaptureFixture, count: int) -> bool:
    return len(caplog.records) == count


async def test_a_daemon_that_fails_to_accept_a_connection_retries_after_a_delay(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    async with listening(folder, clock, FullSocket):
        greeting = asyncio.ensure_future(greet(folder))
        for count in (1, 2):
            await eventually(partial(is_logged, caplog, count), what=f"{count} were not let in")
            assert not greeting.done()
            await clock.advance(ACCEPT_PAUSE_SECONDS)
        assert read_welcome(await greeting).refusal == "not for one"
    assert [record.getMessage() for record in caplog.records] == ["caller_not_accepted"] * 2


HOLDING = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print(flush=True)
    sys.stdin.read()
"""


def test_a_caller_waits_for_a_stopping_daemon_but_not_forever(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", HOLDING, str(folder / LOCK_NAME)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as ending:
        assert ending.stdout is not None
        assert ending.stdout.readline()
        with monkeypatch.context() as patch:
            patch.setattr(listening_module, "ENDING_SECONDS", 0.1)
            with pytest.raises(NoDaemon, match="has been ending for"), listening_socket(folder):
                pass
        (folder / SOCKET_NAME).touch()
        with pytest.raises(NoDaemon, match="is running already"), listening_socket(folder):
            pass
        ending.communicate(timeout=BOUND)
    with listening_socket(folder) as listener:
        assert listener.getsockname() == str(folder / SOCKET_NAME)


def test_a_caller_sends_nothing_to_a_daemon_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / SOCKET_NAME))
        listener.listen()
        be_another_user(monkeypatch)
        with pytest.raises(NoDaemon, match="a process of another user"):
            reach(folder, HELLO)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.recv(1) == b""

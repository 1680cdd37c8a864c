"""Another user of the machine at the daemon socket: neither end accepts the connection."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.callers.attached_callers import Home, home, said
from support.callers.emceepee_process import BOUND
from support.programs.unprivileged_emceepee import NOBODY, SYSTEM_PYTHON
from support.waiting import eventually

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user"),
    pytest.mark.skipif(SYSTEM_PYTHON is None, reason="needs a Python that anyone can start"),
]
LISTEN = """
import socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("listening", flush=True)
while True:
    print("heard", listener.accept()[0].recv(1000), flush=True)
"""
GREET = """
import socket, sys
caller = socket.socket(socket.AF_UNIX)
caller.connect(sys.argv[1])
try:
    caller.sendall(b'{"emceepee": "hello"}' + bytes([10]))
    print("heard", caller.recv(1000))
except OSError:
    print("heard", b"")
"""


def open_to_others(user: Home) -> None:
    """As if all permissions on the way were wrong."""
    for folder in (user.runtime.parent, user.runtime, user.place):
        folder.chmod(0o777)


@contextmanager
def a_stranger(program: str, path: Path) -> "Iterator[subprocess.Popen[str]]":
    command = [str(SYSTEM_PYTHON), "-I", "-c", program, str(path)]
    running = subprocess.Popen(command, user=NOBODY, group=NOBODY, cwd="/", stdout=subprocess.PIPE, text=True)
    with running:
        try:
            yield running
        finally:
            running.kill()


async def test_a_daemon_socket_of_another_user_on_the_machine_is_not_used() -> None:
    async with home() as user:
        user.place.mkdir()
        open_to_others(user)
        path = user.place / "daemon.sock"
        with a_stranger(LISTEN, path) as stranger:
            assert stranger.stdout is not None
            assert await asyncio.to_thread(stranger.stdout.readline) == "listening\n"
            user.place.chmod(0o700)
            path.chmod(0o600)
            async with user.attached() as caller:
                await caller.initialize()
                words = await said(caller)
                assert "runs without the daemon" in words
                assert f"a process of another user (uid {NOBODY}) is the peer of the socket" in words
            assert await asyncio.to_thread(stranger.stdout.readline) == "heard b''\n"


async def test_a_daemon_disconnects_a_process_of_another_user() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        open_to_others(user)
        (user.place / "daemon.sock").chmod(0o666)
        with a_stranger(GREET, user.place / "daemon.sock") as stranger:
            assert stranger.stdout is not None
            heard = await asyncio.wait_for(asyncio.to_thread(stranger.stdout.read), BOUND)
        assert heard == "heard b''\n"
        user.place.chmod(0o700)
        log = user.place / "daemon.log"  # which a thread writes
        await eventually(lambda: f"uid {NOBODY}" in log.read_text(), what="the daemon has told its log of it")
        assert (await caller.value("list_servers"))["servers"] == []

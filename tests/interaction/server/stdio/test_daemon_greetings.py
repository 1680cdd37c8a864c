"""The greeting at the daemon socket: one that is too long, too deep, too slow, or foreign is rejected with a reason."""

import asyncio
import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from emceepee.daemon.attached_callers import HELLO_SECONDS
from emceepee.daemon.daemon_folder import SOCKET_NAME
from emceepee.daemon.greeting import LONGEST_GREETING, Welcome, read_welcome, write_greeting
from emceepee.daemon.launcher import NoDaemon, reach
from support.callers.daemon_socket import HELLO, listening
from support.fakes.clock import FakeClock
from support.figures import record_figure
from support.waiting import eventually

BOUND = 10.0
MOST_SENT = 60 << 20
SOCKET_ROOM = 1 << 20  # what the system keeps of a socket on which nobody reads


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="emc-") as made:  # a socket's path must be short
        yield Path(made)


def connect(folder: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(BOUND)
    connection.connect(str(folder / SOCKET_NAME))
    return connection


def answer_to(folder: Path, greeting: bytes) -> tuple[int, bytes]:
    """How many bytes were taken, and what the daemon answered."""
    taken = 0
    with connect(folder) as connection, suppress(ConnectionError):
        with suppress(ConnectionError):
            while taken < len(greeting):
                taken += connection.send(greeting[taken : taken + (1 << 16)])
        return taken, connection.makefile("rb").readline()
    return taken, b""


def refusal_in(line: bytes) -> str:
    assert line, "the daemon hung up without a word"
    refusal = read_welcome(line).refusal
    assert refusal is not None
    return refusal


async def test_a_greeting_over_the_size_limit_is_rejected_while_it_arrives(folder: Path) -> None:
    async with listening(folder):
        taken, line = await asyncio.to_thread(answer_to, folder, b"x" * MOST_SENT + b"\n")
    record_figure(f"of a greeting of 60 MiB a daemon takes {taken >> 10} KiB, the buffers of the system included")
    refusal = refusal_in(line)
    assert f"longer than {LONGEST_GREETING:,} bytes" in refusal
    assert "a shorter --session" in refusal
    assert taken <= SOCKET_ROOM


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("levels", [1000, 2500, 100_000])
async def test_a_deeply_nested_greeting_is_rejected_with_an_error_message(
    folder: Path, opening: bytes, levels: int
) -> None:
    async with listening(folder):
        _, line = await asyncio.to_thread(answer_to, folder, opening * levels + b"\n")
        assert "emceepee --attach require" in refusal_in(line)


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n", b"{}\n", b"\xff\xfe\n", b"\n", b"1" * 10_000 + b"\n"])
async def test_anything_but_a_greeting_is_rejected_with_instructions_for_attaching(
    folder: Path, greeting: bytes
) -> None:
    async with listening(folder):
        _, line = await asyncio.to_thread(answer_to, folder, greeting)
        assert "emceepee --attach require" in refusal_in(line)


async def test_a_greeting_that_is_incomplete_at_its_deadline_is_rejected(folder: Path) -> None:
    clock = FakeClock()
    async with listening(folder, clock):
        reader, writer = await asyncio.open_unix_connection(str(folder / SOCKET_NAME))
        try:
            writer.write(write_greeting(HELLO)[:-1])
            await eventually(lambda: clock.is_waited_for, what="the daemon waits for the rest")
            await clock.advance(HELLO_SECONDS)
            assert f"did not arrive within {HELLO_SECONDS:g} s" in refusal_in(
                await asyncio.wait_for(reader.readline(), BOUND)
            )
        finally:
            writer.close()


async def test_a_caller_that_disconnects_during_its_greeting_is_forgotten(folder: Path) -> None:
    async with listening(folder) as callers:
        with connect(folder) as connection:
            connection.sendall(b"{")
        await eventually(lambda: len(callers) == 0, what="nobody is there")


@pytest.mark.parametrize("word", ["x", "\N{WORRIED FACE}", "\udcff"])
def test_every_message_of_a_daemon_fits_into_its_greeting(word: str) -> None:
    for welcome in (Welcome(pid=1, refusal=word * 100_000), Welcome(pid=1, longest_line=1, notice=word * 100_000)):
        line = write_greeting(welcome)
        assert len(line) <= LONGEST_GREETING
        found = read_welcome(line)
        assert (found.refusal or found.notice or "").startswith(word * 100)


# The other side: what answers is perhaps no daemon.


@contextmanager
def a_daemon_that(answer: Callable[[socket.socket], object], folder: Path) -> Iterator[None]:
    """Hears one greeting, and then does that."""

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.makefile("rb").readline()
            answer(connection)

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(folder / SOCKET_NAME))
        listener.listen()
        serving = threading.Thread(target=serve, args=(listener,), daemon=True)
        serving.start()
        yield
        serving.join(BOUND)
        assert not serving.is_alive()


def welcome(**fields: Any) -> bytes:
    return json.dumps({"emceepee": "welcome", "pid": 1, "longest_line": 1000, **fields}).encode() + b"\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"[" * 10_000 + b"\n",
        b'{"a":' * 3000 + b"\n",
        b"x" * LONGEST_GREETING,
        b"HTTP/1.1 400 Bad Request\r\n",
        welcome(pid="x"),
        welcome(pid=None),
        welcome(longest_line=float("inf")),
        welcome(longest_line=-1),
        welcome(link_file=1),
        welcome(notice=["x"]),
        welcome(refusal={}),
    ],
)
def test_an_invalid_answer_of_a_daemon_is_reported_with_the_next_step(folder: Path, answer: bytes) -> None:
    with (
        a_daemon_that(lambda connection: connection.sendall(answer), folder),
        pytest.raises(NoDaemon, match="did not answer as emceepee's daemon does") as raised,
    ):
        reach(folder, HELLO)
    assert str(folder / SOCKET_NAME) in str(raised.value)


def test_a_daemon_that_answers_too_slowly_times_out(folder: Path) -> None:
    seconds = count()
    drops: list[bytes] = []

    def drip(connection: socket.socket) -> None:
        for _ in range(LONGEST_GREETING):
            connection.sendall(b"x")
            drops.append(b"x")

    with a_daemon_that(drip, folder), pytest.raises(NoDaemon, match="did not answer within 10 s"):
        reach(folder, HELLO, now=lambda: float(next(seconds)))
    assert next(seconds) < 20


def test_a_truncated_greeting_means_that_the_daemon_is_stopping(folder: Path) -> None:
    with a_daemon_that(lambda connection: connection.sendall(b'{"emceepee"'), folder):
        assert reach(folder, HELLO) is None

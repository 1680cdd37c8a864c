"""A process that floods its output does not delay other work."""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from emceepee.backends.process.kept_process import STDERR, STDIN, STDOUT, TURN_BYTES, ProcessPipe
from support.fakes.clock import settle
from support.figures import record_figure
from support.waiting import eventually


class Heard(asyncio.SubprocessProtocol):
    """The output of the pipes, unchanged."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, bytes]] = []

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.parts.append((fd, data))


async def what_comes(number: int, data: bytes) -> tuple[int, list[int], list[tuple[int, bytes]]]:
    """How much fits into the pipe at once, what is read in each turn of the loop, and what is heard of it."""
    heard, loop = Heard(), asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    in_turns = [0]

    def turn() -> None:
        in_turns.append(sum(len(part) for _, part in heard.parts) - sum(in_turns))
        loop.call_soon(turn)

    with theirs:
        sent = theirs.send(data)
        transport, _ = await loop.create_unix_connection(lambda: ProcessPipe(heard, number), sock=ours)
        loop.call_soon(turn)
        if number != STDIN:
            await eventually(lambda: sum(in_turns) == sent, what="all is read")
        transport.close()
    return sent, in_turns, heard.parts


def on_uvloop(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """As it is served. asyncio's own loop reads once in a turn, uvloop as long as buffers are filled."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work())


async def check_turns() -> None:
    data = b"".join(b"%d\n" % number for number in range(60_000))
    for number in (STDOUT, STDERR):
        sent, in_turns, parts = await what_comes(number, data)
        record_figure(f"{sent} bytes are written at once: at most {max(in_turns)} are read in one turn of the loop")
        assert sent > 2 * TURN_BYTES
        assert b"".join(part for _, part in parts) == data[:sent]
        assert {fd for fd, _ in parts} == {number}
        assert max(in_turns) <= 2 * TURN_BYTES  # uvloop may begin with two


async def test_one_turn_of_the_event_loop_reads_only_a_limited_part_of_a_process_output() -> None:
    await check_turns()


def test_one_turn_of_the_serving_event_loop_reads_only_a_limited_part_of_a_process_output() -> None:
    on_uvloop(check_turns)


async def check_pause() -> None:
    """Each part of what comes pauses it, until someone says so."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    loop = asyncio.get_running_loop()

    class Pausing(Heard):
        def pipe_data_received(self, fd: int, data: bytes) -> None:
            super().pipe_data_received(fd, data)
            pipe.pause_reading()

    heard = Pausing()
    pipe = ProcessPipe(heard, STDOUT)
    with theirs:
        theirs.send(bytes(3 * TURN_BYTES))
        transport, _ = await loop.create_unix_connection(lambda: pipe, sock=ours)
        for count in (1, 2, 3):
            await eventually(lambda count=count: len(heard.parts) == count, what="a part is read")  # type: ignore[misc]
            await settle()
            assert len(heard.parts) == count
            pipe.resume_reading()
        transport.close()
        pipe.resume_reading()


async def test_a_paused_pipe_stays_paused_until_it_is_resumed() -> None:
    await check_pause()


def test_a_paused_pipe_stays_paused_on_the_serving_event_loop() -> None:
    on_uvloop(check_pause)


async def test_output_that_a_process_writes_to_its_stdin_is_ignored() -> None:
    assert (await what_comes(STDIN, b"odd"))[2] == []

import asyncio
from typing import Any

import pytest

from emceepee.backends.link import LinkError
from emceepee.backends.process.child import Child, child_environment
from support.fakes.clock import FakeClock, settle


def test_a_child_process_inherits_only_the_environment_variables_that_it_needs_to_run() -> None:
    ours = {
        "PATH": "/bin",
        "HOME": "/root",
        "LANG": "C",
        "HTTPS_PROXY": "http://p",
        "AWS_SECRET_ACCESS_KEY": "s",
        "X": "y",
    }
    assert child_environment({}, ours) == {"PATH": "/bin", "HOME": "/root", "LANG": "C", "HTTPS_PROXY": "http://p"}


def test_configured_environment_variables_override_inherited_ones_in_a_child_process() -> None:
    assert child_environment({"TOKEN": "t", "PATH": "/opt"}, {"PATH": "/bin", "HOME": "/root"}) == {
        "PATH": "/opt",
        "HOME": "/root",
        "TOKEN": "t",
    }


def test_building_the_environment_of_a_child_leaves_our_own_environment_unchanged() -> None:
    ours = {"PATH": "/bin"}
    child_environment({"PATH": "/opt"}, ours)["PATH"] = "/tmp"
    assert ours == {"PATH": "/bin"}


class BrokenPipe(asyncio.WriteTransport):
    """A pipe of uvloop after its reader is gone and before the writer is notified."""

    def is_closing(self) -> bool:
        return True

    def write(self, data: Any) -> None:
        raise RuntimeError("the handler is closed")


class JustExited(asyncio.SubprocessTransport):
    def get_pipe_transport(self, fd: int) -> BrokenPipe:
        return BrokenPipe()

    def get_pid(self) -> int:
        return 7

    def get_returncode(self) -> int:
        return 3


async def test_writing_to_a_child_that_has_just_exited_fails_with_its_exit_code() -> None:
    clock = FakeClock()
    child = Child("server", clock, on_line=lambda _: None, on_stderr=lambda _: None, longest=1000)
    child.connection_made(JustExited())
    writing = asyncio.create_task(child.write(b"{}"))
    child.process_exited()
    await clock.advance(2)
    with pytest.raises(LinkError, match="server exited with code 3"):
        await writing


class SlowPipe(asyncio.WriteTransport):
    """A pipe that accepts everything and records it."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[bytes] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: Any) -> None:
        self.taken.append(data)


class Running(asyncio.SubprocessTransport):
    def __init__(self) -> None:
        super().__init__()
        self.pipe = SlowPipe()

    def get_pipe_transport(self, fd: int) -> SlowPipe:
        return self.pipe

    def get_pid(self) -> int:
        return 7


async def test_writes_to_a_child_that_does_not_read_are_queued_and_then_sent_in_order() -> None:
    child = Child("server", FakeClock(), on_line=lambda _: None, on_stderr=lambda _: None, longest=1000)
    transport = Running()
    child.connection_made(transport)
    await child.write(b"first")
    child.pause_writing()
    writing = [asyncio.create_task(child.write(data)) for data in (b"a", b"given up", b"b")]
    await settle()
    writing[1].cancel()
    await settle()
    assert transport.pipe.taken == [b"first"]
    child.resume_writing()
    async with asyncio.timeout(5):
        await asyncio.gather(writing[0], writing[2])
    assert transport.pipe.taken == [b"first", b"a", b"b"]


async def test_no_timer_outlives_a_child_whose_pipes_close_after_its_exit() -> None:
    """A pending timer would keep the unread input in memory."""
    clock = FakeClock()
    child = Child("server", clock, on_line=lambda _: None, on_stderr=lambda _: None, longest=1000)
    child.connection_made(JustExited())
    child.process_exited()
    assert clock.is_waited_for
    for pipe in (1, 2):
        child.pipe_connection_lost(pipe, None)
    assert child.ended.done()
    assert not clock.is_waited_for

"""Processes started by the guardian work like any others: pipes, environment, exit codes, and signals."""

import asyncio
import os
import resource
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

import pytest

from emceepee.backends.process.child_processes import ChildProcesses
from emceepee.backends.process.kept_process import KeptProcess
from support.figures import record_figure
from support.system.processes import children_of, is_alive, until

BOUND = 30.0
SHELL = "/bin/sh"
MANY = 300


class Watched(asyncio.SubprocessProtocol):
    """Records all reports."""

    def __init__(self) -> None:
        self.said = {1: b"", 2: b""}
        self.lost: set[int] = set()
        self.exited = asyncio.Event()
        self.process: KeptProcess | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.process = cast(KeptProcess, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.said[fd] += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self.lost.add(fd)

    def process_exited(self) -> None:
        assert not self.exited.is_set(), "told twice"
        self.exited.set()

    async def code(self) -> int | None:
        async with asyncio.timeout(BOUND):
            await self.exited.wait()
        assert self.process is not None
        return self.process.get_returncode()

    async def end(self) -> None:
        assert self.process is not None
        self.process.kill()
        async with asyncio.timeout(BOUND):
            await self.process.gone
        self.process.close()


@asynccontextmanager
async def a_family() -> AsyncIterator[ChildProcesses]:
    family = ChildProcesses()
    try:
        yield family
    finally:
        await family.close()


async def started(family: ChildProcesses, *command: str, cwd: str | None = None, **environment: str) -> Watched:
    watched = Watched()
    await family.start(watched, command, environment=environment, cwd=cwd)
    return watched


async def ran(
    family: ChildProcesses, *command: str, cwd: str | None = None, **environment: str
) -> tuple[int | None, str, str]:
    """Its end, and its output."""
    watched = await started(family, *command, cwd=cwd, **environment)
    code = await watched.code()
    await until(lambda: watched.lost >= {1, 2}, what="the end of its output")
    await watched.end()
    return code, watched.said[1].decode(), watched.said[2].decode()


async def test_the_output_and_the_exit_of_a_child_process_are_reported() -> None:
    async with a_family() as family:
        assert await ran(family, SHELL, "-c", "echo out; echo err >&2; exit 3") == (3, "out\n", "err\n")
        assert (await ran(family, SHELL, "-c", "kill -9 $$"))[0] == -signal.SIGKILL
        assert await ran(family, SHELL, "-c", "printf %200000s x") == (0, " " * 199_999 + "x", "")


async def test_a_child_process_gets_only_its_configured_environment_and_directory(tmp_path: Path) -> None:
    async with a_family() as family:
        words = await ran(family, "/usr/bin/env", cwd=str(tmp_path), A="ä b", EMPTY="")
        assert words == (0, "A=ä b\nEMPTY=\n", "")
        assert (await ran(family, "/bin/pwd", cwd=str(tmp_path)))[1].strip() == str(tmp_path)


async def test_a_child_process_inherits_three_descriptors_and_no_ignored_signal() -> None:
    async with a_family() as family:
        await started(family, "/bin/cat")
        assert (await ran(family, "/bin/ls", "/proc/self/fd"))[1].split() == [
            "0",
            "1",
            "2",
            "3",
        ]  # its own, of the folder
        status = (await ran(family, "/bin/cat", "/proc/self/status"))[1]
        masks = dict(line.split(":\t") for line in status.splitlines() if line.startswith("Sig"))
        usual = (1 << 31) - 1  # the C library keeps two beyond for itself
        assert [int(masks[name], 16) & usual for name in ("SigIgn", "SigBlk")] == [0, 0]


async def test_a_child_process_leads_a_session_of_its_own() -> None:
    async with a_family() as family:
        watched = await started(family, "/bin/cat")
        assert watched.process is not None
        pid = watched.process.get_pid()
        assert (os.getsid(pid), os.getpgid(pid)) == (pid, pid)
        await watched.end()
        assert not is_alive(pid)


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (("/no/such/program",), FileNotFoundError),
        (("/etc",), PermissionError),
        (("/bin/echo", "a\0b"), ValueError),
        (("/bin/echo", "x" * (4 << 20)), OSError),
    ],
)
async def test_a_program_that_cannot_be_started_is_reported(command: tuple[str, ...], error: type[Exception]) -> None:
    async with a_family() as family:
        with pytest.raises(error):
            await started(family, *command)
        assert (await ran(family, "/bin/true"))[0] == 0


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
async def test_an_invalid_environment_variable_is_reported(name: str) -> None:
    async with a_family() as family:
        with pytest.raises(ValueError, match=r"illegal environment variable name|embedded null byte"):
            await family.start(Watched(), ["/bin/true"], environment={name: "x"}, cwd=None)


async def test_a_script_without_a_shebang_is_run_by_the_shell(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hello $1\n")
    script.chmod(0o755)
    async with a_family() as family:
        assert await ran(family, str(script), "you") == (0, "hello you\n", "")


async def test_terminate_signals_the_process_group_and_kill_ends_every_process() -> None:
    async with a_family() as family:
        asked = await started(family, SHELL, "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done")
        assert asked.process is not None
        await until(lambda: b"ready" in asked.said[1], what="its trap")
        asked.process.terminate()
        assert await asked.code() == 7
        deaf = await started(family, SHELL, "-c", "trap '' TERM; (setsid sleep 300) & while :; do sleep 1; done")
        assert deaf.process is not None
        pid = deaf.process.get_pid()
        await until(lambda: len(children_of(pid)) >= 1, what="its children")
        deaf.process.terminate()
        await deaf.end()
        assert await deaf.code() == -signal.SIGKILL
        assert not is_alive(pid)


async def test_many_child_processes_start_at_once_and_each_exit_is_reported_to_its_owner() -> None:
    async with a_family() as family:
        began = time.monotonic()
        found = await asyncio.gather(*(ran(family, SHELL, "-c", f"echo {n}; exit {n % 250}") for n in range(MANY)))
        record_figure(f"{MANY} processes came and went in {time.monotonic() - began:.2f} s")
        assert found == [(n % 250, f"{n}\n", "") for n in range(MANY)]


async def test_a_killed_guardian_is_replaced_and_its_child_processes_continue() -> None:
    async with a_family() as family:
        first = await started(family, "/bin/cat")
        assert family._guardian is not None
        family._guardian.kill()
        second = await started(family, "/bin/cat")
        for watched in (first, second):
            assert watched.process is not None
            assert is_alive(watched.process.get_pid())
            await watched.end()
            assert await watched.code() is not None


async def test_child_processes_leak_no_descriptors() -> None:
    async with a_family() as family:
        await ran(family, "/bin/true")
        before = len(os.listdir("/proc/self/fd"))
        await asyncio.gather(*(ran(family, "/bin/true") for _ in range(50)))
        for _ in range(5):
            with pytest.raises(FileNotFoundError):
                await started(family, "/no/such/program")
        await until(lambda: len(os.listdir("/proc/self/fd")) == before, what="the closing of all pipes")


async def test_starting_a_child_process_without_free_descriptors_is_an_error_without_leaks() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with a_family() as family:
        await ran(family, "/bin/true")
        before = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 20, hard))
        taken: list[int] = []
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            for _ in range(5):  # room for two pairs of sockets, not for four
                os.close(taken.pop())
            with pytest.raises(OSError, match="Too many open files"):
                await started(family, "/bin/true")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for descriptor in taken:
                os.close(descriptor)
        assert len(os.listdir("/proc/self/fd")) == before
        assert (await ran(family, "/bin/true"))[0] == 0

"""An unread log or a full disk delays no caller."""

import asyncio
import os
import re
import sys
import time
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from support.callers.emceepee_process import BOUND, configured, emceepee
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.ports import free_port
from support.waiting import eventually

CALLS = 1500  # each of which logs two lines; a pipe that nobody reads is full after some four hundred
ROOM = {"tasks_per_session": 2000, "task_retention_seconds": 1}
LONGEST_ANSWER = 2.5  # seconds: five times what anyone may wait


@pytest.mark.parametrize("style", ["text", "json"])
async def test_an_unread_standard_error_blocks_no_call(style: str) -> None:
    """Lines beyond the buffer are dropped and counted, and the process exits on a signal."""
    read, write = os.pipe()
    try:
        async with emceepee(
            "--log-format", style, env=configured({"small": stdio_server()}, **ROOM), stderr=write
        ) as caller:
            os.close(write)
            await caller.initialize()
            slowest = 0.0
            for number in range(CALLS):
                began = time.monotonic()
                call = caller.call(
                    "execute_tool", server="small", tool="echo", args={"text": str(number)}, timeout_ms=0
                )
                await asyncio.wait_for(call, LONGEST_ANSWER)
                slowest = max(slowest, time.monotonic() - began)
            record_figure(f"{CALLS} promoted calls, the slowest answer after {slowest * 1000:.0f} ms")
            began = time.monotonic()
            assert await caller.end() == 0
            assert time.monotonic() - began < 10
    finally:
        os.close(read)


@pytest.mark.parametrize("command", [(), ("serve", "--port", "0")], ids=["stdio", "serve"])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("no/such/folder/log", "No such file or directory"),
        (".", "Is a directory"),
    ],
)
async def test_a_log_file_that_cannot_be_opened_is_reported_in_one_line(
    command: tuple[str, ...], place: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / place
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", *command, "--log-file", str(file)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, heard = await asyncio.wait_for(process.communicate(), BOUND)
    assert heard.decode().splitlines() == [f"emceepee: the log file {file} cannot be used: {said}"]
    assert process.returncode == 2


async def test_a_full_disk_is_reported_in_one_line_and_blocks_no_call() -> None:
    """/dev/full fails every write, like a full disk."""
    async with emceepee(
        *("--log-file", "/dev/full"), env=configured({"small": stdio_server()}, **ROOM), stderr=asyncio.subprocess.PIPE
    ) as caller:
        await caller.initialize()
        for _ in range(30):
            await caller.call("execute_tool", server="small", tool="echo", args={"text": "hello"}, timeout_ms=0)
        assert await caller.end() == 0
        assert caller.process.stderr is not None
        heard = (await asyncio.wait_for(caller.process.stderr.read(), BOUND)).decode().splitlines()
    assert len(heard) == 1
    assert re.fullmatch(r"emceepee: the log file /dev/full cannot be written: No space left on device; .*", heard[0])


async def test_the_last_log_lines_are_written_when_the_process_has_ended(tmp_path: Path) -> None:
    file = tmp_path / "log"
    async with emceepee("--log-file", str(file), env=configured({"small": stdio_server()})) as caller:
        await caller.initialize()
        await caller.value("list_servers")
        assert await caller.end() == 0
    assert "registry_shutdown_complete" in file.read_text("utf-8").splitlines()[-1]


async def test_the_address_is_announced_even_if_standard_error_is_not_read() -> None:
    """Every login creates a new link, and writing the link never blocks."""
    port = free_port()
    read, write = os.pipe()
    fill(write)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "serve", "--port", str(port)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=write,
    )
    try:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as http:
            await eventually(lambda: is_well(http, port), what="it answers")
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 20) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(read)
        os.close(write)


def fill(pipe: int) -> None:
    os.set_blocking(pipe, False)
    with suppress(BlockingIOError):
        while True:
            os.write(pipe, bytes(4096))
    os.set_blocking(pipe, True)


async def is_well(http: aiohttp.ClientSession, port: int) -> bool:
    try:
        async with http.get(f"http://127.0.0.1:{port}/healthz") as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False

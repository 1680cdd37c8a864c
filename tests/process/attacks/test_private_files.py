"""The files of emceepee are readable only by their owner."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from support.callers.emceepee_process import BOUND, emceepee
from support.callers.http_process import http_process
from support.console.http_browser import browser_for, links, the_link
from support.programs import unprivileged_emceepee
from support.programs.unprivileged_emceepee import NOBODY
from support.waiting import eventually

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user")


@pytest.fixture
def place(open_folder: Path) -> Path:
    return open_folder


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def text_in(file: Path) -> str:
    return file.read_text().strip()


@asynccontextmanager
async def logging_to(file: Path, *more: str) -> AsyncIterator[None]:
    async with emceepee("--log-file", str(file), *more) as caller:
        await caller.initialize()
        yield
        assert await caller.end() == 0


async def test_a_log_file_is_created_for_its_owner_alone(place: Path) -> None:
    async with logging_to(place / "log"):
        assert mode(place / "log") == 0o600


async def test_an_own_log_file_that_others_could_read_is_made_private(place: Path) -> None:
    (place / "log").write_text("before\n")
    (place / "log").chmod(0o644)
    async with logging_to(place / "log"):
        assert mode(place / "log") == 0o600
    assert (place / "log").read_text().startswith("before\n")


async def failing(file: Path, *entry: str) -> str:
    """The output of an emceepee that cannot start."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *(entry or ("-m", "emceepee")), "--log-file", str(file)),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, heard = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 2
    return heard.decode()


async def test_a_log_file_is_not_opened_through_a_symbolic_link(place: Path) -> None:
    (place / "other").write_text("precious\n")
    (place / "log").symlink_to(place / "other")
    said = await failing(place / "log")
    assert said == f"emceepee: the log file {place / 'log'} cannot be used: it is a symbolic link\n"
    assert (place / "other").read_text() == "precious\n"


async def test_a_named_pipe_without_a_reader_is_reported_and_not_waited_for(place: Path) -> None:
    os.mkfifo(place / "log")
    assert "cannot be used: No such device or address" in await failing(place / "log")


@needs_root
async def test_a_log_file_that_is_not_writable_is_reported_in_one_line(place: Path) -> None:
    (place / "log").touch(mode=0o600)
    said = await failing(place / "log", unprivileged_emceepee.__file__)
    assert said == f"emceepee: the log file {place / 'log'} cannot be used: Permission denied\n"


@needs_root
async def test_a_log_file_of_another_user_is_written_with_unchanged_permissions(place: Path) -> None:
    (place / "log").touch()
    (place / "log").chmod(0o666)
    async with emceepee("--log-file", str(place / "log"), entry=(unprivileged_emceepee.__file__,)) as caller:
        await caller.initialize()
        assert await caller.end() == 0
    assert mode(place / "log") == 0o666
    assert "registry_shutdown_complete" in (place / "log").read_text()


@needs_root
async def test_an_unprivileged_emceepee_keeps_its_own_log_file_private(place: Path) -> None:
    os.chown(place, NOBODY, NOBODY)
    async with emceepee("--log-file", str(place / "log"), entry=(unprivileged_emceepee.__file__,)) as caller:
        await caller.initialize()
        assert await caller.end() == 0
    assert (mode(place / "log"), (place / "log").stat().st_uid) == (0o600, NOBODY)


# The way in.


async def test_the_log_file_never_contains_a_login_link(place: Path) -> None:
    async with (
        http_process("--log-level", "debug", "--log-file", str(place / "log")) as endpoint,
        aiohttp.ClientSession() as http,
    ):
        await browser_for(http, await the_link(endpoint.log)).log_in(await the_link(endpoint.log))
        await the_link(endpoint.log, 2)
    text = (place / "log").read_text()
    assert "console_open" in text
    for link in links(endpoint.log):
        assert link.partition("code=")[2] not in text


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside stdio", "serve"])
async def test_the_newest_login_link_is_in_a_private_file_on_request(place: Path, *, is_beside: bool) -> None:
    """For clients that hide standard error. An earlier file is replaced, even a link or another user's file."""
    file = place / "link"
    (place / "other").write_text("precious\n")
    file.symlink_to(place / "other")
    if is_beside:
        async with emceepee("--console", "0", "--link-file", str(file)) as caller, aiohttp.ClientSession() as http:
            await caller.initialize()
            await opens_twice(http, file)
            assert await caller.end() == 0
    else:
        async with http_process("--link-file", str(file)), aiohttp.ClientSession() as http:
            await opens_twice(http, file)
    assert not file.exists()
    assert (place / "other").read_text() == "precious\n"


async def opens_twice(http: aiohttp.ClientSession, file: Path) -> None:
    await eventually(lambda: not file.is_symlink(), what="the link is there")
    first = text_in(file)
    assert mode(file) == 0o600
    await browser_for(http, first).log_in(first)
    await eventually(lambda: text_in(file) != first, what="the next link is there")
    await browser_for(http, first).log_in(text_in(file))


async def test_a_link_file_that_cannot_be_written_causes_a_warning(place: Path) -> None:
    async with http_process("--link-file", str(place / "no" / "such" / "folder")) as endpoint:
        await eventually(lambda: any("link_file_not_written" in line for line in endpoint.log), what="a log line")

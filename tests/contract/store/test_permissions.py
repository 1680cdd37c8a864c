"""Errors of an unprivileged emceepee at a path without permissions. Permissions do not apply to root."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.documentation import ROOT
from support.programs import unprivileged_store
from support.programs.unprivileged_emceepee import NOBODY

BOUND = 30.0


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that belongs to the user of the state file in it."""
    folder = Path(tempfile.mkdtemp(prefix="emceepee-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    folder.chmod(0o700)
    shutil.rmtree(folder)


class Program:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def heard(self) -> str:
        assert self._process.stdout is not None
        return (await asyncio.wait_for(self._process.stdout.readline(), BOUND)).decode().strip()

    async def commit(self) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(b"again\n")
        return await self.heard()


@asynccontextmanager
async def program(path: Path) -> AsyncIterator[Program]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, unprivileged_store.__file__, str(path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
    )
    try:
        yield Program(process)
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.wait_for(process.wait(), BOUND)


async def test_a_state_directory_without_write_permission_is_one_clear_error(place: Path) -> None:
    place.chmod(0o500)
    async with program(place / "state.db") as opening:
        said = await opening.heard()
    assert said.startswith(f"StoreUnusable: The state file {place / 'state.db'} cannot be opened or written")
    assert said.endswith(
        "Give this user write access to the file and its directory, or specify another file with --state sqlite:PATH, "
        "or store nothing with --state memory."
    )


async def test_a_state_directory_that_cannot_be_created_is_one_clear_error(place: Path) -> None:
    place.chmod(0o500)
    async with program(place / "folder" / "state.db") as opening:
        assert "StoreUnusable" in await opening.heard()


async def test_a_state_file_without_write_permission_is_refused(place: Path) -> None:
    async with program(place / "state.db") as first:
        assert await first.heard() == "opened"
        assert await first.commit() == "committed"
    (place / "state.db").chmod(0o400)
    if os.geteuid() == 0:
        os.chown(place / "state.db", 0, 0)
    async with program(place / "state.db") as second:
        assert "cannot be opened or written" in await second.heard()


async def test_writing_resumes_when_the_state_file_returns(place: Path) -> None:
    path = place / "inner" / "state.db"
    async with program(path) as store:
        assert await store.heard() == "opened"
        assert await store.commit() == "committed"
        path.rename(place / "away.db")
        said = "committed"
        while said == "committed":  # until it looks whether its file is still there
            said = await store.commit()
        assert "no longer exists" in said
        (place / "away.db").rename(path)
        assert await store.commit() == "committed"

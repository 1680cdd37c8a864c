"""An unusable state file: one clear line with the file and the next step, and the file is left unchanged."""

import asyncio
import base64
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.http_process import BOUND
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.programs import unprivileged_emceepee
from support.programs.unprivileged_emceepee import NOBODY

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up root's rights")
OTHER_KEY = base64.urlsafe_b64encode(bytes(32)).decode()


async def refusal(state: Path, *entry: str, **env: str) -> str:
    """The line that it says, without a traceback or anything else."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *(entry or ("-m", "emceepee")), "serve", "--port", "0", "--log-level", "warn"),
        stdin=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"XDG_STATE_HOME": str(state)} | env,
    )
    _, heard = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 2, heard
    (line,) = heard.decode().splitlines()
    assert line.startswith("emceepee: The state file ") or "EMCEEPEE_STATE_KEY" in line, line
    assert str(state / "emceepee" / "state.db") in line
    return line


def contents(file: Path) -> dict[str, bytes]:
    """The files beside it, except for the marks of live processes."""
    return {found.name: found.read_bytes() for found in file.parent.iterdir() if found.is_file()}


async def written(state: Path) -> Path:
    """A state that was used and closed."""
    async with restartable_process(state) as endpoint:
        caller = await endpoint.caller()
        await caller.value("set_timer", duration_ms=60_000, message="kept")
    return endpoint.database


async def test_a_damaged_state_file_is_reported_in_one_line_and_left_unchanged(tmp_path: Path) -> None:
    file = await written(tmp_path)
    file.write_bytes(b"\0" * 100 + file.read_bytes()[100:])
    before = contents(file)
    line = await refusal(tmp_path)
    assert "is damaged, or is not a state file" in line
    assert "Restore an earlier copy, or move the file away" in line
    assert contents(file) == before


async def test_a_state_file_of_a_newer_version_is_reported_in_one_line_and_left_unchanged(tmp_path: Path) -> None:
    file = await written(tmp_path)
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = contents(file)
    line = await refusal(tmp_path)
    assert "newer" in line
    assert "--state sqlite:PATH" in line
    assert contents(file) == before


async def test_state_with_secrets_under_another_key_is_reported_in_one_line_and_left_unchanged(
    endpoint: RestartableProcess, backend: CountingBackend, tmp_path: Path
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url, headers={"x-token": "hush"})
    await endpoint.stop()
    before = contents(endpoint.database)
    line = await refusal(tmp_path, EMCEEPEE_STATE_KEY=OTHER_KEY)
    assert "key" in line
    assert OTHER_KEY not in line
    assert contents(endpoint.database) == before
    await endpoint.start()
    assert [server["name"] for server in (await caller.value("list_servers"))["servers"]] == ["one"]


async def test_an_invalid_state_key_is_reported_in_one_line(tmp_path: Path) -> None:
    line = await refusal(tmp_path, EMCEEPEE_STATE_KEY="short")
    assert "32 bytes" in line


@needs_root
async def test_a_state_directory_without_write_permission_is_reported_in_one_line(open_folder: Path) -> None:
    line = await refusal(open_folder, unprivileged_emceepee.__file__)
    assert "Permission denied" in line
    assert "Give this user write access" in line
    assert os.listdir(open_folder) == []


@needs_root
async def test_an_own_state_file_in_a_directory_without_write_permission_is_reported_in_one_line(
    open_folder: Path,
) -> None:
    file = await written(open_folder)
    for path in (file.parent, *file.parent.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    file.parent.chmod(0o500)
    before = contents(file)
    line = await refusal(open_folder, unprivileged_emceepee.__file__)
    assert "Give this user write access" in line
    assert contents(file) == before

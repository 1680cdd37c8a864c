"""The working directory is an untrusted repository: emceepee runs none of its files."""

import asyncio
import json
import os
import sys
from pathlib import Path

import aiohttp
import pytest

from support.callers.attached_callers import home
from support.callers.emceepee_process import BOUND, emceepee
from support.callers.http_process import HttpProcess, address_of, read_log
from support.recordings import lines
from support.sessions.replies import text_of

PROGRAMS = Path(sys.executable).parent
EMCEEPEE, DEMO = str(PROGRAMS / "emceepee"), str(PROGRAMS / "emceepee-demo")
MODULES = ("emceepee", "json", "jwt", "sitecustomize", "asyncio", "pydantic_monty", "keyring")
COMMANDS = (
    *("--help", "--version", "version", "completion bash", "config schema", "config check", "undo --list"),
    *("import --dry-run", "install cursor --dry-run", "state", "auth list", "doctor demo", "servers list"),
    *("call demo add a=2 b=40", "search add", "replay recording.jsonl"),
)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Each planted module or program leaves a file with its name."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in MODULES:
        leaves_a_trace = f"open({str(folder / 'ran')!r}, 'a').write('{name}\\n')"
        (folder / f"{name}.py").write_text(f"{leaves_a_trace}\nraise SystemExit(9)\n")
    for name in ("planted", "monty", "uvx", "xdg-open", "env", "python3"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {name} >> {folder / 'ran'}\n")
        program.chmod(0o755)
    (folder / "recording.jsonl").write_bytes(b"".join(line + b"\n" for line in lines()))
    return folder


def what_ran(folder: Path) -> str:
    found = folder / "ran"
    return found.read_text() if found.exists() else ""


def environment(tmp_path: Path) -> dict[str, str]:
    """Relative folders come first on the PATH."""
    config = {"mcpServers": {"demo": {"command": DEMO}, "planted": {"command": "planted"}}}
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("XDG_", "EMCEEPEE_", "PYTHON"))}
    path = os.pathsep.join((".", "", os.environ["PATH"]))
    return kept | {"HOME": str(tmp_path), "PATH": path, "EMCEEPEE_CONFIG": json.dumps(config)}


async def run(folder: Path, words: str, env: dict[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *(EMCEEPEE, *words.split()),
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), BOUND)
    finally:
        if process.returncode is None:
            process.kill()
    return said.decode()


async def test_no_command_runs_a_file_of_the_working_directory(repository: Path, tmp_path: Path) -> None:
    env = environment(tmp_path)
    said = dict(zip(COMMANDS, await asyncio.gather(*(run(repository, words, env) for words in COMMANDS)), strict=True))
    assert what_ran(repository) == ""
    assert said["call demo add a=2 b=40"] == "2 + 40 = 42\n"
    assert "Traceback" not in "".join(said.values())


async def test_a_server_does_not_inherit_relative_folders_of_the_path(repository: Path, tmp_path: Path) -> None:
    """A server that starts programs by name, as `npx` and scripts do, would run those of the working directory."""
    wrapped = {"command": "/bin/sh", "args": ["-c", f"planted; exec {DEMO}"]}
    env = environment(tmp_path) | {"EMCEEPEE_CONFIG": json.dumps({"mcpServers": {"demo": wrapped}})}
    assert await run(repository, "call demo add a=2 b=40", env) == "2 + 40 = 42\n"
    assert what_ran(repository) == ""


async def test_a_daemon_started_in_a_planted_directory_runs_none_of_its_files(repository: Path) -> None:
    async with home({"demo": {"command": DEMO}}) as user:
        arguments = ("--attach", "auto", "--idle-exit", "60")
        async with emceepee(*arguments, env=user.env, entry=(EMCEEPEE,), cwd=repository) as caller:
            await caller.initialize()
            assert user.daemon is not None, "the caller did not start a daemon"
            result = await caller.call("execute_tool", server="demo", tool="add", args={"a": 2, "b": 40})
            assert text_of(result) == "2 + 40 = 42"
    assert what_ran(repository) == ""


async def test_workers_and_the_sandbox_run_none_of_the_planted_files(repository: Path, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(EMCEEPEE, "serve", "--port", "0", "--no-console", "--workers", "2"),
        cwd=repository,
        env=environment(tmp_path),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with aiohttp.ClientSession() as http:
        endpoint = HttpProcess(process, "", http)
        try:
            endpoint.url = await address_of(process, endpoint.log)
            reading = asyncio.create_task(read_log(process.stderr, endpoint.log))
            caller = endpoint.modern()
            outcome = await caller.value("codemode_execute", code="2 + 40")
            assert outcome["result"] == 42
            error = await caller.error("add_server", name="other", command="planted")
            assert "there is no program 'planted' on the PATH" in error["message"]
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), BOUND)
    await reading
    assert what_ran(repository) == ""

"""Every command that `--help` lists runs once from the built wheel, in an environment with only its dependencies."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from emceepee.cli.main import build_parser
from support.command_tree import commands_of
from support.distribution import run
from support.system.ports import free_port

pytestmark = pytest.mark.timeout(300)  # packages are fetched and installed

BOUND = 60.0
TOKEN = "a token of the test"
SERVE = ("serve", "--port", "{port}", "--state", "sqlite:{home}/state.db", "--token", TOKEN)
# The arguments with which each command does its least harmful real work, in an order in which each finds its input.
BESIDE_SERVE = {
    "logs": ("--url", "http://127.0.0.1:{port}", "--token", TOKEN),
    "top": ("--once", "--url", "http://127.0.0.1:{port}", "--token", TOKEN),
}
ALONE = {
    "": (),
    "daemon": ("--idle-exit", "0.01"),
    "state": ("--state", "sqlite:{home}/state.db"),
    "state check": ("--state", "sqlite:{home}/state.db"),
    "state compact": ("--state", "sqlite:{home}/state.db"),
    "state seal": ("--state", "sqlite:{home}/state.db"),
    "state forget": ("--state", "sqlite:{home}/state.db", "--older-than", "1d"),
    "state export": ("--state", "sqlite:{home}/state.db", "{home}/export.json"),
    "auth list": (),
    "auth status": ("remote",),
    "auth login": ("remote", "--no-browser"),
    "auth logout": ("remote", "--yes"),
    "import": ("cursor", "--from", "{home}/other.json", "--dry-run"),
    "install": ("cursor", "--yes"),
    "undo": ("--all", "--yes"),
    "doctor": ("demo",),
    "servers list": (),
    "servers add": ("--yes", "added", "emceepee-demo"),
    "servers disable": ("added", "--yes"),
    "servers enable": ("added", "--yes"),
    "servers remove": ("added", "--yes"),
    "config check": (),
    "config schema": (),
    "tools": ("demo",),
    "call": ("demo", "add", "a=2", "b=40", "--record", "{home}/recording.jsonl"),
    "read": ("demo",),
    "prompt": ("demo",),
    "search": ("--server", "demo", "add", "two", "numbers"),
    "replay": ("{home}/recording.jsonl", "--list"),
    "version": (),
    "completion": ("bash",),
}
FAILING = {"auth login"}  # nothing listens at the server's address
LISTED = re.compile(r"^ {2,4}([a-z]+) {2,}\S", re.MULTILINE)  # the name of a command, and what it does


@pytest.fixture
def home(programs: Path) -> Iterator[Path]:
    """With a short path: the daemon has a socket below it, whose path may have about 100 characters."""
    with TemporaryDirectory(prefix="emceepee-") as folder:
        yield _with_configuration(Path(folder), programs)


def _with_configuration(home: Path, programs: Path) -> Path:
    servers = {
        "demo": {"command": str(programs / "emceepee-demo")},
        "remote": {"url": f"http://127.0.0.1:{free_port()}"},
    }
    config = home / ".config" / "emceepee" / "config.json"
    config.parent.mkdir(parents=True)
    for path in (config, home / "other.json"):
        path.write_text(json.dumps({"mcpServers": servers}))
    return home


def environment(home: Path, programs: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.defpath}"}


def complete_commands() -> set[str]:
    """Return the commands that run without the name of a subcommand."""
    return {command.name for command in commands_of(build_parser()) if command.is_complete}


def test_the_wheel_test_runs_every_command_of_the_parser() -> None:
    assert complete_commands() == {*ALONE, *BESIDE_SERVE, "serve"}


def test_the_help_pages_of_the_wheel_list_every_command(programs: Path, home: Path) -> None:
    def listed(*path: str) -> Iterator[str]:
        yield " ".join(path)
        shown = run(programs / "emceepee", *path, "--help", cwd=home, env=environment(home, programs))
        for name in LISTED.findall(shown):
            yield from listed(*path, name)

    groups = {command.rpartition(" ")[0] for command in complete_commands()}
    assert {*listed()} == {*complete_commands(), *groups}
    shown = run(programs / "emceepee-http", "--help", cwd=home, env=environment(home, programs))
    assert shown == run(programs / "emceepee", "serve", "--help", cwd=home, env=environment(home, programs))


def test_every_command_runs_from_the_wheel_without_a_traceback(programs: Path, home: Path) -> None:
    port = free_port()

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [programs / "emceepee", *(word.format(home=home, port=port) for word in words)],
            cwd=home,
            env=environment(home, programs),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @contextmanager
    def serving() -> Iterator[None]:
        process = start(*SERVE)
        try:
            assert process.stderr is not None
            next(line for line in process.stderr if f":{port}" in line)
            yield
        finally:
            process.terminate()
            note("serve", process)

    def note(command: str, process: subprocess.Popen[str]) -> None:
        out, err = process.communicate(timeout=BOUND)
        if process.returncode != (1 if command in FAILING else 0) or "Traceback" in out + err:
            wrong[command] = (process.returncode, err)

    wrong: dict[str, tuple[int, str]] = {}
    with serving():
        for command, words in BESIDE_SERVE.items():
            note(command, start(*command.split(), *words))
    for command, words in ALONE.items():
        note(command, start(*command.split(), *words))
    assert wrong == {}

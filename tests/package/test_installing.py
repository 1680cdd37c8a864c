"""Every documented way to install works with the built wheel in place of the published one."""

import asyncio
import configparser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from ruamel.yaml import YAML

from support.callers.http_process import BOUND, HttpProcess, address_of, read_log
from support.distribution import ENVIRONMENT, UV, VERSION, Distribution, pins, run
from support.documentation import ROOT, Page
from support.sessions.replies import text_of

pytestmark = pytest.mark.timeout(300)  # packages are fetched and installed

TOKEN = "a token of the test"
INSTRUCTIONS = {
    *("FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "VOLUME", "EXPOSE"),
    *("HEALTHCHECK", "STOPSIGNAL", "ENTRYPOINT", "CMD"),
}
UNIT = ROOT / "deploy" / "emceepee.service"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One line of the Dockerfile."""

    name: str
    words: str


def stages() -> list[list[Instruction]]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text("utf-8"))
    found: list[list[Instruction]] = []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, _, words = line.partition(" ")
        assert name in INSTRUCTIONS, line
        if name == "FROM":
            found.append([])
        found[-1].append(Instruction(name, words))
    return found


def the(name: str) -> str:
    """Return the argument of this instruction in the image."""
    (found,) = (item.words for item in stages()[-1] if item.name == name)
    return found


@asynccontextmanager
async def served(*command: str | Path, env: Mapping[str, str]) -> AsyncIterator[HttpProcess]:
    process = await asyncio.create_subprocess_exec(*command, env=env, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    async with aiohttp.ClientSession() as http:
        endpoint = HttpProcess(process, "", http)
        try:
            endpoint.url = await address_of(process, endpoint.log)
            reading = asyncio.create_task(read_log(process.stderr, endpoint.log))
            yield endpoint
        finally:
            if process.returncode is None:
                process.terminate()
            await asyncio.wait_for(process.wait(), BOUND)
    await reading
    assert process.returncode == 0, endpoint.log


def a_home(folder: Path, python: Path) -> dict[str, str]:
    """The environment of a service, with the demo in its configuration file."""
    servers = {"mcpServers": {"demo": {"command": str(python), "args": ["-m", "emceepee.demo"]}}}
    for place in ("etc/emceepee", "var/lib/emceepee"):
        (folder / place).mkdir(parents=True)
    for name in ("config.json", "servers.json"):
        (folder / "etc" / "emceepee" / name).write_text(json.dumps(servers))
    return {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": f"{folder}/var/lib/emceepee",
        "EMCEEPEE_TOKEN": TOKEN,
    }


async def assert_it_adds(endpoint: HttpProcess) -> None:
    caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
    result = await caller.call("execute_tool", server="demo", tool="add", args={"a": 2, "b": 40})
    assert text_of(result) == "2 + 40 = 42"


def test_uvx_runs_the_wheel(distribution: Distribution, tmp_path: Path) -> None:
    (tmp_path / "pins.txt").write_text("\n".join(pins()))
    uvx = (Path(sys.executable).parent / "uvx", "--constraints", tmp_path / "pins.txt", "--python", sys.executable)
    program = (*uvx, "--from", distribution.wheel, "emceepee")
    assert run(*program, "--version", cwd=tmp_path) == f"emceepee {VERSION}\n"
    own_files = {"XDG_STATE_HOME": f"{tmp_path}/state", "XDG_CONFIG_HOME": f"{tmp_path}/config"}
    run(*program, "install", "cursor", "--to", "mcp.json", "--yes", cwd=tmp_path, env=ENVIRONMENT | own_files)
    entry = json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]["emceepee"]
    assert [entry["command"], *entry["args"]] == ["uvx", *map(str, program[1:])]


def test_pipx_installs_and_uninstalls_the_wheel(distribution: Distribution, tmp_path: Path) -> None:
    (tmp_path / "pins.txt").write_text("\n".join(pins()))
    env = ENVIRONMENT | {"PIPX_HOME": f"{tmp_path}/home", "PIPX_BIN_DIR": f"{tmp_path}/bin", "HOME": str(tmp_path)}
    pipx = (sys.executable, "-m", "pipx")
    install = ("install", "--python", sys.executable, f"--pip-args=--no-compile -c {tmp_path}/pins.txt")
    run(*pipx, *install, distribution.wheel, cwd=tmp_path, env=env)
    assert run(tmp_path / "bin" / "emceepee", "--version", cwd=tmp_path) == f"emceepee {VERSION}\n"
    run(*pipx, "uninstall", "emceepee", cwd=tmp_path, env=env)
    assert not (tmp_path / "bin" / "emceepee").exists()


def test_the_image_runs_as_an_unprivileged_user_and_keeps_its_state_in_a_volume() -> None:
    first, last = stages()
    assert [item.words for item in last if item.name == "USER"] == ["emceepee"]
    assert the("VOLUME") == "/var/lib/emceepee"
    assert "XDG_STATE_HOME=/var/lib" in the("ENV").split()
    assert [item.words for item in last if item.name == "COPY"] == ["--from=build /opt/emceepee /opt/emceepee"]
    assert not any("pip" in item.words or "apt" in item.words for item in last)
    assert {item.words.split()[0] for item in (first[0], last[0])} == {"python:3.13-slim"}


def test_the_build_context_of_the_image_contains_exactly_the_copied_files() -> None:
    copied = {word for item in stages()[0] if item.name == "COPY" for word in item.words.split()[:-1]}
    assert [word for word in copied if not (ROOT / word).exists()] == []
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert {re.sub(r"deploy/.*", "deploy/*.txt", word) for word in copied} == let_in


async def test_the_commands_of_the_image_build_emceepee_and_serve(tmp_path: Path) -> None:
    """The commands run as under Docker, but in a test folder and without a new user."""
    source, opt = tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    run(UV, "venv", "--quiet", "--seed", "--python", sys.executable, tmp_path / "image", cwd=tmp_path)
    path = f"{tmp_path}/image/bin{os.pathsep}{os.environ['PATH']}"
    env = ENVIRONMENT | {"PATH": path, "PIP_NO_COMPILE": "1"}  # what is used is compiled when it is
    for item in stages()[0]:
        words = item.words.replace("/opt/emceepee", str(opt))
        if item.name == "COPY":
            *sources, target = words.split()
            for name in sources:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                (source / target).parent.mkdir(exist_ok=True)
                if target.endswith("/"):
                    (source / target).mkdir(exist_ok=True)
                copy(ROOT / name, source / target)
        elif item.name == "RUN":
            run("/bin/sh", "-ec", words, cwd=source, env=env)
    env = a_home(tmp_path, opt / "bin" / "python")
    env |= {"XDG_CONFIG_HOME": f"{tmp_path}/etc", "XDG_STATE_HOME": f"{tmp_path}/var/lib"}
    (program,), command = json.loads(the("ENTRYPOINT")), json.loads(the("CMD"))
    arguments = ["127.0.0.1" if word == "0.0.0.0" else word for word in command]
    async with served(opt / "bin" / program, *arguments, "--port", "0", env=env) as endpoint:
        health = json.loads(the("HEALTHCHECK").partition("CMD ")[2])
        asked = [word.replace("http://127.0.0.1:8080", endpoint.origin) for word in health]
        process = await asyncio.create_subprocess_exec(*asked, env=env)
        assert await asyncio.wait_for(process.wait(), BOUND) == 0
        await assert_it_adds(endpoint)
    assert (tmp_path / "var" / "lib" / "emceepee" / "state.db").exists()


async def test_the_compose_file_starts_the_program_of_the_image(programs: Path, tmp_path: Path) -> None:
    service = YAML(typ="safe").load((ROOT / "compose.yaml").read_text("utf-8"))["services"]["emceepee"]
    assert service["ports"] == ["127.0.0.1:8080:8080"]
    assert service["environment"] == {"EMCEEPEE_TOKEN": "${EMCEEPEE_TOKEN:?}"}
    assert [item.partition(":")[2] for item in service["volumes"]] == ["/etc/emceepee/config.json:ro", the("VOLUME")]
    env = a_home(tmp_path, programs / "python")
    env |= {"XDG_CONFIG_HOME": f"{tmp_path}/etc", "XDG_STATE_HOME": f"{tmp_path}/var/lib"}
    words = ["127.0.0.1" if word == "0.0.0.0" else word for word in service["command"]]
    async with served(programs / "emceepee", *words, "--port", "0", env=env) as endpoint:
        await assert_it_adds(endpoint)


async def test_the_systemd_unit_starts_the_installed_program(programs: Path, tmp_path: Path) -> None:
    reader = configparser.RawConfigParser()
    reader.optionxform = str  # type: ignore[assignment,method-assign] # as its documentation says
    reader.read_string(UNIT.read_text("utf-8"))
    service = reader["Service"]
    assert (service["NoNewPrivileges"], service["ProtectSystem"], service["DynamicUser"]) == ("yes", "strict", "yes")
    env = a_home(tmp_path, programs / "python")
    env |= dict(pair.split("=") for pair in service["Environment"].replace("/var/lib", f"{tmp_path}/var/lib").split())
    program, *words = shlex.split(service["ExecStart"].replace("/etc/", f"{tmp_path}/etc/"))
    assert program == "/opt/emceepee/bin/emceepee"
    async with served(programs / "emceepee", *words, "--port", "0", env=env) as endpoint:
        await assert_it_adds(endpoint)
    assert (tmp_path / "var" / "lib" / "emceepee" / "state.db").exists()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze on this machine")
def test_systemd_accepts_every_line_of_the_unit(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8").replace("/opt/emceepee/bin/emceepee", "/bin/true")
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / UNIT.name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if UNIT.name in line] == []


def test_the_registry_entry_contains_this_version_and_its_name_is_in_the_readme() -> None:
    entry = json.loads((ROOT / "server.json").read_text("utf-8"))
    version = VERSION.partition(".dev")[0]
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert re.fullmatch(
        r"https://static\.modelcontextprotocol\.io/schemas/[\d-]+/server\.schema\.json", entry["$schema"]
    )
    (package,) = entry["packages"]
    assert (entry["version"], package["version"]) == (version, version)
    assert (package["registryType"], package["identifier"], package["transport"]) == (
        *("pypi", "emceepee"),
        {"type": "stdio"},
    )
    assert f"<!-- mcp-name: {entry['name']} -->" in Page(ROOT / "README.md").text

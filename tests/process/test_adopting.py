"""From another client's configuration to emceepee and back, as a new user would go; and beside `add-mcp`, which writes
the same files."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from emceepee.clients.known_clients import CLIENTS
from support.callers.emceepee_process import emceepee
from support.server_programs.stdio_entries import stdio_server

BOUND = 120.0  # seconds on a busy machine
ROOT = Path(__file__).parents[2]
NODE = ROOT / "tests" / "node"
# By our names; add-mcp knows no Continue.
THEIRS = {client.key: client.key for client in CLIENTS if client.key != "continue"}
COLOR = re.compile(r"\x1b\[[0-9;]*m")


def environment(home: Path) -> dict[str, str]:
    hidden = ("XDG_", "EMCEEPEE_", "CODEX_", "CLAUDE_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
    return {**kept, "HOME": str(home), "NO_COLOR": "1"}


async def run(home: Path, *command: str) -> str:
    """Return its output; it must exit with 0."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=home,
        env=environment(home),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(BOUND):
        out, err = await process.communicate()
    assert process.returncode == 0, (out.decode(), err.decode())
    return out.decode()


async def run_emceepee(home: Path, *arguments: str) -> str:
    return await run(home, sys.executable, "-m", "emceepee", *arguments)


def files_of(home: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(home)): (path.read_bytes(), path.stat().st_mode)
        for path in sorted(home.rglob("*"))
        if path.is_file()
    }


def a_desktop_configuration(home: Path) -> Path:
    """Six servers, written by hand over the years."""
    names = ["files", "git", "time", "notes", "search"]
    entries = ",\n".join(f"    {json.dumps(name)}: {json.dumps(stdio_server(name))}" for name in names)
    last = json.dumps(stdio_server() | {"env": {"API_KEY": "s3cret"}}, indent=8)
    file = home / ".config" / "Claude" / "claude_desktop_config.json"
    file.parent.mkdir(parents=True)
    text = f'{{\r\n  "globalShortcut": "Ctrl+Space",\n\t"mcpServers": {{\n{entries},\n\n  "web" : {last}}}\n}}'
    file.write_bytes(text.encode())
    file.chmod(0o640)
    return file


async def test_six_servers_of_claude_desktop_move_to_emceepee_and_back_byte_for_byte(tmp_path: Path) -> None:
    file = a_desktop_configuration(tmp_path)
    before = files_of(tmp_path)
    await run_emceepee(tmp_path, "import", "claude-desktop", "--take", "--yes")
    await run_emceepee(tmp_path, "install", "claude-desktop", "--yes")
    document = json.loads(file.read_bytes())
    assert document["globalShortcut"] == "Ctrl+Space"
    [(name, entry)] = document["mcpServers"].items()
    assert name == "emceepee"
    assert (file.stat().st_mode & 0o777) == 0o640
    await all_six_answer(entry)
    told = json.loads(await run_emceepee(tmp_path, "doctor", "--json"))
    assert [server["status"] for server in told["servers"]] == ["ok"] * 6
    await run_emceepee(tmp_path, "undo", "--all", "--yes")
    after = files_of(tmp_path)
    assert {path: after[path] for path in before} == before
    assert not [path for path in after if path not in before and ".local/state" not in path]


async def all_six_answer(entry: dict[str, Any]) -> None:
    """As the client would start emceepee: by the entry, and nothing else."""
    assert Path(entry["command"]).is_absolute()
    async with emceepee(*entry["args"]) as caller:
        await caller.initialize()
        servers = (await caller.value("list_servers"))["servers"]
        assert sorted(server["name"] for server in servers) == ["files", "git", "notes", "search", "time", "web"]
        for server in servers:
            answer = await caller.call("execute_tool", server=server["name"], tool="echo", args={"text": "hello"})
            assert not answer.get("isError"), answer


async def test_servers_that_add_mcp_wrote_are_imported_from_every_client(tmp_path: Path) -> None:
    agents = [*THEIRS.values(), "cline-cli"]
    written = await run(tmp_path, "node", str(NODE / "add_mcp.mjs"), *agents)
    assert all(json.loads(line)["success"] for line in written.splitlines())
    local = {
        "command": "uvx",
        "args": ["mcp-server-time", "--local-timezone", "UTC"],
        "env": {"KIND": "v"},
    }
    remote = {"url": "https://example.test/mcp", "headers": {"Authorization": "Bearer T"}}
    for client in THEIRS:
        own = tmp_path / f"{client}.json"
        told = json.loads(await run_emceepee(tmp_path, "import", client, "--yes", "--json", "--config", str(own)))
        outcomes = [(row["name"], row["outcome"]) for row in told["servers"]]
        assert outcomes[:2] == [("local", "new"), ("remote", "new")], client
        assert {outcome for _, outcome in outcomes[2:]} <= {"duplicate"}, client  # the second file of Cline
        servers = json.loads(own.read_bytes())["mcpServers"]
        for name, expected in (("local", local), ("remote", remote)):
            assert servers[name].items() >= expected.items(), (client, servers)


@pytest.mark.parametrize("flags", [(), ("--http", "http://127.0.0.1:8080/mcp")], ids=["stdio", "http"])
async def test_add_mcp_lists_installed_servers_and_install_preserves_entries_of_add_mcp(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / ".claude").mkdir()  # by which it tells that Claude Code is there
    await run(tmp_path, "node", str(NODE / "add_mcp.mjs"), *THEIRS.values())
    before = files_of(tmp_path)
    for client in THEIRS:
        await run_emceepee(tmp_path, "install", client, "--yes", *flags)
    lister = str(NODE / "node_modules" / "add-mcp" / "dist" / "index.js")
    for agent in THEIRS.values():
        listed = COLOR.sub("", await run(tmp_path, "node", lister, "list", "-g", "-a", agent))
        shown = {line.split()[1]: line for line in listed.splitlines() if line.startswith("  - ")}
        assert shown.keys() == {"local", "remote", "emceepee"}, (agent, listed)
        assert ("http://127.0.0.1:8080/mcp" in shown["emceepee"]) == bool(flags), (agent, listed)
    await run_emceepee(tmp_path, "undo", "--all", "--yes")
    after = files_of(tmp_path)
    assert {path: after[path] for path in before} == before

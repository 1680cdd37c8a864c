"""A configuration with an error in one entry: all other servers run, in every mode of emceepee."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.callers.attached_callers import home, said
from support.callers.command_line import DEMO, CommandLine
from support.callers.emceepee_process import emceepee
from support.callers.http_process import http_process

TRACKER = {"url": "https://tracker.example.com/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_TOKEN}"}}
SERVERS: dict[str, dict[str, Any]] = {"demo": DEMO, "tracker": TRACKER, "resting": DEMO | {"disabled": True}}
WHY = "mcpServers.tracker.headers.Authorization: the environment has no variable NO_SUCH_TOKEN"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": SERVERS}))
    return str(path)


def check_servers(servers: list[dict[str, object]]) -> None:
    found = {str(server["name"]): server for server in servers}
    assert list(found) == ["demo", "tracker", "resting"]
    assert (found["tracker"]["status"], str(found["tracker"]["lastError"]).startswith(WHY)) == ("error", True)
    assert (found["resting"]["status"], found["resting"]["disabled"]) == ("not_connected", True)


async def test_on_standard_input_a_broken_entry_leaves_all_other_servers_running(file: str) -> None:
    async with emceepee("--config", file) as caller:
        await caller.initialize()
        listed = await caller.value("list_tools")
        assert {tool["server"] for tool in listed["tools"]} == {"demo"}
        assert [error["server"] for error in listed["errors"]] == ["tracker"]
        check_servers((await caller.value("list_servers"))["servers"])
        error = await caller.error("execute_tool", server="tracker", tool="any")
        assert WHY in error["message"]


async def test_over_http_a_broken_entry_leaves_all_other_servers_running(file: str) -> None:
    async with http_process("--config", file) as endpoint:
        caller = await endpoint.caller()
        result = await caller.call("execute_tool", server="demo", tool="add", arguments={"a": 2, "b": 3})
        assert not result.get("isError"), result
        check_servers((await caller.value("list_servers"))["servers"])
        assert any("config_mistake" in line and "NO_SUCH_TOKEN" in line for line in endpoint.log)


async def test_a_daemon_with_a_broken_entry_runs_all_other_servers_and_notifies_each_caller() -> None:
    async with home() as user:
        user.write_config(SERVERS)
        async with user.attached() as caller:
            await caller.initialize()
            check_servers((await caller.value("list_servers"))["servers"])
            assert f"has mistakes: {WHY}" in await said(caller)


async def test_one_shot_commands_work_with_a_broken_entry(tmp_path: Path) -> None:
    line = CommandLine.in_home(tmp_path)
    line.config.write_text(json.dumps({"mcpServers": SERVERS}))
    assert await line.says("call", "demo", "add", "a=2", "b=40") == "2 + 40 = 42\n"
    code, out, err = await line.run("call", "tracker", "any")
    assert (code, out, WHY in err) == (1, "", True)
    code, out, err = await line.run("call", "resting", "any")
    assert (code, out, 'Server "resting" is disabled' in err) == (1, "", True)
    code, out, err = await line.run("tools")
    assert (code, "Add two numbers" in out, 'tracker: Server "tracker" is disabled' in err) == (1, True, True)
    code, out, err = await line.run("auth", "login", "tracker")
    assert (code != 0, WHY in err) == (True, True)
    code, out, _ = await line.run("doctor", "--json")
    found = {server["name"]: server["status"] for server in json.loads(out)["servers"]}
    assert (code, found) == (1, {"demo": "ok", "tracker": "problem", "resting": "disabled"})

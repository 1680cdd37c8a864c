"""The time at which real servers start for a caller on standard input: a client that only probes starts none."""

import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from support.callers.emceepee_process import BOUND, MODERN_META, configured, emceepee
from support.server_programs.real_servers import NODE
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import children_of
from support.waiting import eventually

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}


def noted(log: Path) -> dict[str, Any]:
    """A server that writes a line to `log` whenever it is started."""
    entry = stdio_server()
    command = shlex.join([entry["command"], *entry["args"]])
    return {"command": "sh", "args": ["-c", f"echo started >> {shlex.quote(str(log))}; exec {command}"]}


def starts(log: Path) -> int:
    return log.read_text().count("started") if log.exists() else 0


@pytest.mark.parametrize(
    ("method", "params"), [("server/discover", {"_meta": MODERN_META}), ("initialize", HELLO)], ids=lambda item: item
)
async def test_a_probe_starts_no_servers(method: str, params: dict[str, Any], tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with emceepee(env=configured({"noted": noted(log)})) as probed:
        assert "result" in await probed.request(method, params)
        assert children_of(probed.process.pid) == []
        assert await probed.end() == 0
    assert starts(log) == 0


async def test_after_the_handshake_servers_are_started_before_any_tool_is_called(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with emceepee(env=configured({"noted": noted(log)})) as caller:
        await caller.initialize()
        await eventually(lambda: starts(log) == 1, what="the server is started")
        assert await caller.end() == 0


async def test_in_2026_07_28_servers_are_started_by_the_first_request_that_is_not_a_probe(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    async with emceepee(env=configured({"noted": noted(log)})) as caller:
        await caller.initialize("2026-07-28")
        assert starts(log) == 0
        assert "result" in await caller.request("tools/list")
        await eventually(lambda: starts(log) == 1, what="the server is started")
        assert await caller.end() == 0


async def test_a_client_that_starts_the_command_twice_to_probe_starts_each_server_once(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    process = await asyncio.create_subprocess_exec(
        *("node", str(NODE / "auto_client_2.mjs"), sys.executable, "-m", "emceepee"),
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | configured({"noted": noted(log)}),
    )
    stdout, _ = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 0
    assert json.loads(stdout) == {"version": "2026-07-28", "tools": 5}
    assert starts(log) == 1

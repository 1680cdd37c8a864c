"""The tool list stays byte for byte the same while servers connect and disconnect: a change invalidates caches."""

import itertools
import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from support.callers.emceepee_process import configured, emceepee
from support.callers.http_process import HttpCaller, http_process
from support.matrix import matrix
from support.server_programs.stdio_entries import stdio_server

ERAS_AND_SURFACES = pytest.mark.parametrize(
    ("version", "surface"),
    matrix(
        itertools.product(["2025-11-25", "2026-07-28"], ["full", "lite", "codemode"]),
        representatives=[("2025-11-25", "full"), ("2026-07-28", "lite"), ("2026-07-28", "codemode")],
    ),
)
KEY = "list"
Call = Callable[..., Awaitable[object]]


async def change_servers(call: Call, look: Callable[[], Awaitable[bytes]]) -> bytes:
    """Servers are added, fail to be added, change and go; the list after each step must be the first one."""
    first = await look()
    steps = [
        ("add_server", {"name": "one", "description": "first", **stdio_server()}),
        ("add_server", {"name": "two", **stdio_server()}),
        ("reconnect_server", {"name": "one"}),
        ("remove_server", {"name": "one"}),
        ("add_server", {"name": "one", "description": "other", "deniedTools": ["*"], **stdio_server()}),
        ("remove_server", {"name": "two"}),
    ]
    for tool, arguments in steps:
        await call(tool, **arguments)
        assert await look() == first, tool
    return first


def tools_with_session(raw: bytes) -> set[str]:
    tools = json.loads(raw)["result"]["tools"]
    return {tool["name"] for tool in tools if "session" in tool["inputSchema"]["properties"]}


@ERAS_AND_SURFACES
async def test_the_tool_list_stays_the_same_over_stdio_and_contains_no_session_name(version: str, surface: str) -> None:
    async with emceepee("--surface", surface) as process:
        await process.initialize(version)

        async def look() -> bytes:
            await process.request("tools/list", key=KEY)
            return process.last_line

        raw = await change_servers(process.value, look)
        assert tools_with_session(raw) <= {"close_session"}


@ERAS_AND_SURFACES
async def test_the_tool_list_stays_the_same_over_http_even_after_a_restart(
    version: str, surface: str, tmp_path: Path
) -> None:
    is_modern, mine = version == "2026-07-28", {"emceepee_surface": surface}

    async def look(caller: HttpCaller) -> bytes:
        async with caller.post("tools/list", key=KEY) as response:
            return await response.read()

    async with http_process(state=tmp_path) as endpoint:
        modern = endpoint.modern(emceepee_session="tests", **mine)
        caller = modern if is_modern else await endpoint.caller(version, **mine)
        raw = await change_servers(caller.value, partial(look, caller))
        names = {tool["name"] for tool in json.loads(raw)["result"]["tools"]}
        takes_handles = is_modern and surface == "full"
        assert tools_with_session(raw) == (names - {"open_session"} if takes_handles else names & {"close_session"})
    async with http_process(state=tmp_path) as endpoint:
        caller.endpoint = endpoint
        assert await look(caller) == raw


async def test_the_tool_list_and_the_argument_check_use_the_configured_limits() -> None:
    limits = configured({}, longest_timer_seconds=5, longest_call_seconds=2000)
    async with emceepee(env=limits) as stdio, http_process(env=limits) as endpoint:
        await stdio.initialize()
        for caller in (stdio, await endpoint.caller(), endpoint.modern(emceepee_session="mine")):
            tools = {tool["name"]: tool for tool in (await caller.request("tools/list", {}))["result"]["tools"]}
            assert tools["set_timer"]["inputSchema"]["properties"]["duration_ms"]["maximum"] == 5000
            assert tools["await_activity"]["inputSchema"]["properties"]["timeout_ms"]["maximum"] == 2_000_000
            error = await caller.error("set_timer", duration_ms=5001, message="late")
            assert "duration_ms: may be at most 5000, found 5001" in error["message"]
            await caller.value("set_timer", duration_ms=5000, message="in time")

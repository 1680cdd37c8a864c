"""The list of tools is the same, byte for byte, whatever servers come and go: a change costs clients their cache."""

import json
from collections.abc import Awaitable, Callable

import pytest

from support.callers.emceepee_process import configured, emceepee
from support.callers.http_process import HttpCaller, http_process
from support.server_programs.stdio_entries import stdio_server

ERAS = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
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


@ERAS
async def test_the_list_stays_the_same_over_stdio_and_names_no_session(version: str) -> None:
    async with emceepee() as process:
        await process.initialize(version)

        async def look() -> bytes:
            await process.request("tools/list", key=KEY)
            return process.last_line

        raw = await change_servers(process.value, look)
        assert tools_with_session(raw) == {"close_session"}


@ERAS
async def test_the_list_stays_the_same_over_http(version: str) -> None:
    async with http_process() as endpoint:
        is_modern = version == "2026-07-28"
        caller: HttpCaller = endpoint.modern(emceepee_session="tests") if is_modern else await endpoint.caller(version)

        async def look() -> bytes:
            async with caller.post("tools/list", key=KEY) as response:
                return await response.read()

        raw = await change_servers(caller.value, look)
        assert len(tools_with_session(raw)) == (36 if is_modern else 1)


async def test_the_list_says_what_is_configured_and_so_does_the_check() -> None:
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

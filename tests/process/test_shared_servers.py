"""Servers that all sessions of a daemon share: one process each, and messages only to the affected session."""

import asyncio
import sys
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.callers.attached_callers import Home, home
from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import below, is_alive, memory_of, servers_of, until

CLIENTS, SERVERS = 10, 6
DEMO = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "sharing": "shared", "idleStop": 30}


def shared(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"sharing": "shared"}


async def _use_all(caller: EmceepeeProcess) -> None:
    await caller.initialize()
    listed = await caller.value("list_tools", detail="names")
    assert {tool["server"] for tool in listed["tools"]} == {f"demo{number}" for number in range(SERVERS)}


async def _memory_by_itself(user: Home) -> int:
    """Of one emceepee that shares nothing."""
    async with emceepee(env=user.env) as alone:
        await _use_all(alone)
        return sum(map(memory_of, [alone.process.pid, *below(alone.process.pid)]))


@pytest.mark.timeout(300)
async def test_ten_clients_with_six_shared_servers_have_six_processes() -> None:
    async with home({f"demo{number}": DEMO for number in range(SERVERS)}, list_patience_seconds=60) as user:
        separate = CLIENTS * await _memory_by_itself(user)
        async with AsyncExitStack() as stack:
            callers = [await stack.enter_async_context(user.attached(idle=2)) for _ in range(CLIENTS)]
            for caller in callers:
                await _use_all(caller)
            pid = user.daemon
            assert pid is not None
            servers = servers_of(pid)
            assert len(servers) == SERVERS
            family = [pid, *below(pid)]
            together = sum(map(memory_of, [*family, *(caller.process.pid for caller in callers)]))
            record_figure(
                f"ten clients with six shared servers take {together >> 20} MB, and {separate >> 20} MB by themselves"
            )
            assert together * 5 < separate
            await asyncio.gather(*(caller.end() for caller in callers))
        await until(lambda: not any(map(is_alive, family)), within=30, what="all are gone after the idle time")


async def test_a_shared_server_runs_as_long_as_one_session_uses_it() -> None:
    async with home({"one": shared(stdio_server())}) as user, user.attached() as first:
        await first.initialize()
        await first.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
        pid = user.daemon
        assert pid is not None
        (server,) = servers_of(pid)
        async with user.attached() as second:
            await second.initialize()
            await second.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            assert servers_of(pid) == [server]
            await second.end()
        result = await first.call("execute_tool", server="one", tool="echo", args={"text": "again"})
        assert not result.get("isError")
        assert servers_of(pid) == [server]
        await first.end()
        await until(lambda: not is_alive(server), what="the server has ended with the last session")


async def test_an_idle_shared_server_stops_and_starts_again_on_use() -> None:
    async with home({"one": shared(stdio_server()) | {"idleStop": 0.5}}) as user, user.attached() as caller:
        await caller.initialize()
        await caller.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
        pid = user.daemon
        assert pid is not None
        await until(lambda: not servers_of(pid), what="the server has stopped")
        result = await caller.call("execute_tool", server="one", tool="echo", args={"text": "again"})
        assert not result.get("isError")

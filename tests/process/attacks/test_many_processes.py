"""Callers that request more processes than the machine can run."""

import asyncio
from contextlib import AsyncExitStack

from support.callers.emceepee_process import configured
from support.callers.http_process import http_process, until
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import servers_of

MOST, SESSIONS = 4, 12
ECHO = {"server": "s1", "tool": "echo", "args": {"text": "hello"}}


async def test_abandoned_sessions_of_one_principal_block_no_other_principal() -> None:
    servers = {f"s{number}": stdio_server() for number in range(3)}
    tokens = ("--token", "ann=one", "--token", "bob=two")
    async with http_process(
        "--log-level", "error", *tokens, env=configured(servers, processes_in_all=MOST)
    ) as endpoint:
        forwarded = {"x_forwarded_for": "203.0.113.9"}  # a remote caller starts only the servers that it uses
        many = [await endpoint.caller(authorization="Bearer one", **forwarded) for _ in range(SESSIONS)]
        for caller in many:
            assert not (await caller.call("execute_tool", **ECHO)).get("isError")
            assert len(servers_of(endpoint.process.pid)) <= MOST
        other = await endpoint.caller(authorization="Bearer two", **forwarded)
        assert not (await other.call("execute_tool", **ECHO)).get("isError")
        again = await asyncio.gather(*(caller.call("execute_tool", **ECHO) for caller in many[:MOST]))
        assert not any(result.get("isError") for result in again)
        running = len(servers_of(endpoint.process.pid))
        record_figure(f"{SESSIONS} idle sessions, {MOST} processes at most: {running} run, no call was refused")


async def test_processes_of_active_sessions_have_a_limit_and_a_later_call_gets_a_freed_place() -> None:
    servers = {"s1": stdio_server()}
    async with http_process("--log-level", "error", env=configured(servers, processes_in_all=MOST)) as endpoint:
        callers = [await endpoint.caller() for _ in range(MOST + 1)]
        async with AsyncExitStack() as streams:
            for caller in callers[:MOST]:
                await streams.enter_async_context(caller.get())
                assert not (await caller.call("execute_tool", **ECHO)).get("isError")
            error = await callers[MOST].error("execute_tool", **ECHO)
            assert (error["code"], "processes_in_all" in error["message"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
            assert len(servers_of(endpoint.process.pid)) == MOST

        async def is_served() -> bool:
            return not (await callers[MOST].call("execute_tool", **ECHO)).get("isError")

        await until(is_served, "the end of a stream is noticed")

"""Callers that would start more programs than the machine can bear."""

import asyncio

from support.callers.emceepee_process import configured
from support.callers.http_process import http_process
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import servers_of

MOST, SESSIONS = 4, 12
ECHO = {"server": "s1", "tool": "echo", "args": {"text": "hello"}}


async def test_sessions_of_remote_callers_start_what_they_use_and_all_together_have_a_limit() -> None:
    servers = {f"s{number}": stdio_server() for number in range(3)}
    async with http_process("--log-level", "error", env=configured(servers, processes_in_all=MOST)) as endpoint:
        callers = await asyncio.gather(*(endpoint.caller(x_forwarded_for="203.0.113.9") for _ in range(SESSIONS)))
        await asyncio.gather(*(caller.value("list_servers") for caller in callers))
        assert servers_of(endpoint.process.pid) == []
        results = await asyncio.gather(*(caller.call("execute_tool", **ECHO) for caller in callers))
        errors = [result["structuredContent"]["error"] for result in results if result.get("isError")]
        running = len(servers_of(endpoint.process.pid))
        record_figure(f"{SESSIONS} sessions, 3 programs configured: {running} processes, {len(errors)} calls refused")
        assert (running, len(errors)) == (MOST, SESSIONS - MOST)
        assert {error["code"] for error in errors} == {"TOOL_ERR_SERVER_DISCONNECTED"}
        assert all("processes_in_all" in error["message"] for error in errors), errors[0]
        refused = next(caller for caller, result in zip(callers, results, strict=True) if result.get("isError"))
        served = next(caller for caller, result in zip(callers, results, strict=True) if not result.get("isError"))
        await served.end()
        await refused.value("reconnect_server", name="s1")
        assert not (await refused.call("execute_tool", **ECHO)).get("isError")

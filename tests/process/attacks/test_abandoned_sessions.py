"""Clients that open sessions and abandon them."""

import asyncio
import time

import pytest

from support.callers.emceepee_process import configured
from support.callers.http_process import HELLO, HttpCaller, http_process
from support.faults.strain import strain_on
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import servers_of

ABANDONED, AT_ONCE = 2100, 50


@pytest.mark.parametrize("how", ["handshake", "named", "handles"])
async def test_a_crowd_of_abandoned_sessions_blocks_no_other_caller_and_starts_no_program(how: str) -> None:
    """The limit is two thousand sessions per principal."""
    async with http_process("--log-level", "warn", env=configured({"small": stdio_server()})) as endpoint:
        user = await endpoint.caller()
        await user.value("set_timer", duration_ms=3_600_000, message="mine")
        await user.value("list_tools", server="small")
        idle = len(servers_of(endpoint.process.pid))
        refused = 0

        async def abandon(number: int) -> bool:
            caller = HttpCaller(endpoint, {})
            if how == "handles":
                return bool((await endpoint.modern().call("open_session")).get("isError"))
            if how == "named":
                return bool((await endpoint.modern(emceepee_session=f"n{number}").call("list_timers")).get("isError"))
            async with caller.post("initialize", HELLO) as response:
                return response.status != 200

        began = time.monotonic()
        async with strain_on(endpoint) as strain:
            for first in range(0, ABANDONED, AT_ONCE):
                await user.value("list_timers")  # a session in use is not evicted
                refused += sum(await asyncio.gather(*(abandon(first + number) for number in range(AT_ONCE))))
        record_figure(f"{ABANDONED} sessions ({how}) in {time.monotonic() - began:.1f} s: {refused} refused")
        strain.check()
        assert refused == 0
        assert len(servers_of(endpoint.process.pid)) == idle
        newcomer = await endpoint.caller()
        result = await newcomer.call("execute_tool", server="small", tool="echo", args={"text": "hello"})
        assert not result.get("isError")
        assert [timer["message"] for timer in (await user.value("list_timers"))["timers"]] == ["mine"]

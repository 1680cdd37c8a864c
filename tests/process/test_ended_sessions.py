"""An ended session leaves nothing in memory, though other sessions continue to use its connections."""

import asyncio

from support.backends.web_backend import a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import BOUND, http_process
from support.server_programs.stdio_entries import stdio_server

SESSIONS = 5


async def test_ended_sessions_are_freed_from_memory() -> None:
    """Their connections to the HTTP server stay in the pool with the context of the first call."""
    async with (
        a_web_backend() as web,
        http_process(
            env=configured({"web": {"url": web.url}, "small": stdio_server()}),
            module="support.programs.counting_emceepee",
        ) as endpoint,
    ):
        for _ in range(SESSIONS):
            caller = await endpoint.caller()
            for server in ("web", "small"):
                result = await caller.call("execute_tool", server=server, tool="echo", args={"text": "hello"})
                assert not result.get("isError")
            await caller.end()
        counter = await endpoint.caller(client="counter", emceepee_connect="on-use")
        async with asyncio.timeout(BOUND):
            while (await counter.value("list_servers"))["sessionCount"] > 1:
                pass  # each asks the collector first

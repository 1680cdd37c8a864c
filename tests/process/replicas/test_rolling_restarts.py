"""One of two replicas gets SIGTERM while callers still reach it, as in a rolling restart."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from emceepee.server.stop_signals import LET_GO_SECONDS
from support.backends.web_backend import a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, HttpProcess
from support.callers.replicas import TOKEN, two_replicas
from support.waiting import eventually

AUTHORIZED = f"Bearer {TOKEN}"


def has_given_up_its_own_calls(caller: HttpCaller) -> Callable[[], Awaitable[bool]]:
    """It refuses what is new for as long as the replies of its own calls may take, and a little longer."""
    clock, refusing_since = asyncio.get_running_loop().time, list[float]()

    async def check() -> bool:
        async with caller.post("tools/call", {"name": "list_timers", "arguments": {}}) as response:
            await response.read()
            if response.status == 503:
                refusing_since.append(clock())
        return bool(refusing_since) and clock() - refusing_since[0] > LET_GO_SECONDS + 0.5

    return check


async def is_stopping(replica: HttpProcess) -> bool:
    async with replica.http.get(f"{replica.origin}/readyz") as response:
        return response.status == 503


@pytest.mark.parametrize("begun", ["before the signal", "while it stops"])
async def test_a_call_that_a_stopping_replica_forwarded_gets_its_answer(begun: str, tmp_path: Path) -> None:
    """The other replica holds the session and answers after the first one abandoned its own calls."""
    async with a_web_backend() as backend:
        env = configured({"web": {"url": backend.url}})
        async with two_replicas(f"sqlite:{tmp_path}/state.db", env=env) as (stopping, other):
            there = other.modern(emceepee_session="desk", authorization=AUTHORIZED)
            await there.value("list_servers")
            here = stopping.modern(emceepee_session="desk", authorization=AUTHORIZED)
            calls: list[asyncio.Task[dict[str, Any]]] = []

            async def call() -> None:
                calls.append(asyncio.create_task(here.call("execute_tool", server="web", tool="wait")))

            await call()
            held = [await backend.next_call()]
            stopping.process.terminate()
            if begun == "while it stops":
                await eventually(lambda: is_stopping(stopping))  # the call before keeps it running
                await call()
                held.append(await backend.next_call())
            await eventually(has_given_up_its_own_calls(here), what="it waits only for the other replica", within=10)
            for each in held:
                each.finish("answered")
            for result in await asyncio.gather(*calls):
                assert result["content"][0]["text"] == "answered", result
            assert await asyncio.wait_for(stopping.process.wait(), 20) == 0
            assert (await there.value("list_tasks", include_completed=True))["tasks"] == []

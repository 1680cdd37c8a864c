"""A caller that waits during shutdown gets an answer, and no promise that ends with the process."""

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest

from support.callers.emceepee_process import BOUND, EmceepeeProcess, configured, emceepee
from support.callers.http_process import HELLO, EventReader, HttpCaller, HttpProcess, http_process
from support.figures import record_figure

DEMO: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-m", "emceepee.demo"],
    "env": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
}
ENV = configured({"demo": DEMO})
STOPPING = "emceepee is stopping"
LONGEST = 3 * 5.0  # seconds: two to finish, half a one to let go, and the servers to end
signals = pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name
)


def digging(seconds: float) -> dict[str, Any]:
    return {"server": "demo", "tool": "dig", "args": {"seconds": seconds, "steps": 1}, "timeout_ms": 60_000}


def is_told_that_it_stops(result: dict[str, Any]) -> bool:
    error = result["structuredContent"]["error"]
    assert "proxy_task" not in result["structuredContent"]
    return STOPPING in error["message"] and error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


@signals
async def test_a_waiting_caller_on_pipes_is_answered_at_shutdown(number: signal.Signals) -> None:
    async with emceepee(env=ENV) as caller:
        await caller.initialize()
        await caller.call("execute_tool", **digging(0))
        task = (await caller.value("execute_tool", **digging(60) | {"timeout_ms": 0}))["proxy_task"]["task_id"]
        quick = asyncio.create_task(caller.call("execute_tool", **digging(0.4)))
        slow = asyncio.create_task(caller.call("execute_tool", **digging(60)))
        result = asyncio.create_task(caller.call("get_task_result", task_id=task))
        await caller.value("list_servers")
        began = time.monotonic()
        caller.process.send_signal(number)
        refused = await refusal(caller)
        assert refused["error"]["message"] == "The server is shutting down."
        assert not (await quick).get("isError")
        assert is_told_that_it_stops(await slow)
        assert STOPPING in json.dumps(await result)
        assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0
        took = time.monotonic() - began
        record_figure(f"ended {took:.1f} s after {number.name}")
        assert took < LONGEST


async def refusal(caller: EmceepeeProcess) -> dict[str, Any]:
    """The answer to a request that comes right after the signal."""
    async with asyncio.timeout(BOUND):
        while "error" not in (answer := await caller.request("ping")):
            pass
    return answer


async def test_a_caller_that_waits_for_an_impossible_event_is_answered_at_shutdown() -> None:
    async with emceepee(env=ENV) as caller:
        await caller.initialize()
        await caller.call("execute_tool", **digging(0))
        while (await caller.value("await_activity", timeout_ms=500))["events"]:
            pass
        activity = asyncio.create_task(caller.request("tools/call", call("await_activity", timeout_ms=60_000)))
        await caller.value("list_servers")
        caller.process.terminate()
        answer = await asyncio.wait_for(activity, BOUND)
        assert answer["result"]["structuredContent"]["triggers"] == [{"type": "timeout"}]
        assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0


@pytest.mark.alone
async def test_without_pending_work_the_shutdown_is_immediate() -> None:
    async with emceepee() as caller:
        await caller.initialize()
        began = time.monotonic()
        caller.process.terminate()
        assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0
        assert time.monotonic() - began < 1.9, "it waited without a call in flight"


@pytest.mark.alone
async def test_a_second_signal_ends_the_process_at_once() -> None:
    async with emceepee(env=ENV) as caller:
        await caller.initialize()
        await caller.call("execute_tool", **digging(0))
        slow = asyncio.create_task(caller.request("tools/call", call("execute_tool", **digging(60))))
        await caller.value("list_servers")
        caller.process.terminate()
        await refusal(caller)
        began = time.monotonic()
        caller.process.terminate()
        assert STOPPING in json.dumps(await asyncio.wait_for(slow, BOUND))
        assert time.monotonic() - began < 1.5
        assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0


@pytest.mark.parametrize("command", [(), ("serve", "--port", "0")], ids=["stdio", "serve"])
async def test_an_ignored_sighup_stays_ignored(command: tuple[str, ...]) -> None:
    """This is the case under nohup."""
    ignoring = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    async with AsyncExitStack() as stack:
        process = await asyncio.create_subprocess_exec(
            *(*ignoring, sys.executable, "-m", "emceepee", *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        stack.callback(lambda: process.kill() if process.returncode is None else None)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        if command:
            await asyncio.wait_for(process.stderr.readline(), BOUND)
        else:
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}\n')
            await asyncio.wait_for(process.stdout.readline(), BOUND)
        process.send_signal(signal.SIGHUP)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.wait(), 1)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), BOUND) == 0


# Over HTTP.


@signals
async def test_at_shutdown_callers_over_http_are_answered_and_new_ones_are_refused(number: signal.Signals) -> None:
    async with http_process(env=ENV) as endpoint, AsyncExitStack() as stack:
        callers = await endpoint.caller(), endpoint.modern(emceepee_session="m")
        task = (await callers[0].value("execute_tool", **digging(60) | {"timeout_ms": 0}))["proxy_task"]["task_id"]
        result = asyncio.create_task(callers[0].call("get_task_result", task_id=task))
        quick = [await begun(stack, caller, 0.5, steps=10) for caller in callers]
        slow = [await begun(stack, caller, 60, steps=1000) for caller in callers]
        began = time.monotonic()
        endpoint.process.send_signal(number)
        assert await first_refusal(endpoint) == (503, "1", "The server is shutting down.")
        for stream in quick:
            assert not (await outcome(stream)).get("isError")
        for stream in slow:
            assert is_told_that_it_stops(await outcome(stream))
        assert STOPPING in json.dumps(await result)
        assert await asyncio.wait_for(endpoint.process.wait(), BOUND) == 0
        took = time.monotonic() - began
        record_figure(f"ended {took:.1f} s after {number.name}")
        assert took < LONGEST


async def begun(stack: AsyncExitStack, caller: HttpCaller, seconds: float, *, steps: int) -> EventReader:
    """A call that has reported progress."""
    arguments = digging(seconds) | {"args": {"seconds": seconds, "steps": steps}}
    stream = await stack.enter_async_context(caller.stream("execute_tool", **arguments))
    while (event := await stream.next()) is not None and event.message is None:
        pass
    return stream


async def outcome(stream: EventReader) -> dict[str, Any]:
    last = (await stream.rest())[-1].message
    assert last is not None
    return dict(last["result"])


async def first_refusal(endpoint: HttpProcess) -> tuple[int, str | None, str]:
    """On a new connection."""
    async with asyncio.timeout(BOUND):
        while True:
            async with aiohttp.ClientSession() as http:
                hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
                async with http.post(endpoint.url, json=hello) as response:
                    if response.status != 200:
                        words = (await response.json())["error"]["message"]
                        return response.status, response.headers["retry-after"], words

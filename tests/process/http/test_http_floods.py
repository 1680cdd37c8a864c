"""A caller's stream exceeds its log: progress is evicted, and answers never are."""

import asyncio
import time

import pytest

from support.backends.web_backend import WebBackend
from support.callers.http_process import EventReader, HttpCaller, HttpProcess
from support.figures import record_figure

pytestmark = pytest.mark.asyncio(loop_scope="module")
BURST, TRIES, NEIGHBORS, WAITERS = 1500, 10, 8, 1100


async def answered(stream: EventReader) -> str | None:
    """The text of the answer, if one came."""
    last = (await stream.rest())[-1].message or {}
    return str(last["result"]["content"][0]["text"]) if "result" in last else None


async def test_a_flood_of_progress_evicts_neither_its_own_answer_nor_that_of_another_call(
    caller: HttpCaller, backend: WebBackend
) -> None:
    backend.steps_at_once = 1
    own = neighbors = 0

    async def neighbor(number: int, ready: asyncio.Queue[None]) -> bool:
        async with caller.stream("execute_tool", server="web", tool="wait", key=f"n{number}") as stream:
            ready.put_nowait(None)
            return await answered(stream) == "neighbor"

    for number in range(TRIES):
        ready: asyncio.Queue[None] = asyncio.Queue()
        others = [asyncio.create_task(neighbor(index + number * NEIGHBORS, ready)) for index in range(NEIGHBORS)]
        calls = [await backend.next_call() for _ in others]
        for _ in others:
            await ready.get()
        async with caller.stream("execute_tool", server="web", tool="wait", key=f"b{number}") as stream:
            call = await backend.next_call()
            for other in calls:
                other.finish("neighbor")
            call.progress(2, BURST)
            call.finish("burst")
            own += await answered(stream) == "burst"
        neighbors += sum(await asyncio.gather(*others))
    record_figure(f"bursts answered: {own} of {TRIES}; neighbors answered: {neighbors} of {TRIES * NEIGHBORS}")
    assert (own, neighbors) == (TRIES, TRIES * NEIGHBORS)
    assert (await caller.value("list_tasks", include_completed=True))["tasks"] == []


async def test_callers_beyond_the_size_of_the_stream_log_are_each_answered(endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    waiting = {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}

    async def wait(ready: asyncio.Queue[None]) -> bool:
        async with caller.post("tools/call", waiting) as response:
            ready.put_nowait(None)
            return "result" in ((await EventReader(response).rest())[-1].message or {})

    ready: asyncio.Queue[None] = asyncio.Queue()
    waiters = [asyncio.create_task(wait(ready)) for _ in range(WAITERS)]
    for _ in waiters:
        await ready.get()
    began = time.monotonic()
    await caller.value("set_timer", duration_ms=1, message="now")
    got = sum(await asyncio.gather(*waiters))
    record_figure(f"answered: {got} of {WAITERS} waiters in {time.monotonic() - began:.2f} s")
    assert got == WAITERS
    await caller.end()

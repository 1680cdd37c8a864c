"""Many callers on one backend that is restarted again and again, and what must hold then."""

import asyncio
import itertools
from collections import Counter

from support.backends.counting_http import CountingBackend, Era
from support.callers.recorder import Recorder, recorded

CALLERS = 8
CLEAR = {"TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_EXECUTION_FAILED"}


async def restarts_under_load(era: Era, restarts: int) -> Counter[str]:
    """Restart so often while everyone calls; the outcomes, counted."""
    backend = CountingBackend(era)
    await backend.start()
    try:
        async with recorded({"name": "one", "url": backend.url}) as emceepee:
            outcomes = await _under_load(emceepee, backend, restarts)
            assert await emceepee.text("echo", id="after", text="after") == "after"
            await emceepee.settled()
            if backend.seen["server/discover"] > 1:
                await emceepee.until("server_reconnected")
            servers = (await emceepee.value("list_servers"))["servers"]
            assert servers[0]["status"] == "connected"
    finally:
        await backend.stop()
    assert max(backend.ran.values()) == 1, "a call ran twice"
    assert sum(backend.ran.values()) >= outcomes["ok"], "a call succeeded that never ran"
    return outcomes


async def _under_load(emceepee: Recorder, backend: CountingBackend, restarts: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    numbers = itertools.count(1)
    is_over = False

    async def calls() -> None:
        while not is_over:
            key = f"c{next(numbers)}"
            result = await emceepee.execute("echo", id=key, text=key)
            if result.get("isError"):
                error = result["structuredContent"]["error"]
                assert error["code"] in CLEAR, error
                assert error["message"].startswith('Server "one"'), error
                outcomes["failed"] += 1
                await asyncio.sleep(0.005)  # as a caller who thinks before the next try
            else:
                assert result["content"][0]["text"] == key
                outcomes["ok"] += 1

    callers = [asyncio.ensure_future(calls()) for _ in range(CALLERS)]
    for number in range(restarts):
        await _until_it_serves(backend)
        await backend.stop()
        if number % 2:
            await asyncio.sleep(0.02)  # some outages are long enough for a try to find nobody
        await backend.start()
    await _until_it_serves(backend)
    is_over = True
    async with asyncio.timeout(60):
        await asyncio.gather(*callers)
    return outcomes


async def _until_it_serves(backend: CountingBackend) -> None:
    """A few calls came through since the last start."""
    await backend.until_seen("tools/call", backend.seen["tools/call"] + CALLERS)

"""Another caller of the same emceepee, and its longest wait."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

PAUSE = 0.01


class HealthProbe:
    """Asks for /healthz again and again on one connection."""

    longest = 0.0  # seconds


@asynccontextmanager
async def a_health_probe(origin: str) -> AsyncIterator[HealthProbe]:
    """Asks until the block is left, and once more after it, so that no wait is missed."""
    probe, left = HealthProbe(), asyncio.Event()

    async def ask() -> None:
        async with aiohttp.ClientSession() as http:
            is_last = False
            while not is_last:
                is_last = left.is_set()
                began = time.monotonic()
                async with http.get(f"{origin}/healthz") as response:
                    assert response.status == 200
                probe.longest = max(probe.longest, time.monotonic() - began)
                await asyncio.sleep(PAUSE)  # the probe must not be a load itself

    asking = asyncio.create_task(ask())
    try:
        yield probe
    finally:
        left.set()
        await asking

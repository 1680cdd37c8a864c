"""The price of an attack for all others: how long an unrelated request waits, and the memory of the process."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from support.callers.http_process import HttpProcess
from support.figures import record_figure
from support.system.processes import memory_of
from support.waiting import eventually

WAIT_SECONDS = 2.5  # five times what an unrelated request may wait: machines that run tests are busy
GROWTH_BYTES = 64 << 20
_PAUSE = 0.02


@dataclass(slots=True)
class Strain:
    """Read it after the attack."""

    longest_wait: float = 0.0
    growth: int = 0  # of the memory, at its highest
    descriptors: int = 0  # at their highest
    failures: int = 0  # of unrelated requests
    measurements: int = 0  # that are complete

    def check(self) -> None:
        assert self.failures == 0, self
        assert self.longest_wait < WAIT_SECONDS, self
        assert self.growth < GROWTH_BYTES, self


@asynccontextmanager
async def strain_on(endpoint: HttpProcess) -> AsyncIterator[Strain]:
    """Asks for /healthz all the time, and prints what was seen."""
    seen, before, pid = Strain(), memory_of(endpoint.process.pid), endpoint.process.pid

    async def watch() -> None:
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with endpoint.http.get(f"{endpoint.origin}/healthz", headers={"connection": "close"}) as response:
                    await response.read()
            except aiohttp.ClientError:
                seen.failures += 1
            seen.longest_wait = max(seen.longest_wait, asyncio.get_running_loop().time() - began)
            seen.growth = max(seen.growth, memory_of(pid) - before)
            seen.descriptors = max(seen.descriptors, len(os.listdir(Path(f"/proc/{pid}/fd"))))
            seen.measurements += 1
            await asyncio.sleep(_PAUSE)  # the measurement itself must not be a load

    watching = asyncio.create_task(watch())
    try:
        yield seen
        enough = seen.measurements + 2  # the second one began after a short attack had ended
        await eventually(lambda: seen.measurements >= enough or watching.done(), what="the strain was measured again")
    finally:
        watching.cancel()
        await asyncio.wait({watching})
        record_figure(
            f"longest wait of an unrelated request {seen.longest_wait:.3f} s, memory +{seen.growth >> 20} MiB, "
            f"descriptors {seen.descriptors}, failures {seen.failures}"
        )
    if not watching.cancelled() and (error := watching.exception()):
        raise error

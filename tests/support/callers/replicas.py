"""Several `emceepee serve` that share one store. Each can be killed, paused or stopped, and started again."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from support.callers.restartable_process import RestartableProcess

TOKEN = "a-token-that-every-caller-has-0123456789"


@asynccontextmanager
async def replicas(
    folder: Path, count: int, *arguments: str, env: Mapping[str, str], module: str = "emceepee"
) -> AsyncIterator[list[RestartableProcess]]:
    """They run at the beginning. At the end each must stop by itself; what each logged is in a file in the folder."""
    async with AsyncExitStack() as stack:
        running: list[RestartableProcess] = []
        for number in range(count):
            http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
            slot = ("--replica-slot", str(number)) if count > 1 else ()
            process = RestartableProcess(http, folder, *arguments, *slot, env=dict(env), module=module)
            stack.push_async_callback(_end, process, folder / f"replica-{number}.log")
            await process.start()
            running.append(process)
        yield running


async def _end(process: RestartableProcess, log: Path) -> None:
    try:
        if process.is_running:
            process.resume()
            await process.http.close()
            await process.stop()
    finally:
        log.write_text("".join(process.log))  # noqa: ASYNC240 - at the end, when nobody waits

"""Several `emceepee serve` on this machine that share one state, as behind a balancer."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from support.callers.http_process import HttpProcess, http_process
from support.callers.restartable_process import RestartableProcess

TOKEN = "token-of-the-replicas"  # which all of them ask for
STATE_KEY = "Y2hhbmdlLW1lLWNoYW5nZS1tZS1jaGFuZ2UtbWUtY2g="  # 32 bytes: what they encrypt secrets with
_SECRETS = {"EMCEEPEE_TOKEN": TOKEN, "EMCEEPEE_STATE_KEY": STATE_KEY}


@asynccontextmanager
async def replicas(
    count: int, state: str, *arguments: str, env: dict[str, str] | None = None, module: str = "emceepee"
) -> AsyncIterator[list[HttpProcess]]:
    """Each on a free port. `state` is what all get as `--state`: `sqlite:PATH`, or `redis://…`."""
    given = _SECRETS | (env or {})
    options = ("--log-level", "warn", "--state", state, *arguments)
    async with AsyncExitStack() as stack:
        starting = (stack.enter_async_context(http_process(*options, env=given, module=module)) for _ in range(count))
        yield list(await asyncio.gather(*starting))


def two_replicas(
    state: str, *arguments: str, env: dict[str, str] | None = None, module: str = "emceepee"
) -> AbstractAsyncContextManager[list[HttpProcess]]:
    return replicas(2, state, *arguments, env=env, module=module)


@asynccontextmanager
async def restartable_replicas(
    folder: Path, count: int, *arguments: str, env: Mapping[str, str], module: str = "emceepee"
) -> AsyncIterator[list[RestartableProcess]]:
    """Each can be killed, paused or stopped, and started again in its slot.

    They run at the beginning. At the end each must stop by itself; what each logged is in a file in the folder.
    """
    async with AsyncExitStack() as stack:
        running: list[RestartableProcess] = []
        for number in range(count):
            http = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
            slot = ("--replica-slot", str(number)) if count > 1 else ()
            process = RestartableProcess(http, folder, *arguments, *slot, env={**_SECRETS, **env}, module=module)
            stack.push_async_callback(_end, process, folder / f"replica-{number}.log")
            running.append(process)
        await asyncio.gather(*(process.start() for process in running))
        yield running


async def _end(process: RestartableProcess, log: Path) -> None:
    try:
        if process.is_running:
            process.resume()
            await process.http.close()
            await process.stop()
    finally:
        log.write_text("".join(process.log))  # noqa: ASYNC240 - at the end, when nobody waits

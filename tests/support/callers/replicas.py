"""Several `emceepee serve` on this machine that share one state, as behind a balancer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from support.callers.http_process import HttpProcess, http_process

TOKEN = "token-of-the-replicas"  # which all of them ask for
STATE_KEY = "Y2hhbmdlLW1lLWNoYW5nZS1tZS1jaGFuZ2UtbWUtY2g="  # 32 bytes: what they encrypt secrets with


@asynccontextmanager
async def replicas(
    count: int, state: str, *arguments: str, env: dict[str, str] | None = None, module: str = "emceepee"
) -> AsyncIterator[list[HttpProcess]]:
    """Each on a free port. `state` is what all get as `--state`: `sqlite:PATH`, or `redis://…`."""
    given = {"EMCEEPEE_TOKEN": TOKEN, "EMCEEPEE_STATE_KEY": STATE_KEY} | (env or {})
    options = ("--log-level", "warn", "--state", state, *arguments)
    async with AsyncExitStack() as stack:
        starting = (stack.enter_async_context(http_process(*options, env=given, module=module)) for _ in range(count))
        yield list(await asyncio.gather(*starting))


def two_replicas(
    state: str, *arguments: str, env: dict[str, str] | None = None, module: str = "emceepee"
) -> AbstractAsyncContextManager[list[HttpProcess]]:
    return replicas(2, state, *arguments, env=env, module=module)

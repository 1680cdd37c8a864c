"""Bounded waits for what announces itself to nobody: a process that is gone, a file, a state."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

WITHIN = 20.0  # seconds, on a busy machine
PAUSE = 0.02


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], *, what: str = "the condition holds", within: float = WITHIN
) -> None:
    """Return as soon as `condition` holds; fail if it does not in time."""
    try:
        async with asyncio.timeout(within):
            while True:
                holds = condition()
                if await holds if inspect.isawaitable(holds) else holds:
                    return
                await asyncio.sleep(PAUSE)
    except TimeoutError:
        raise AssertionError(f"waited {within:g} s in vain until {what}") from None

"""Bounded waits for conditions that no event announces: the end of a process, a file, a state."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable

WITHIN = 20.0  # seconds, on a busy machine
PAUSE = 0.02
SHORT_PAUSE = 0.002  # a small program starts within some 20 ms


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
                await asyncio.sleep(PAUSE)  # between two checks: nothing signals the condition
    except TimeoutError:
        raise AssertionError(f"waited {within:g} s in vain until {what}") from None


def wait_until(condition: Callable[[], bool], *, what: str, within: float = WITHIN) -> None:
    """Like `eventually`, in code without an event loop."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"waited {within:g} s in vain until {what}"
        time.sleep(SHORT_PAUSE)  # between two checks: nothing signals the condition, and `within` bounds the wait

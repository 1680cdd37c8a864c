"""Waits for the next moment at which time changes a session that nobody holds, and has it loaded then.

Where replicas share a store, one of them is enough for that. Each adds a delay of its own to every look (`turn_delay`),
so that a moment which all of them know does not bring all of them to the store. In return none waits for longer than
`at_most`: some replica looks all the time, whatever was let go of, and by whom.
"""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from math import inf
from typing import Any

from emceepee.clock import Clock, Handle

LEAST_SECONDS = 0.01  # a timer that is late is due now; but never in a loop without a pause
NOT_YET_SECONDS = 0.5  # after a look that found nothing: what is due may not be for us to take yet


class DueWatch:
    """One per process. `load` takes what is due from the store; None if it could not take up all of it."""

    def __init__(
        self,
        clock: Clock,
        *,
        next_due: Callable[[], Awaitable[datetime | None]],
        load: Callable[[], Awaitable[int | None]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        turn_delay: Callable[[], float] = lambda: 0.0,
        at_most: float = inf,
    ) -> None:
        self._clock, self._next_due, self._load, self._spawn = clock, next_due, load, spawn
        self._turn_delay, self._at_most = turn_delay, at_most
        self._timer: Handle | None = None
        self._is_hurried = False

    async def look(self) -> None:
        """Have loaded what is due, and wait for the next one."""
        found = await self._load()
        if found is None:  # the next sweep of the directory tries again
            self.cancel()
        else:
            await self.wait(LEAST_SECONDS if found else NOT_YET_SECONDS)

    async def wait(self, least: float = LEAST_SECONDS) -> None:
        due = await self._next_due()
        seconds = inf if due is None else max((due - self._clock.now()).total_seconds(), least)
        self.cancel()
        if (seconds := min(seconds, self._at_most)) < inf:
            self._set(seconds + self._turn_delay())

    def hurry(self) -> None:
        """A replica is gone, and what it had may be due. How many are, makes no difference."""
        if not self._is_hurried:
            self.cancel()
            self._is_hurried = True
            self._set(self._turn_delay())

    def cancel(self) -> None:
        self._is_hurried = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, seconds: float) -> None:
        self._timer = self._clock.call_later(seconds, self._look_now)

    def _look_now(self) -> None:
        self._timer, self._is_hurried = None, False
        self._spawn(self.look())

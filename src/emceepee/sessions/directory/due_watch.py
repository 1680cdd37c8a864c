"""Load sessions that no process holds when their next deadline is due.

Where replicas share a store, one of them is enough for this work. Each replica adds a random delay to every check
(`turn_delay`), so that all of them do not query the store at the same moment. In return, no replica waits longer than
`at_most`: some replica keeps checking, whichever replica released a session.
"""

from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from math import inf
from typing import Any

from emceepee.clock import Clock, Handle

LoadDue = Callable[[], Awaitable[int | None]]
Spawn = Callable[[Coroutine[Any, Any, None]], object]

LEAST_SECONDS = 0.01  # an overdue timer fires now, but a minimum pause prevents a busy loop
NOT_YET_SECONDS = 0.5  # after a check that found nothing: another process may still hold the due session


class DueWatch:
    """One per process. `load` takes due sessions from the store. It returns None if it could not load all of them."""

    def __init__(
        self,
        clock: Clock,
        *,
        next_due: Callable[[], Awaitable[datetime | None]],
        load: LoadDue,
        spawn: Spawn,
        turn_delay: Callable[[], float] = lambda: 0.0,
        at_most: float = inf,
    ) -> None:
        self._clock, self._next_due, self._load, self._spawn = clock, next_due, load, spawn
        self._turn_delay, self._at_most = turn_delay, at_most
        self._timer: Handle | None = None
        self._is_hurried = False

    async def look(self) -> None:
        """Load due sessions, and wait for the next one."""
        found = await self._load()
        if found is None:  # the next sweep of the directory retries
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
        """Check soon: a replica is gone, and its sessions may be due. Several lost replicas cause one check."""
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

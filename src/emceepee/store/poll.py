"""Detects changes of the shared state by other processes, through notifications of the store and by polling."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from emceepee.clock import Clock, within
from emceepee.store.store import Store, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
POLL_SECONDS = 1.0
Reload = Callable[[], Awaitable[None]]


class SharedChanges:
    """`run` calls every watcher when the shared state has changed, and again after `look_again` or a store error."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._watchers: list[Reload] = []
        self._known: int | None = None  # the revision at the last call of the watchers
        self._was_told = asyncio.Event()
        store.on_shared_change = self._was_told.set

    def watch(self, reload: Reload) -> None:
        self._watchers.append(reload)

    def look_again(self) -> None:
        """Call the watchers at the next poll even if nothing has changed, because one of them still has work to do."""
        self._known = None

    async def run(self) -> None:
        while True:
            await self._wait()
            try:
                revision = await self._store.shared_revision()
                if revision != self._known:
                    self._known = revision
                    await asyncio.gather(*(reload() for reload in self._watchers))
            except StoreError as error:
                self.look_again()
                log.debug("state_not_read", error=str(error))  # only debug: a failed write reports the same fault

    async def _wait(self) -> None:
        """Wait for a notification or the poll interval. The revision reveals changes whose notification was lost."""
        telling = asyncio.ensure_future(self._was_told.wait())
        try:
            with suppress(TimeoutError):
                await within(self._clock, POLL_SECONDS, telling)
        finally:
            telling.cancel()
        self._was_told.clear()

"""Notices when another process has changed what all share: because the store says so, and by looking now and then."""

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
    """`run` calls every watcher when something has changed, and again if one of them could not do all it has to."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._watchers: list[Reload] = []
        self._known: int | None = None  # the revision that the watchers were called for
        self._was_told = asyncio.Event()
        store.on_shared_change = self._was_told.set

    def watch(self, reload: Reload) -> None:
        self._watchers.append(reload)

    def look_again(self) -> None:
        """The next time, call the watchers even if nothing has changed: one has something to write."""
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
                log.debug("state_not_read", error=str(error))  # whoever writes says so louder

    async def _wait(self) -> None:
        """Until it is time to look. What was told and got lost is found by its revision then."""
        telling = asyncio.ensure_future(self._was_told.wait())
        try:
            with suppress(TimeoutError):
                await within(self._clock, POLL_SECONDS, telling)
        finally:
            telling.cancel()
        self._was_told.clear()

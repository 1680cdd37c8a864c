"""Looks now and then whether another process has changed what all share."""

import asyncio
from collections.abc import Awaitable, Callable

from emceepee.clock import Clock
from emceepee.store.store import Store, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
POLL_SECONDS = 1.0
Reload = Callable[[], Awaitable[None]]


class SharedChanges:
    """`run` calls every watcher when something has changed, and again if one of them could not read it."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._watchers: list[Reload] = []

    def watch(self, reload: Reload) -> None:
        self._watchers.append(reload)

    async def run(self) -> None:
        known: int | None = None
        while True:
            await self._clock.sleep(POLL_SECONDS)
            try:
                revision = await self._store.shared_revision()
                if revision != known:
                    await asyncio.gather(*(reload() for reload in self._watchers))
                    known = revision
            except StoreError as error:
                log.debug("state_not_read", error=str(error))  # whoever writes says so louder

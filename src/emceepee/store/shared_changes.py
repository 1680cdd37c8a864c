"""Detects changes of the shared state by other processes, through notifications of the store and by polling."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from emceepee.clock import Clock, within
from emceepee.store.store import Store, StoreError, StoreListener
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
POLL_SECONDS = 1.0
Reload = Callable[[], Awaitable[None]]


class SharedChanges(StoreListener):
    """`run` calls every watcher when the shared state has changed, and again after a store error.

    It also calls them at the next poll while `has_unsaved` returns True, because a watcher writes unsaved changes.
    """

    def __init__(
        self, store: Store, clock: Clock, watchers: Sequence[Reload], *, has_unsaved: Callable[[], bool]
    ) -> None:
        self._store, self._clock, self._watchers, self._has_unsaved = store, clock, watchers, has_unsaved
        self._known: int | None = None  # the revision at the last call of the watchers
        self._was_told = asyncio.Event()
        store.listen(self)

    def handle_shared_change(self) -> None:
        self._was_told.set()

    async def run(self) -> None:
        while True:
            await self._wait()
            try:
                revision = await self._store.shared_revision()
                if revision != self._known or self._has_unsaved():
                    self._known = revision
                    await asyncio.gather(*(reload() for reload in self._watchers))
            except StoreError as error:
                self._known = None
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

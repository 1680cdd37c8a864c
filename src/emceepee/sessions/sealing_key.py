"""The encryption key for secret session records, loaded from the store on first use."""

import asyncio

from emceepee.store.store import Sealer, Store, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")


class Sealing:
    """One per installation. `sealer` is None until it is loaded, and stays None if there is no key."""

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self.sealer: Sealer | None = None
        self.is_loaded = False
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Load the key. If the store fails, nothing is loaded, and a later call retries."""
        async with self._loading:
            if self.is_loaded:
                return
            try:
                self.sealer = None if self._store is None else await self._store.sealer()
            except StoreError as error:
                log.warning("key_not_loaded", error=str(error))
                return
            self.is_loaded = True
            if self.sealer is None and self._store is not None:
                log.warning(
                    "tasks_not_stored", reason="there is no key, so a restart fails tasks that servers continue"
                )

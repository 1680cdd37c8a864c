"""Saves logins to the store. Changes that fail to save are retried with the next attempt."""

from emceepee.store.store import Store, StoredLogin, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")


class SavedLogins:
    """The unsaved changes. Without a store, there are none."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._unsaved: dict[bytes, StoredLogin | None] = {}  # by digest; None for a login that has ended

    def put(self, login: StoredLogin) -> None:
        if self._store is not None:
            self._unsaved[login.digest] = login

    def end(self, digest: bytes) -> None:
        if self._store is not None:
            self._unsaved[digest] = None

    def is_unsaved(self, digest: bytes) -> bool:
        return digest in self._unsaved

    async def save(self) -> None:
        """Save the changes. If the store fails, log a warning and retain the unsaved changes."""
        try:
            await self.flush()
        except StoreError as error:
            log.warning("logins_not_saved", error=str(error))

    async def flush(self) -> None:
        """Raises: StoreError."""
        for digest, login in list(self._unsaved.items()):
            if self._store is not None and login is None:
                await self._store.end_login(digest)
            elif self._store is not None and login is not None:
                await self._store.add_login(login)
            if digest in self._unsaved and self._unsaved[digest] is login:
                del self._unsaved[digest]

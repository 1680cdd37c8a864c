"""Logins on their way to the store: what it cannot take now, it gets with the next attempt."""

from emceepee.store.store import Store, StoredLogin, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")


class SavedLogins:
    """Without a store nothing is saved, and nothing is unsaved."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._unsaved: dict[bytes, StoredLogin | None] = {}  # by digest; None: it was ended

    def put(self, login: StoredLogin) -> None:
        if self._store is not None:
            self._unsaved[login.digest] = login

    def end(self, digest: bytes) -> None:
        if self._store is not None:
            self._unsaved[digest] = None

    def is_unsaved(self, digest: bytes) -> bool:
        return digest in self._unsaved

    async def save(self) -> None:
        """As far as the store takes it."""
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

"""Secrets in the store, or in memory if the store has no encryption key."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from emceepee.clock import Clock
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import NoKey, SecretPlace, StoredSecret
from emceepee.telemetry.logs import EventLog

NO_OWNER = ""  # the principal of records whose owner is unknown before they are read
TOKENS, CLIENT, LOGIN, PIN = "tokens", "client", "login", "pin"  # kinds of secrets, as prefixes of record names

log = EventLog("sessions")


@dataclass(frozen=True, slots=True)
class ServerKey:
    """The principal and server that tokens belong to. The same name at another address is another server."""

    principal: str
    server: str
    url: str

    def record(self, kind: str) -> str:
        """Return a record name with the URL hashed: the URL may hold a secret, and names are not encrypted."""
        return json.dumps([kind, self.server, hashlib.sha256(self.url.encode()).hexdigest()[:32]])

    @property
    def lock(self) -> str:
        return json.dumps([self.principal, self.record(TOKENS)])


def record_kind(name: str) -> str:
    return str(json.loads(name)[0])


class SecretRecords:
    """Read and write secrets. Every method may raise StoreUnavailable."""

    def __init__(self, place: SecretPlace, clock: Clock) -> None:
        self._place, self._clock = place, clock
        self.problem: str | None = None
        """Why secrets are lost with the process although other state is not."""

    async def read(self, principal: str, name: str) -> StoredSecret | None:
        return await self._place.secret(principal, name)

    async def read_all(self, principal: str) -> Sequence[StoredSecret]:
        return await self._place.secrets_of(principal)

    async def put(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        """Write the record and return its new revision. Return None without a change if the revision does not match."""
        try:
            return await self._place.put_secret(principal, name, data, revision=revision)
        except NoKey as error:
            self.problem = str(error)
            log.warning("secrets_in_memory_only", error=self.problem)
            self._place = MemoryStore()
            return await self._place.put_secret(principal, name, data, revision=revision)

    async def replace(self, principal: str, name: str, data: bytes) -> int:
        """Write the record, regardless of its current revision."""
        while True:
            found = await self.read(principal, name)
            new = await self.put(principal, name, data, revision=0 if found is None else found.revision)
            if new is not None:
                return new

    async def drop(self, principal: str, name: str, *, revision: int) -> bool:
        return await self._place.drop_secret(principal, name, revision=revision)

    async def forget(self, principal: str, name: str) -> StoredSecret | None:
        """Delete the record, regardless of its current revision, and return it."""
        while (found := await self.read(principal, name)) is not None:
            if await self.drop(principal, name, revision=found.revision):
                return found
        return None

    async def lock(self, name: str, holder: str, *, seconds: float) -> bool:
        now = self._clock.now()
        return await self._place.lock(name, holder, now=now, until=now + timedelta(seconds=seconds))

    async def unlock(self, name: str, holder: str) -> None:
        await self._place.unlock(name, holder)

    async def announce_change(self) -> None:
        await self._place.announce_change()

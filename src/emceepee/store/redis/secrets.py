"""Secrets of principals in Redis, encrypted with the key that all replicas share, and locks."""

from collections.abc import Sequence
from datetime import datetime

from emceepee.store.redis.connection.commands import Commands, UnknownOutcome, run_command, run_script
from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.scripts.secret_scripts import DROP_SECRET, LOCK, PUT_SECRET, UNLOCK
from emceepee.store.redis.slot_lease import SlotLease
from emceepee.store.redis.state_key import SharedKey
from emceepee.store.store import StoredSecret


class Secrets:
    def __init__(self, commands: Commands, names: KeyNames, key: SharedKey, lease: SlotLease) -> None:
        self._commands, self._names, self._key, self._lease = commands, names, key, lease

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        flat = await run_command(self._commands, "HGETALL", self._names.secrets(principal))
        fields = list(zip(flat[::2], flat[1::2], strict=True)) if isinstance(flat, list) else list(flat.items())
        found = [self._read(principal, name.decode(), data) for name, data in fields]
        return sorted(found, key=lambda secret: secret.name)

    async def secret(self, principal: str, name: str) -> StoredSecret | None:
        data = await run_command(self._commands, "HGET", self._names.secrets(principal), name)
        return None if data is None else self._read(principal, name, data)

    async def put(self, principal: str, name: str, data: bytes, revision: int) -> int | None:
        """Encrypt and store the secret if its revision matches. Raises: NoKey."""
        sealed = self._key.sealed_secret(principal, name, data)
        keys = [self._names.secrets(principal), self._names.secret_revisions]
        return int(await run_script(self._commands, PUT_SECRET, keys, name, b"%d" % revision, sealed)) or None

    async def drop(self, principal: str, name: str, revision: int) -> bool:
        return bool(
            await run_script(self._commands, DROP_SECRET, [self._names.secrets(principal)], name, b"%d" % revision)
        )

    async def lock(self, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Try to acquire the lock. Redis measures its duration with its own clock."""
        milliseconds = max(round((until - now).total_seconds() * 1000), 1)
        gone = ""
        while True:
            arguments: list[Word] = [holder, self._lease.owner, b"%d" % milliseconds, gone]
            found = (await run_script(self._commands, LOCK, [self._names.lock(name)], *arguments)).decode()
            if not found or await self._is_held(found):
                return not found
            gone = found

    async def _is_held(self, lock: str) -> bool:
        owner, divider, _ = lock.rpartition("/")
        if not divider or not self._lease.may_take_over:
            return True
        try:
            return (await self._lease.roster([owner])).is_alive(owner)
        except UnknownOutcome as error:
            raise error.because from None

    async def unlock(self, name: str, holder: str) -> None:
        await run_script(self._commands, UNLOCK, [self._names.lock(name)], holder)

    def _read(self, principal: str, name: str, data: bytes) -> StoredSecret:
        revision, _, sealed = data.partition(b" ")
        return StoredSecret(name, self._key.opened_secret(principal, name, sealed), int(revision))

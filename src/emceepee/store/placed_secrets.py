"""Secrets in the state or in the platform's keyring. The state always has their names and revisions.

A keyring stores texts by name. It can neither list them nor compare and swap one. So each secret in the keyring gets a
name that was never used before, and the state stores that name in place of the secret:

    put    write it to the keyring ──▶ put its name into the state ──▶ delete the previous text
                                         └ conflict with another process: delete the new text, change nothing

A process that is killed between two steps leaves an unreferenced text in the keyring. Reads find a secret in either
place, so the preferred place can change from run to run.
"""

import base64
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from emceepee.store.platform_keyring import Keyring
from emceepee.store.store import SecretPlace, StoredSecret, StoreUnavailable

MARK = b"\x00keyring:"  # prefix of the state entry of a secret that is in the keyring
NAME_BYTES = 8
MOST_READS = 5  # of a secret that other processes change during each read


class PlacedSecrets:
    """Stores new secrets in the keyring if it `is_preferred`, and in the state otherwise."""

    def __init__(self, state: SecretPlace, keyring: Keyring, *, is_preferred: bool) -> None:
        self._state, self._keyring, self._is_preferred = state, keyring, is_preferred

    @property
    def is_durable(self) -> bool:
        return self._state.is_durable

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        found = [await self._read(principal, stored) for stored in await self._state.secrets_of(principal)]
        return [secret for secret in found if secret is not None]

    async def secret(self, principal: str, name: str) -> StoredSecret | None:
        stored = await self._state.secret(principal, name)
        return None if stored is None else await self._read(principal, stored)

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        before = await self._state.secret(principal, name) if revision else None
        kept = data
        if self._is_preferred:
            kept = MARK + f"{principal} {name} {secrets.token_hex(NAME_BYTES)}".encode()
            await self._keyring.write(_name_in(kept) or "", base64.b64encode(data).decode())
        new: int | None = None
        try:
            new = await self._state.put_secret(principal, name, kept, revision=revision)
        finally:
            if new is None:
                await self._clear(kept)
        if new is not None and before is not None and before.revision == revision:
            await self._clear(before.data)
        return new

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        before = await self._state.secret(principal, name)
        is_gone = await self._state.drop_secret(principal, name, revision=revision)
        if is_gone and before is not None and before.revision == revision:
            await self._clear(before.data)
        return is_gone

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        return await self._state.lock(name, holder, now=now, until=until)

    async def unlock(self, name: str, holder: str) -> None:
        await self._state.unlock(name, holder)

    async def announce_change(self) -> None:
        await self._state.announce_change()

    async def _read(self, principal: str, stored: StoredSecret) -> StoredSecret | None:
        """Return the secret. Its data is empty if the keyring lacks it (deleted there, or another keyring)."""
        for _ in range(MOST_READS):
            name = _name_in(stored.data)
            if name is None:
                return stored
            text = await self._keyring.read(name)
            if text is not None:
                return replace(stored, data=base64.b64decode(text))
            again = await self._state.secret(principal, stored.name)
            if again is None:
                return None
            if again.revision == stored.revision:
                return replace(stored, data=b"")
            stored = again
        raise StoreUnavailable("Other processes keep changing this login. Try again.")

    async def _clear(self, kept: bytes) -> None:
        if (name := _name_in(kept)) is not None:
            with suppress(StoreUnavailable):  # harmless: the state no longer refers to it
                await self._keyring.delete(name)


def _name_in(kept: bytes) -> str | None:
    return kept.removeprefix(MARK).decode() if kept.startswith(MARK) else None

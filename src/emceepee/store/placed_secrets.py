"""Secrets in the state, or in the platform's keyring; which there are, and of which revision, the state says.

A keyring keeps texts by their names. It can neither list them nor change one only if it is what it was. So each secret
that goes there gets a name that was never used, and the state gets that name as if it were the secret:

    put    write it to the keyring ──▶ put its name into the state ──▶ delete what was there before
                                         └ another was quicker: delete what was written, nothing is changed

Whoever is killed in between leaves a text in the keyring that nothing leads to. What is found is read wherever it is,
so that either can follow the other.
"""

import base64
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from emceepee.store.platform_keyring import Keyring
from emceepee.store.store import SecretPlace, StoredSecret, StoreUnavailable

MARK = b"\x00keyring:"  # begins what stands in the state for a secret in the keyring
NAME_BYTES = 8
MOST_READS = 5  # of one that others change all the time


class PlacedSecrets:
    """New ones go to the keyring if it `is_preferred`."""

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
        """It is empty if the keyring does not have it: someone took it out, or another keyring is used than before."""
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
        raise StoreUnavailable("A login is being changed by others all the time. Try again.")

    async def _clear(self, kept: bytes) -> None:
        if (name := _name_in(kept)) is not None:
            with suppress(StoreUnavailable):  # nothing leads to it any more
                await self._keyring.delete(name)


def _name_in(kept: bytes) -> str | None:
    return kept.removeprefix(MARK).decode() if kept.startswith(MARK) else None

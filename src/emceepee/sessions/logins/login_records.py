"""Stored login data besides tokens: client registrations, unfinished logins, and pinned issuers."""

import json
from collections.abc import Mapping
from contextlib import suppress

from emceepee.backends.oauth.flow import KeptState
from emceepee.backends.oauth.login_codec import (
    UnreadableLogin,
    read_login,
    read_registration,
    write_login,
    write_registration,
)
from emceepee.backends.oauth.oauth_client import Registration
from emceepee.sessions.secret_records import CLIENT, LOGIN, PIN, SecretRecords, ServerKey, record_kind


class LoginRecords:
    """Store and read login records. Every method may raise StoreUnavailable."""

    def __init__(self, records: SecretRecords) -> None:
        self._records = records

    async def registrations(self, principal: str) -> Mapping[str, Registration]:
        """Return registrations by issuer."""
        found: dict[str, Registration] = {}
        for record in await self._records.read_all(principal):
            if record_kind(record.name) == CLIENT:
                with suppress(UnreadableLogin):
                    registration = read_registration(record.data)
                    found[registration.issuer] = registration
        return found

    async def keep_registration(self, principal: str, registration: Registration) -> None:
        name = _client_record(registration.issuer)
        await self._records.replace(principal, name, write_registration(registration))

    async def forget_registration(self, principal: str, issuer: str, client_id: str) -> None:
        """Delete the registration, unless a newer one has replaced it."""
        found = await self._records.read(principal, _client_record(issuer))
        if found is None:
            return
        with suppress(UnreadableLogin):
            if read_registration(found.data).client.client_id != client_id:
                return
        await self._records.drop(principal, found.name, revision=found.revision)

    async def keep_login(self, key: ServerKey, state: KeptState) -> None:
        await self._records.replace(key.principal, key.record(LOGIN), write_login(state))

    async def kept_login(self, key: ServerKey) -> KeptState | None:
        """Return an unfinished login that a person was asked for, or None."""
        found = await self._records.read(key.principal, key.record(LOGIN))
        with suppress(UnreadableLogin):
            return None if found is None else read_login(found.data)
        return None

    async def begun_logins(self, principal: str) -> frozenset[str]:
        """Return the record names of unfinished logins."""
        names = [record.name for record in await self._records.read_all(principal)]
        return frozenset(name for name in names if record_kind(name) == LOGIN)

    async def drop_login(self, key: ServerKey) -> None:
        await self._records.forget(key.principal, key.record(LOGIN))

    async def pinned_issuer(self, key: ServerKey, client_id: str) -> str | None:
        """Return the issuer for which a configured client was first used. No other issuer sees the client."""
        found = await self._records.read(key.principal, _pin_record(key, client_id))
        return None if found is None else found.data.decode() or None

    async def pin_issuer(self, key: ServerKey, client_id: str, issuer: str) -> None:
        await self._records.put(key.principal, _pin_record(key, client_id), issuer.encode(), revision=0)

    async def unpin_issuer(self, key: ServerKey, client_id: str) -> None:
        """Forget the pinned issuer of a removed server, so that adding the server again decides from scratch."""
        await self._records.forget(key.principal, _pin_record(key, client_id))


def _pin_record(key: ServerKey, client_id: str) -> str:
    return json.dumps([*json.loads(key.record(PIN)), client_id])


def _client_record(issuer: str) -> str:
    return json.dumps([CLIENT, issuer])

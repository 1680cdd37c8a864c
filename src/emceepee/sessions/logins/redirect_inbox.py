"""Answers of browsers that come back to another process than their login, and the outcome that is shown to them.

Before a person is asked, the `state` of the login is stored with the server and principal that it belongs to. A process
that gets a browser and does not run its login stores the address that the browser came with, as a secret. A process
that runs a login looks for that address every second while the person is away. The first to take it uses it, and
stores how the login ended for the process that shows the page.
"""

import hashlib
import json

from emceepee.clock import Clock
from emceepee.sessions.secret_records import NO_OWNER, SecretRecords, ServerKey

LOOK_SECONDS = 1.0  # between two looks for a browser that came back to another process
OUTCOME_LOOK_SECONDS = 0.5  # between two looks for how the login ended there: a person waits for the page
RETURNED, STATE, OUTCOME = "returned", "state", "outcome"


class RedirectInbox:
    """Every method may raise StoreUnavailable. Nothing is stored where no other process could look for it."""

    def __init__(self, secrets: SecretRecords, clock: Clock, *, is_shared: bool) -> None:
        self._secrets, self._clock, self._is_shared = secrets, clock, is_shared

    async def expect(self, state: str, key: ServerKey) -> None:
        """Store whose login has this state."""
        if self._is_shared:
            await self.clear(key)
            await self._secrets.forget(key.principal, key.record(OUTCOME))
            data = json.dumps([key.principal, key.server, key.url]).encode()
            await self._secrets.replace(NO_OWNER, _state_record(state), data)

    async def put(self, state: str, url: str) -> ServerKey | None:
        """Store the address of a browser for the process that runs its login. Return None if no login has the state."""
        found = await self._secrets.forget(NO_OWNER, _state_record(state)) if self._is_shared else None
        if found is None or not found.data:
            return None
        key = ServerKey(*json.loads(found.data))
        await self._secrets.replace(key.principal, key.record(RETURNED), url.encode())
        return key

    async def take(self, key: ServerKey) -> str | None:
        """Return the address of a browser that came back to another process, to one caller only."""
        found = await self._secrets.read(key.principal, key.record(RETURNED))
        if found is None or not await self._secrets.drop(key.principal, found.name, revision=found.revision):
            return None
        return found.data.decode()

    async def clear(self, key: ServerKey, *states: str) -> None:
        """Forget what is stored of a login with these states."""
        if self._is_shared:
            await self._secrets.forget(key.principal, key.record(RETURNED))
            for state in states:
                await self._secrets.forget(NO_OWNER, _state_record(state))

    async def put_outcome(self, key: ServerKey, reason: str | None) -> None:
        """Store why the login failed, or None if it did not, for the process that has the browser."""
        await self._secrets.replace(key.principal, key.record(OUTCOME), json.dumps(reason).encode())

    async def wait_until_taken(self, key: ServerKey) -> None:
        """Return when the process that runs the login has the address. The caller bounds the wait."""
        while await self._secrets.read(key.principal, key.record(RETURNED)) is not None:
            await self._clock.sleep(OUTCOME_LOOK_SECONDS)

    async def wait_for_outcome(self, key: ServerKey) -> str | None:
        """Return what `put_outcome` stores. The caller bounds the wait."""
        while (found := await self._secrets.forget(key.principal, key.record(OUTCOME))) is None:
            await self._clock.sleep(OUTCOME_LOOK_SECONDS)
        reason: str | None = json.loads(found.data)
        return reason


def _state_record(state: str) -> str:
    return json.dumps([STATE, hashlib.sha256(state.encode()).hexdigest()])

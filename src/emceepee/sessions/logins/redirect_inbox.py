"""Pass a browser's answer to the process that runs its login, and the login's outcome back to the browser.

Before a person is asked, the `state` of the login is stored with its server and principal. A process that receives a
browser without running its login stores the browser's address as a secret. A process that runs a login looks for that
address every second while the person is away. The first process to take the address uses it, and stores the outcome of
the login for the process that shows the page.
"""

import hashlib
import json

from emceepee.clock import Clock
from emceepee.sessions.secret_records import NO_OWNER, SecretRecords, ServerKey

LOOK_SECONDS = 1.0  # between two checks for a browser that returned to another process
OUTCOME_LOOK_SECONDS = 0.5  # between two checks for the outcome there: a person waits for the page
RETURNED, STATE, OUTCOME = "returned", "state", "outcome"


class RedirectInbox:
    """Every method may raise StoreUnavailable. Nothing is stored if no other process can read the store."""

    def __init__(self, secrets: SecretRecords, clock: Clock, *, is_shared: bool) -> None:
        self._secrets, self._clock, self._is_shared = secrets, clock, is_shared

    async def expect(self, state: str, key: ServerKey) -> None:
        """Store the server and principal of the login with this state."""
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
        """Return the address of a browser that returned to another process. Only one caller gets it."""
        found = await self._secrets.read(key.principal, key.record(RETURNED))
        if found is None or not await self._secrets.drop(key.principal, found.name, revision=found.revision):
            return None
        return found.data.decode()

    async def clear(self, key: ServerKey, *states: str) -> None:
        """Delete the stored data of a login with these states."""
        if self._is_shared:
            await self._secrets.forget(key.principal, key.record(RETURNED))
            for state in states:
                await self._secrets.forget(NO_OWNER, _state_record(state))

    async def put_outcome(self, key: ServerKey, reason: str | None) -> None:
        """Store the login's outcome for the process that serves the browser: a failure reason, or None for success."""
        await self._secrets.replace(key.principal, key.record(OUTCOME), json.dumps(reason).encode())

    async def wait_until_taken(self, key: ServerKey) -> None:
        """Return when the process that runs the login has taken the address. The caller bounds the wait."""
        while await self._secrets.read(key.principal, key.record(RETURNED)) is not None:
            await self._clock.sleep(OUTCOME_LOOK_SECONDS)

    async def wait_for_outcome(self, key: ServerKey) -> str | None:
        """Return the outcome stored by `put_outcome`. The caller bounds the wait."""
        while (found := await self._secrets.forget(key.principal, key.record(OUTCOME))) is None:
            await self._clock.sleep(OUTCOME_LOOK_SECONDS)
        reason: str | None = json.loads(found.data)
        return reason


def _state_record(state: str) -> str:
    return json.dumps([STATE, hashlib.sha256(state.encode()).hexdigest()])

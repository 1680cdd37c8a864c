"""One-time codes for console logins. A code works once, at any of the processes that share a store.

A code is valid while the process that created it is alive. The store holds it as a login under a digest that no cookie
can have. The process that ends this login has redeemed the code.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from emceepee.clock import Clock
from emceepee.guard.saved_logins import SavedLogins
from emceepee.store.store import LOGIN_CODE_MARK, Store, StoredLogin, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")
CODE_BYTES = 24  # 192 random bits, because the code alone grants a login
LEFT_OVER = timedelta(days=365)  # how long an orphaned code stays in the store without cleanup

Publish = Callable[[str], object]  # gets a new code, to show a login link


class _Invitation(NamedTuple):
    principal: str
    publish: Publish


class LoginCodes:
    """The codes of this process. As for logins, only digests are stored."""

    def __init__(self, clock: Clock, saved: SavedLogins, store: Store | None = None) -> None:
        self._clock, self._saved, self._store = clock, saved, store
        self._own: dict[bytes, _Invitation] = {}  # by digest: one code of this process per principal

    async def invite(self, principal: str, publish: Publish) -> None:
        """Create a one-time code for the principal, and pass it to `publish`, like each code that replaces it.

        The code is valid until it is used, and replaces the previous code.
        """
        code = secrets.token_urlsafe(CODE_BYTES)
        for digest in [digest for digest, own in self._own.items() if own.principal == principal]:
            del self._own[digest]
            self._saved.end(digest)
        digest = _head(self._epoch) + _digest(code)
        self._own[digest] = _Invitation(principal, publish)
        self._saved.put(StoredLogin(digest, principal, self._clock.now() + LEFT_OVER))
        await self._saved.save()
        publish(code)

    async def redeem(self, code: str) -> str | None:
        """Use up a code, and return its principal, or None if the code is invalid. Its process creates a new code."""
        wanted = _digest(code)
        own = next((digest for digest in self._own if digest.endswith(wanted)), None)
        if own is None:
            return await self._use_up(wanted)
        principal, publish = self._own.pop(own)
        if self._store is None or self._saved.is_unsaved(own):  # then no other process can have redeemed it
            self._saved.end(own)
            let_in: str | None = principal
        else:
            let_in = await self._use_up(wanted)
        await self.invite(principal, publish)
        return let_in

    async def replace_used(self, stored: Sequence[StoredLogin]) -> None:
        """Create a new code for each code that another process has redeemed."""
        there = {login.digest for login in stored}
        for digest, own in list(self._own.items()):
            is_good = digest.startswith(_head(self._epoch)) and (digest in there or self._saved.is_unsaved(digest))
            if not is_good and digest in self._own:
                await self.invite(*own)

    async def clear_left_over(self) -> None:
        """Delete the codes of processes that have ended. Raises: StoreError."""
        if self._store is None:
            return
        heads = await self._heads_of_living(self._store)
        for login in await self._store.logins():
            if is_code(login) and not login.digest.startswith(heads):
                await self._store.end_login(login.digest)

    @property
    def _epoch(self) -> int:
        replica = None if self._store is None else self._store.replica
        return 0 if replica is None else replica.epoch

    async def _use_up(self, wanted: bytes) -> str | None:
        """Redeem a code in the store. If the store is unavailable, reject it: another process may have redeemed it."""
        if self._store is None:
            return None
        try:
            found = [login for login in await self._store.logins() if is_code(login) and login.digest.endswith(wanted)]
            heads = await self._heads_of_living(self._store) if found else ()
            for login in found:
                if login.digest.startswith(heads) and await self._store.end_login(login.digest):
                    return login.principal
        except StoreError as error:
            log.warning("login_code_not_checked", error=str(error))
        return None

    async def _heads_of_living(self, store: Store) -> tuple[bytes, ...]:
        return tuple(_head(replica.epoch) for replica in await store.replicas())


def is_code(login: StoredLogin) -> bool:
    return login.digest.startswith(LOGIN_CODE_MARK)


def _head(epoch: int) -> bytes:
    """Return the prefix of the digests of codes that the process with this epoch creates."""
    return LOGIN_CODE_MARK + b"%d:" % epoch


def _digest(code: str) -> bytes:
    return hashlib.sha256(code.encode()).digest()

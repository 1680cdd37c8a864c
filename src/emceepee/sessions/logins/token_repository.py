"""The tokens of all principals: one set for each principal and server, and one refresh of it at a time.

    refresh ──▶ under way in this process: wait for it
       ├─────▶ another process has stored newer ones: adopt them
       ├─────▶ another process has the lock: check again until it has stored them, or has ended
       └─────▶ acquire the lock, check once more, ask the authorization server, store

Refresh tokens rotate: a second use of one fails, and may cost the person another login. So no process uses one without
the lock, and only the authorization server's `invalid_grant` clears the stored tokens.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from emceepee.backends.oauth.login_codec import UnreadableLogin, read_tokens, write_tokens
from emceepee.backends.oauth.oauth_messages import OAuthError
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import GrantRejected, IssuerUnavailable, TokenSet
from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.secret_records import TOKENS, SecretRecords, ServerKey, record_kind
from emceepee.store.store import StoredSecret, StoreError
from emceepee.telemetry.logs import EventLog

LOCK_SECONDS = 60.0  # longer than any refresh; a live process that holds the lock for longer is stuck
LOOK_AGAIN = (0.05, 0.1, 0.25)  # seconds between checks of another process's refresh; the last value repeats
PAUSE_AFTER_TROUBLE = 5.0  # seconds before an authorization server that could not be reached is asked again
GONE = GrantRejected(OAuthError("logged_out", "the login no longer exists"))

log = EventLog("sessions")
Renew: TypeAlias = Callable[[TokenSet], Awaitable[Renewal]]


@dataclass(frozen=True, slots=True)
class HeldTokens:
    tokens: TokenSet
    revision: int


class TokenRepository:
    """Store and refresh tokens. Every method but `refresh` may raise StoreUnavailable."""

    def __init__(self, records: SecretRecords, clock: Clock) -> None:
        self._records, self._clock = records, clock
        self._holder = secrets.token_hex(16)
        self._tasks = TaskOwner("token-refresh")
        self._refreshes: dict[ServerKey, asyncio.Task[Renewal]] = {}
        self._unsaved: dict[ServerKey, HeldTokens] = {}
        self._troubles: dict[ServerKey, tuple[float, IssuerUnavailable]] = {}

    async def load(self, key: ServerKey) -> TokenSet | None:
        try:
            held = await self._load(key)
        except StoreError:
            if (held := self._unsaved.get(key)) is None:
                raise
        return None if held is None else held.tokens

    async def save(self, key: ServerKey, tokens: TokenSet) -> None:
        """Store the tokens of a new login, replacing any others."""
        self._troubles.pop(key, None)
        self._unsaved.pop(key, None)
        await self._records.replace(key.principal, key.record(TOKENS), write_tokens(tokens))

    async def clear(self, key: ServerKey) -> TokenSet | None:
        """Delete the tokens after a logout, and return them for revocation."""
        self._unsaved.pop(key, None)
        return await self.clear_record(key.principal, key.record(TOKENS))

    async def clear_record(self, principal: str, record: str) -> TokenSet | None:
        found = await self._records.forget(principal, record)
        return None if found is None else _read_tokens(found)

    async def refresh(self, key: ServerKey, stale: TokenSet, renew: Renew) -> Renewal:
        """Return tokens newer than `stale`, refreshed here or by another process, or the reason why there are none."""
        if (trouble := self._trouble(key)) is not None:
            return trouble
        running = self._refreshes.get(key)
        if running is None:
            running = self._refreshes[key] = self._tasks.spawn(self._refresh(key, stale, renew), name=key.server)
            running.add_done_callback(lambda _: self._refreshes.pop(key, None))
        return await asyncio.shield(running)

    async def close(self) -> None:
        await self._tasks.close()

    async def tokens_of(self, principal: str) -> Mapping[str, TokenSet]:
        """Return the principal's tokens by record name."""
        found = [record for record in await self._records.read_all(principal) if record_kind(record.name) == TOKENS]
        read = {record.name: _read_tokens(record) for record in found}
        return {name: tokens for name, tokens in read.items() if tokens is not None}

    # One refresh.

    async def _refresh(self, key: ServerKey, stale: TokenSet, renew: Renew) -> Renewal:
        try:
            adopted = await self._wait_for_lock(key, stale)
            if adopted is not None:
                return adopted
            try:
                return await self._refresh_locked(key, stale, renew)
            finally:
                with suppress(StoreError):  # the lock lapses
                    await self._records.unlock(key.lock, self._holder)
        except StoreError as error:  # without the lock, the refresh token must not be used
            return self._note(key, IssuerUnavailable(str(error)))

    async def _wait_for_lock(self, key: ServerKey, stale: TokenSet) -> Renewal | None:
        """Return None once this process has the lock, or the result that another process got first."""
        pauses, began = iter(LOOK_AGAIN), self._clock.monotonic()
        pause = next(pauses)
        while not await self._records.lock(key.lock, self._holder, seconds=LOCK_SECONDS):
            if self._clock.monotonic() - began > LOCK_SECONDS:
                return self._note(key, IssuerUnavailable("another process has been refreshing the token for too long"))
            await self._clock.sleep(pause)
            pause = next(pauses, pause)
            if (adopted := self._adopt(await self._load(key), stale)) is not None:
                return adopted
        return None

    async def _refresh_locked(self, key: ServerKey, stale: TokenSet, renew: Renew) -> Renewal:
        held = await self._load(key)
        if (adopted := self._adopt(held, stale)) is not None:
            return adopted
        assert held is not None  # `_adopt` returns GONE if nothing is stored
        outcome = await renew(held.tokens)
        match outcome:
            case TokenSet():
                return await self._store(key, HeldTokens(outcome, held.revision))
            case GrantRejected():
                log.warning("login_ended", server=key.server, issuer=held.tokens.issuer, error=str(outcome.error))
                return await self._end(key, held, outcome)
            case IssuerUnavailable():
                log.warning("token_not_refreshed", server=key.server, issuer=held.tokens.issuer, error=outcome.reason)
                return self._note(key, outcome)
        return outcome

    def _adopt(self, held: HeldTokens | None, stale: TokenSet) -> Renewal | None:
        """Return the stored tokens if they are valid and differ from `stale`, GONE if there are none, or None."""
        if held is None:
            return GONE
        is_same = held.tokens.access_token == stale.access_token
        return None if is_same or held.tokens.is_expired(self._clock.now()) else held.tokens

    async def _store(self, key: ServerKey, new: HeldTokens) -> Renewal:
        """Store the refreshed tokens, and use them even if that fails: the old ones are invalid now."""
        self._unsaved[key] = new
        try:
            held = await self._load(key)
        except StoreError as error:
            log.warning("token_not_saved", server=key.server, error=str(error))
            return new.tokens
        return GONE if held is None else held.tokens

    async def _end(self, key: ServerKey, held: HeldTokens, outcome: GrantRejected) -> Renewal:
        if await self._records.drop(key.principal, key.record(TOKENS), revision=held.revision):
            return outcome
        return self._adopt(await self._load(key), held.tokens) or outcome

    # Reading and writing.

    async def _load(self, key: ServerKey) -> HeldTokens | None:
        """Store earlier unsaved tokens, unless the record has changed since. Return the stored tokens."""
        if (unsaved := self._unsaved.get(key)) is not None:
            name, data = key.record(TOKENS), write_tokens(unsaved.tokens)
            revision = await self._records.put(key.principal, name, data, revision=unsaved.revision)
            if self._unsaved.get(key) is unsaved:
                del self._unsaved[key]
            if revision is not None:
                return HeldTokens(unsaved.tokens, revision)
        found = await self._records.read(key.principal, key.record(TOKENS))
        tokens = None if found is None else _read_tokens(found)
        return None if found is None or tokens is None else HeldTokens(tokens, found.revision)

    def _note(self, key: ServerKey, trouble: IssuerUnavailable) -> IssuerUnavailable:
        self._troubles[key] = (self._clock.monotonic() + PAUSE_AFTER_TROUBLE, trouble)
        return trouble

    def _trouble(self, key: ServerKey) -> IssuerUnavailable | None:
        until, trouble = self._troubles.get(key, (0.0, None))
        if trouble is not None and self._clock.monotonic() >= until:
            del self._troubles[key]
            return None
        return trouble


def _read_tokens(record: StoredSecret) -> TokenSet | None:
    try:
        return read_tokens(record.data)
    except UnreadableLogin as error:
        log.warning("token_unreadable", error=str(error))
        return None

"""Logins to servers: the tokens of all principals as links use them, the logins that run, and where browsers return.

A browser may come back to another process than the one that waits for it, or to one that was started meanwhile. Before
a person is asked, the `state` of the login is stored with whom it belongs to. Whoever gets the browser and does not
run that login stores the address it came with, as a secret; and whoever runs a login looks for that, every second while
a person is away. The first to take it uses it.
"""

import hashlib
import json
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from emceepee.backends.dialer import Dialer
from emceepee.backends.oauth.authorization import state_in
from emceepee.backends.oauth.challenge import Demand
from emceepee.backends.oauth.client import client_document
from emceepee.backends.oauth.flow import AwaitingBrowser, KeptState, LoginTerms
from emceepee.backends.oauth.login import NOT_WAITING, LoginFailed
from emceepee.backends.oauth.renewal import Renewal, refresh, revoke
from emceepee.backends.oauth.settings import Grant, OAuthSettings
from emceepee.backends.oauth.tokens import Rejected, TokenSet
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.login_records import LoginRecords
from emceepee.sessions.running_login import RunningLogin
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.sessions.token_repository import TokenRepository
from emceepee.store.store import Store, StoreError
from emceepee.telemetry.logs import EventLog

LOOK_SECONDS = 1.0  # between looks for a browser that came back elsewhere
NOBODYS = ""  # the principal under which it is stored whose login a state is
RETURNED, STATE = "returned", "state"
REMOVED = "The server was removed"

log = EventLog("sessions")


class CallbackPlace(Protocol):
    """Where browsers come back to."""

    async def address(self, preferred: str | None = None) -> str:
        """A redirect address that leads here: the preferred one, if that is possible."""
        ...


class FixedCallback:
    """One that is known, once emceepee listens."""

    def __init__(self, url: str = "") -> None:
        self.url = url

    async def address(self, preferred: str | None = None) -> str:
        return self.url


class ServerLogins:
    """One for all sessions of a process."""

    def __init__(
        self,
        store: Store,
        dialer: Dialer,
        clock: Clock,
        callback: CallbackPlace,
        *,
        client_metadata_url: str | None = None,
    ) -> None:
        self._dialer, self.clock, self.callback = dialer, clock, callback
        self._client_metadata_url, self._is_shared = client_metadata_url, store.is_durable
        self._secrets = SecretRecords(store, clock)
        self._repository = TokenRepository(self._secrets, clock)
        self._records = LoginRecords(self._secrets)
        self._known: dict[ServerKey, TokenSet] = {}
        self._running: dict[ServerKey, RunningLogin] = {}
        self._states: dict[str, RunningLogin] = {}
        self._renewing: set[ServerKey] = set()
        self._tasks = TaskOwner("logins")

    async def close(self) -> None:
        """Logins that run are known after a restart."""
        await self._tasks.close()
        await self._repository.close()

    # Tokens.

    def known(self, key: ServerKey) -> TokenSet | None:
        return self._known.get(key)

    async def load(self, key: ServerKey) -> None:
        if key in self._known:
            return
        try:
            found = await self._repository.load(key)
        except StoreError as error:
            log.warning("tokens_not_loaded", server=key.server, error=str(error))
            return
        if found is not None:
            self._known.setdefault(key, found)

    async def renew(self, key: ServerKey, target: HttpTarget, stale: TokenSet) -> Renewal:
        sender = self._dialer.login_sender(target, key.principal)
        outcome = await self._repository.refresh(key, stale, lambda tokens: refresh(tokens, sender))
        if isinstance(outcome, TokenSet):
            self._known[key] = outcome
        elif isinstance(outcome, Rejected) and self._known.get(key) == stale:
            del self._known[key]
        return outcome

    def renew_soon(self, key: ServerKey, target: HttpTarget, stale: TokenSet) -> None:
        if key not in self._renewing:
            self._renewing.add(key)
            renewing = self._tasks.spawn(self.renew(key, target, stale), name=f"renew {key.server}")
            renewing.add_done_callback(lambda _: self._renewing.discard(key))

    async def log_out(self, principal: str, spec: BackendSpec) -> None:
        """Forget everything about that server, and tell whoever gave the tokens."""
        if not isinstance(target := spec.target, HttpTarget):
            return
        key = ServerKey(principal, spec.name, target.url)
        if (running := self._running.get(key)) is not None:
            running.abandon(REMOVED)
        known = self._known.pop(key, None)
        try:
            tokens = await self._repository.clear(key) or known
            await self._records.drop_login(key)
            if target.oauth is not None and target.oauth.client_id is not None:
                await self._records.unpin_issuer(key, target.oauth.client_id)
        except StoreError as error:
            log.warning("logout_not_stored", server=key.server, error=str(error))
            tokens = known
        if tokens is not None:
            sender = self._dialer.login_sender(target, principal)
            self._tasks.spawn(revoke(tokens, sender), name=f"revoke {key.server}")

    # Logins.

    def running(self, key: ServerKey) -> RunningLogin | None:
        return self._running.get(key)

    def begin(self, key: ServerKey, target: HttpTarget, demand: Demand, stale: TokenSet | None) -> RunningLogin:
        """Or join the one that runs."""
        login = self._running.get(key)
        if login is None:
            sender = self._dialer.login_sender(target, key.principal)
            login = RunningLogin(key, sender, self._records, self.clock, register_state=self._register_state)
            self._running[key] = login
            self._tasks.spawn(self._run(login, target, demand, stale), name=f"log in to {key.server}")
            if self._is_shared:
                self._tasks.spawn(self._look_elsewhere(login, stale), name=f"await {key.server}")
        return login

    async def _run(self, login: RunningLogin, target: HttpTarget, demand: Demand, stale: TokenSet | None) -> None:
        key, settings = login.key, self._settings(target)
        reason: str | None = "emceepee failed to log in; its log says more"
        is_kept = False
        try:
            kept = await self._kept_login(key, settings)
            tokens = await login.run(kept, lambda: self._terms(key, settings, demand, stale))
            await self._keep(key, settings, tokens)
            reason = None
        except LoginFailed as error:
            reason = str(error)
            log.warning("login_failed", server=key.server, error=reason)
        except (StoreError, OSError) as error:  # nothing stored, or no port for the browser to come back to
            reason = str(error)
        except BaseException:
            is_kept = True  # emceepee is stopping
            raise
        finally:
            del self._running[key]
            if not is_kept:
                with suppress(StoreError):
                    await self._forget(login)
            self._states = {state: other for state, other in self._states.items() if other is not login}
            await login.end(reason)

    async def _forget(self, login: RunningLogin) -> None:
        """Whoever comes with an answer to it now is too late."""
        key = login.key
        await self._records.drop_login(key)
        if self._is_shared:
            await self._secrets.forget(key.principal, key.record(RETURNED))
            for state in [state for state, other in self._states.items() if other is login]:
                await self._secrets.forget(NOBODYS, _state_record(state))

    def _settings(self, target: HttpTarget) -> OAuthSettings:
        settings = target.oauth or OAuthSettings()
        if settings.client_metadata_url is None and self._client_metadata_url is not None:
            return replace(settings, client_metadata_url=self._client_metadata_url)
        return settings

    async def _kept_login(self, key: ServerKey, settings: OAuthSettings) -> KeptState | None:
        """What a person was asked before a restart, if their answer can still come here."""
        kept = await self._records.kept_login(key)
        if isinstance(kept, AwaitingBrowser):
            if kept.request.redirect_uri != await self.callback.address(kept.request.redirect_uri):
                return None
            self._states[kept.request.state] = self._running[key]
        return kept

    async def _terms(
        self, key: ServerKey, settings: OAuthSettings, demand: Demand, stale: TokenSet | None
    ) -> LoginTerms:
        pinned = None
        if settings.client_id is not None:
            pinned = await self._records.pinned_issuer(key, settings.client_id)
        needs_browser = settings.grant is Grant.AUTHORIZATION_CODE
        return LoginTerms(
            server_url=key.url,
            settings=settings,
            demand=demand,
            redirect_uri=await self.callback.address() if needs_browser else "",
            verifier=secrets.token_urlsafe(64),
            state=secrets.token_urlsafe(32),
            asked_before=() if stale is None else stale.asked,
            registrations=await self._records.registrations(key.principal),
            pinned_issuer=pinned,
        )

    async def _keep(self, key: ServerKey, settings: OAuthSettings, tokens: TokenSet) -> None:
        """They are used whether they can be stored or not."""
        self._known[key] = tokens
        try:
            await self._repository.save(key, tokens)
            if settings.client_id is not None:
                await self._records.pin_issuer(key, settings.client_id, tokens.issuer)
        except StoreError as error:
            log.warning("token_not_saved", server=key.server, error=str(error))
        log.info("logged_in", server=key.server, issuer=tokens.issuer)

    async def client_document(self) -> JsonObject | None:
        """Who we are to authorization servers that ask; None if they could not."""
        url = self._client_metadata_url
        return None if url is None else client_document(url, (await self.callback.address(),))

    # Browsers that come back.

    async def receive(self, url: str) -> str | None:
        """A browser came back with that address, to whom it may concern; what is wrong with it, if anything is."""
        state = state_in(url)
        if state is None:
            return NOT_WAITING
        if (login := self._states.get(state)) is not None:
            return login.receive(url)
        try:
            key = await self._owner_of(state)
            if key is None:
                return NOT_WAITING
            await self._secrets.replace(key.principal, key.record(RETURNED), url.encode())
        except StoreError as error:
            return str(error)
        return None

    async def _register_state(self, state: str, login: RunningLogin) -> None:
        self._states[state] = login
        if self._is_shared:
            key = login.key
            data = json.dumps([key.principal, key.server, key.url]).encode()
            await self._secrets.forget(key.principal, key.record(RETURNED))
            await self._secrets.replace(NOBODYS, _state_record(state), data)

    async def _owner_of(self, state: str) -> ServerKey | None:
        found = await self._secrets.forget(NOBODYS, _state_record(state)) if self._is_shared else None
        return None if found is None else ServerKey(*json.loads(found.data))

    async def _look_elsewhere(self, login: RunningLogin, stale: TokenSet | None) -> None:
        """For a browser that came back to another process, and for a login that was finished there."""
        key = login.key
        await login.turn.wait()
        while not login.is_over:
            with suppress(StoreError):
                found = await self._secrets.read(key.principal, key.record(RETURNED))
                if found is not None and await self._secrets.drop(key.principal, found.name, revision=found.revision):
                    login.receive(found.data.decode())
                tokens = await self._repository.load(key)
                if tokens is not None and (stale is None or tokens.asked != stale.asked):
                    login.adopt(tokens)
            await self.clock.sleep(LOOK_SECONDS)


def _state_record(state: str) -> str:
    return json.dumps([STATE, hashlib.sha256(state.encode()).hexdigest()])

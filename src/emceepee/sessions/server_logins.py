"""Logins to servers: the tokens of all principals as links use them, the logins that run, and where browsers return.

A browser may come back to another process than the one that waits for it, or to one that was started meanwhile. Before
a person is asked, the `state` of the login is stored with whom it belongs to. Whoever gets the browser and does not
run that login stores the address it came with, as a secret; and whoever runs a login looks for that, every second while
a person is away. The first to take it uses it.
"""

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakSet

from emceepee.backends.dialer import Dialer
from emceepee.backends.oauth.authorization import state_in
from emceepee.backends.oauth.challenge import Demand, Want
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
from emceepee.sessions.login_overview import LoginView, login_overview
from emceepee.sessions.login_records import LoginRecords
from emceepee.sessions.running_login import Onlooker, RunningLogin
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.sessions.token_repository import TokenRepository
from emceepee.store.store import SecretPlace, StoreError
from emceepee.telemetry.logs import EventLog

LOOK_SECONDS = 1.0  # between looks for a browser that came back elsewhere
NOBODYS = ""  # the principal under which it is stored whose login a state is
RETURNED, STATE = "returned", "state"
CHANGES = json.dumps(["changes"])  # the record that is written with each login and logout
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedOut:
    """`was_told`: the authorization server was, so that nobody can use the tokens any more."""

    had_tokens: bool
    was_told: bool = False


class ServerLogins:
    """One for all sessions of a process."""

    def __init__(
        self,
        place: SecretPlace,
        dialer: Dialer,
        clock: Clock,
        callback: CallbackPlace,
        *,
        client_metadata_url: str | None = None,
    ) -> None:
        self._dialer, self.clock, self.callback = dialer, clock, callback
        self._client_metadata_url, self._is_shared = client_metadata_url, place.is_durable
        self._secrets = SecretRecords(place, clock)
        self._repository = TokenRepository(self._secrets, clock)
        self._records = LoginRecords(self._secrets)
        self._known: dict[ServerKey, TokenSet] = {}
        self._running: dict[ServerKey, RunningLogin] = {}
        self._states: dict[str, RunningLogin] = {}
        self._renewing: set[ServerKey] = set()
        self._seen_changes = 0  # the revision of that record
        self._disappointed: dict[ServerKey, WeakSet[Onlooker]] = {}
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
        self._dialer.figures.count_refresh(is_done=isinstance(outcome, TokenSet))
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
        tokens = await self._forget_server(ServerKey(principal, spec.name, target.url), target)
        if tokens is not None:
            sender = self._dialer.login_sender(target, principal)
            self._tasks.spawn(revoke(tokens, sender), name=f"revoke {spec.name}")

    async def log_out_now(self, principal: str, name: str, target: HttpTarget) -> LoggedOut:
        """The same, and returns when that is done."""
        tokens = await self._forget_server(ServerKey(principal, name, target.url), target)
        if tokens is None:
            return LoggedOut(had_tokens=False)
        return LoggedOut(had_tokens=True, was_told=await revoke(tokens, self._dialer.login_sender(target, principal)))

    async def log_out_forgotten(self, principal: str, record: str, *, is_public: bool) -> LoggedOut:
        """Of a server that nobody has any more, by the record that its tokens are in."""
        tokens = await self._repository.clear_record(principal, record)
        if tokens is None:
            return LoggedOut(had_tokens=False)
        await self._tell_of_change()
        sender = self._dialer.login_sender(HttpTarget(url=tokens.resource, is_public=is_public), principal)
        return LoggedOut(had_tokens=True, was_told=await revoke(tokens, sender))

    async def overview(self, principal: str, specs: Iterable[BackendSpec]) -> Sequence[LoginView]:
        """Of these servers, and of those that tokens are held for besides. Raises: StoreUnavailable."""
        held, begun = await self._repository.tokens_of(principal), await self._records.begun_logins(principal)
        return login_overview(principal, specs, held, begun, self.clock.now())

    async def give_up(self, key: ServerKey, reason: str) -> None:
        """Returns when the login is over, if one runs."""
        if (running := self._running.get(key)) is not None:
            running.abandon(reason)
            await running.outcome

    async def _forget_server(self, key: ServerKey, target: HttpTarget) -> TokenSet | None:
        """What there was."""
        if (running := self._running.get(key)) is not None:
            running.abandon(REMOVED)
        known = self._known.pop(key, None)
        try:
            tokens = await self._repository.clear(key) or known
            await self._records.drop_login(key)
            if target.oauth is not None and target.oauth.client_id is not None:
                await self._records.unpin_issuer(key, target.oauth.client_id)
            if tokens is not None:
                await self._tell_of_change()
        except StoreError as error:
            log.warning("logout_not_stored", server=key.server, error=str(error))
            return known
        return tokens

    # What other processes do.

    async def _tell_of_change(self) -> None:
        if self._is_shared:
            await self._secrets.replace(NOBODYS, CHANGES, b"{}")
            await self._secrets.announce_change()

    async def reload(self) -> None:
        """Forget the tokens that another process has logged out of, and use those that it got. Raises: StoreError."""
        if not self._known and not self._disappointed:
            return
        found = await self._secrets.read(NOBODYS, CHANGES)
        if found is None or found.revision == self._seen_changes:
            return
        for key, tokens in list(self._known.items()):
            if await self._repository.load(key) is None and self._known.get(key) is tokens:
                del self._known[key]
        for key in list(self._disappointed):
            new = await self._repository.load(key)
            if new is not None:
                self._known[key] = new
                self._cheer_up(key)
        self._seen_changes = found.revision

    def tell_of_later(self, key: ServerKey, onlooker: Onlooker) -> None:
        """Its login failed: it is told when someone logs in after all."""
        self._disappointed.setdefault(key, WeakSet()).add(onlooker)

    def _cheer_up(self, key: ServerKey) -> None:
        for onlooker in self._disappointed.pop(key, ()):
            onlooker.on_login_ended(None)

    # Logins.

    def running(self, key: ServerKey) -> RunningLogin | None:
        return self._running.get(key)

    def begin(
        self, key: ServerKey, target: HttpTarget, demand: Demand, stale: TokenSet | None, *, is_new: bool = False
    ) -> RunningLogin:
        """Or join the one that runs. `is_new`: what another process asked a person is not gone on with."""
        login = self._running.get(key)
        if login is None:
            sender = self._dialer.login_sender(target, key.principal)
            login = RunningLogin(key, sender, self._records, self.clock, register_state=self._register_state)
            self._running[key] = login
            run = self._run(login, target, demand, stale, is_new=is_new)
            self._tasks.spawn(run, name=f"log in to {key.server}")
            if self._is_shared:
                self._tasks.spawn(self._look_elsewhere(login, demand, stale), name=f"await {key.server}")
        return login

    async def _run(
        self, login: RunningLogin, target: HttpTarget, demand: Demand, stale: TokenSet | None, *, is_new: bool
    ) -> None:
        key, settings = login.key, self._settings(target)
        reason: str | None = "emceepee failed to log in; its log says more"
        is_kept = False
        try:
            kept = None if is_new else await self._kept_login(key, settings)
            tokens = await login.run(kept, lambda: self._terms(key, settings, demand, stale))
            self._known[key] = tokens
            if not login.has_adopted:
                await self._keep(key, settings, tokens)
            reason = None
            self._cheer_up(key)
        except LoginFailed as error:
            reason = str(error)
            log.warning("login_failed", server=key.server, error=reason)
        except (StoreError, OSError) as error:  # nothing stored, or no port for the browser to come back to
            reason = str(error)
        except BaseException:
            is_kept = True  # emceepee is stopping
            raise
        finally:
            login.is_ending = True
            if not is_kept:
                with suppress(StoreError):
                    await self._forget(login)
            self._states = {state: other for state, other in self._states.items() if other is not login}
            del self._running[key]  # not before: the next one is of the same sessions, and is kept in the same place
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
        try:
            await self._repository.save(key, tokens)
            await self._tell_of_change()
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
        return None if found is None or not found.data else ServerKey(*json.loads(found.data))

    async def _look_elsewhere(self, login: RunningLogin, demand: Demand, stale: TokenSet | None) -> None:
        """For a browser that came back to another process, and for a login that was finished there."""
        key = login.key
        await login.turn.wait()
        while not login.is_over:
            with suppress(StoreError):
                found = await self._secrets.read(key.principal, key.record(RETURNED))
                if found is not None and await self._secrets.drop(key.principal, found.name, revision=found.revision):
                    login.receive(found.data.decode())
                tokens = await self._repository.load(key)
                if tokens is not None and _may_do(tokens, demand, stale):
                    login.adopt(tokens)
            await self.clock.sleep(LOOK_SECONDS)


def _may_do(tokens: TokenSet, demand: Demand, stale: TokenSet | None) -> bool:
    """Whether these are other tokens than those that did not do; where these may do too little, for more scopes."""
    if stale is None or demand.want is not Want.SCOPES:
        return stale is None or tokens.access_token != stale.access_token
    return tokens.asked != stale.asked


def _state_record(state: str) -> str:
    return json.dumps([STATE, hashlib.sha256(state.encode()).hexdigest()])

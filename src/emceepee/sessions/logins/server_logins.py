"""Logins to servers: the tokens of all principals, running logins, and returning browsers.

A browser may return to a different process than the waiting process: see `redirect_inbox.py`.
"""

import json
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary

from emceepee.backends.dialer import Dialer
from emceepee.backends.oauth.authorization import state_in
from emceepee.backends.oauth.flow import BrowserLogin, KeptState, LoginTerms
from emceepee.backends.oauth.login import NOT_WAITING, LoginFailed
from emceepee.backends.oauth.metadata.challenge import Demand, DemandKind
from emceepee.backends.oauth.oauth_client import client_document
from emceepee.backends.oauth.oauth_settings import Grant, OAuthSettings
from emceepee.backends.oauth.redirect_address import with_digest, without_digest
from emceepee.backends.oauth.renewal import Renewal, refresh, revoke
from emceepee.backends.oauth.tokens import GrantRejected, TokenSet, TokenSlot
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock, give_up_after, within
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.logins.login_links import LoginLinks
from emceepee.sessions.logins.login_overview import LoginView, login_overview
from emceepee.sessions.logins.login_records import LoginRecords
from emceepee.sessions.logins.redirect_inbox import LOOK_SECONDS, RedirectInbox
from emceepee.sessions.logins.running_login import LoginWatcher, RunningLogin
from emceepee.sessions.logins.token_repository import TokenRepository
from emceepee.sessions.secret_records import NO_OWNER, SecretRecords, ServerKey
from emceepee.store.store import SecretPlace, StoreError
from emceepee.telemetry.logs import EventLog
from emceepee.web.callback import OTHER_BROWSER, STORED, UNFINISHED, CallbackOutcome, ended_login, not_awaited
from emceepee.wire.json_types import JsonObject

OUTCOME_SECONDS = 20.0  # how long a browser waits for the outcome: more than one exchange may take
TAKE_SECONDS = 5 * LOOK_SECONDS  # after that, no process runs the browser's login
STOPPING = "emceepee is stopping, and the login is not over"
CHANGES = json.dumps(["changes"])  # the record that each login and logout writes
REMOVED = "The server was removed"

log = EventLog("sessions")


class CallbackPlace(Protocol):
    """The redirect target for browsers."""

    @property
    def advice(self) -> str:
        """Return a sentence for the person about browsers that cannot return here, or an empty string."""
        ...

    async def address(self, preferred: str | None = None) -> str:
        """Return a redirect address that leads here: the preferred one if possible."""
        ...


class FixedCallback:
    """A callback address that is known once emceepee listens."""

    def __init__(self, url: str = "", advice: str = "") -> None:
        self.url, self.advice = url, advice

    async def address(self, preferred: str | None = None) -> str:
        return self.url


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedOut:
    """`is_revoked` is True if the authorization server revoked the tokens: a stolen copy is useless."""

    had_tokens: bool
    is_revoked: bool = False


class ServerLogins:
    """One per process, for all its sessions."""

    def __init__(
        self,
        place: SecretPlace,
        dialer: Dialer,
        clock: Clock,
        callback: CallbackPlace,
        *,
        client_metadata_url: str | None = None,
        public_url: str | None = None,
    ) -> None:
        """With `public_url`, each login begins with a link there and ends in the same browser."""
        self._dialer, self.clock, self.callback = dialer, clock, callback
        self._public_url = public_url
        self._client_metadata_url, self._is_shared = client_metadata_url, place.is_durable
        self._secrets = SecretRecords(place, clock)
        self._repository = TokenRepository(self._secrets, clock)
        self._records = LoginRecords(self._secrets)
        self.links = LoginLinks(self._secrets)
        self._inbox = RedirectInbox(self._secrets, clock, is_shared=self._is_shared)
        self._known: dict[ServerKey, TokenSet] = {}
        self._slots: WeakValueDictionary[ServerKey, TokenSlot] = WeakValueDictionary()  # of the links that read them
        self._running: dict[ServerKey, RunningLogin] = {}
        self._states: dict[str, RunningLogin] = {}
        self._renewing: set[ServerKey] = set()
        self._seen_changes = 0  # the last seen revision of the changes record
        self._failed_watchers: dict[ServerKey, WeakSet[LoginWatcher]] = {}
        self._tasks = TaskOwner("logins")

    async def close(self) -> None:
        """Stop running logins. They resume after a restart."""
        await self._tasks.close()
        await self._repository.close()

    # Tokens.

    def slot(self, key: ServerKey) -> TokenSlot:
        """Return the slot of the server's tokens, which this object keeps up to date."""
        slot = self._slots.get(key)
        if slot is None:
            slot = self._slots[key] = TokenSlot(self._known.get(key))
        return slot

    def _set_tokens(self, key: ServerKey, tokens: TokenSet | None) -> None:
        if tokens is None:
            self._known.pop(key, None)
        else:
            self._known[key] = tokens
        if (slot := self._slots.get(key)) is not None:
            slot.current = tokens

    async def load(self, key: ServerKey) -> None:
        if key in self._known:
            return
        try:
            found = await self._repository.load(key)
        except StoreError as error:
            log.warning("tokens_not_loaded", server=key.server, error=str(error))
            return
        if found is not None and key not in self._known:
            self._set_tokens(key, found)

    async def renew(self, key: ServerKey, target: HttpTarget, stale: TokenSet) -> Renewal:
        sender = self._dialer.login_sender(target, key.principal)
        outcome = await self._repository.refresh(key, stale, lambda tokens: refresh(tokens, sender))
        self._dialer.figures.count_refresh(is_done=isinstance(outcome, TokenSet))
        if isinstance(outcome, TokenSet):
            self._set_tokens(key, outcome)
        elif isinstance(outcome, GrantRejected) and self._known.get(key) == stale:
            self._set_tokens(key, None)
        return outcome

    def renew_soon(self, key: ServerKey, target: HttpTarget, stale: TokenSet) -> None:
        if key not in self._renewing:
            self._renewing.add(key)
            renewing = self._tasks.spawn(self.renew(key, target, stale), name=f"renew {key.server}")
            renewing.add_done_callback(lambda _: self._renewing.discard(key))

    async def log_out(self, principal: str, spec: BackendSpec) -> None:
        """Delete all login data of that server, and revoke its tokens in the background."""
        if not isinstance(target := spec.target, HttpTarget):
            return
        tokens = await self._forget_server(ServerKey(principal, spec.name, target.url), target)
        if tokens is not None:
            sender = self._dialer.login_sender(target, principal)
            self._tasks.spawn(revoke(tokens, sender), name=f"revoke {spec.name}")

    async def log_out_now(self, principal: str, name: str, target: HttpTarget) -> LoggedOut:
        """Delete all login data of that server, revoke its tokens, and return when that is done."""
        tokens = await self._forget_server(ServerKey(principal, name, target.url), target)
        if tokens is None:
            return LoggedOut(had_tokens=False)
        return LoggedOut(had_tokens=True, is_revoked=await revoke(tokens, self._dialer.login_sender(target, principal)))

    async def log_out_forgotten(self, principal: str, record: str, *, is_public: bool) -> LoggedOut:
        """Revoke and delete the tokens of a server that no longer exists, by their record."""
        tokens = await self._repository.clear_record(principal, record)
        if tokens is None:
            return LoggedOut(had_tokens=False)
        await self._announce_change()
        sender = self._dialer.login_sender(HttpTarget(url=tokens.resource, is_public=is_public), principal)
        return LoggedOut(had_tokens=True, is_revoked=await revoke(tokens, sender))

    async def overview(self, principal: str, specs: Iterable[BackendSpec]) -> Sequence[LoginView]:
        """List the logins of these servers, and of other servers with stored tokens. Raises: StoreUnavailable."""
        held, begun = await self._repository.tokens_of(principal), await self._records.begun_logins(principal)
        return login_overview(principal, specs, held, begun, self.clock.now())

    async def give_up(self, key: ServerKey, reason: str) -> None:
        """End a running login, and return when it is over."""
        if (running := self._running.get(key)) is not None:
            running.abandon(reason)
            await running.outcome

    async def _forget_server(self, key: ServerKey, target: HttpTarget) -> TokenSet | None:
        """Delete the server's login data, and return its tokens."""
        if (running := self._running.get(key)) is not None:
            running.abandon(REMOVED)
        known = self._known.get(key)
        self._set_tokens(key, None)
        try:
            tokens = await self._repository.clear(key) or known
            await self._records.drop_login(key)
            if target.oauth is not None and target.oauth.client_id is not None:
                await self._records.unpin_issuer(key, target.oauth.client_id)
            if tokens is not None:
                await self._announce_change()
        except StoreError as error:
            log.warning("logout_not_stored", server=key.server, error=str(error))
            return known
        return tokens

    # Changes by other processes.

    async def _announce_change(self) -> None:
        if self._is_shared:
            await self._secrets.replace(NO_OWNER, CHANGES, b"{}")
            await self._secrets.announce_change()

    async def reload(self) -> None:
        """Drop tokens that another process logged out of, and use tokens that it got. Raises: StoreError."""
        if not self._known and not self._failed_watchers:
            return
        found = await self._secrets.read(NO_OWNER, CHANGES)
        if found is None or found.revision == self._seen_changes:
            return
        for key, tokens in list(self._known.items()):
            if await self._repository.load(key) is None and self._known.get(key) is tokens:
                self._set_tokens(key, None)
        for key in list(self._failed_watchers):
            new = await self._repository.load(key)
            if new is not None:
                self._set_tokens(key, new)
                self._notify_failed_watchers(key)
        self._seen_changes = found.revision

    def watch_later_logins(self, key: ServerKey, watcher: LoginWatcher) -> None:
        """Notify a connection whose login failed once a later login to that server succeeds."""
        self._failed_watchers.setdefault(key, WeakSet()).add(watcher)

    def _notify_failed_watchers(self, key: ServerKey) -> None:
        for watcher in self._failed_watchers.pop(key, ()):
            watcher.on_login_ended(None)

    # Logins.

    def running(self, key: ServerKey) -> RunningLogin | None:
        return self._running.get(key)

    def begin(
        self, key: ServerKey, target: HttpTarget, demand: Demand, stale: TokenSet | None, *, is_new: bool = False
    ) -> RunningLogin:
        """Begin a login, or join the running one. With `is_new`, do not resume a login that another process began."""
        login = self._running.get(key)
        if login is None:
            sender = self._dialer.login_sender(target, key.principal)
            login = RunningLogin(key, sender, self._records, self.clock, register_state=self._register_state)
            self._running[key] = login
            run = self._run(login, target, demand, stale, is_new=is_new)
            self._tasks.spawn(run, name=f"log in to {key.server}")
            if self._is_shared:
                self._tasks.spawn(self._poll_other_processes(login, demand, stale), name=f"await {key.server}")
        return login

    async def _run(
        self, login: RunningLogin, target: HttpTarget, demand: Demand, stale: TokenSet | None, *, is_new: bool
    ) -> None:
        key, settings = login.key, target.oauth or OAuthSettings()
        reason: str | None = "emceepee failed to log in; its log says more"
        is_kept = False
        try:
            kept = None if is_new else await self._kept_login(key)
            tokens = await login.run(kept, lambda: self._terms(key, settings, demand, stale))
            self._set_tokens(key, tokens)
            if not login.has_adopted:
                await self._store_tokens(key, settings, tokens)
            reason = None
            self._notify_failed_watchers(key)
        except LoginFailed as error:
            reason = str(error)
            log.warning("login_failed", server=key.server, error=reason)
        except (StoreError, OSError) as error:  # the store failed, or no port is free for the browser's return
            reason = str(error)
        except BaseException:
            is_kept, reason = True, STOPPING
            raise
        finally:
            login.is_ending = True
            if not is_kept:
                with suppress(StoreError):
                    await self._forget(login)
                    if login.has_distant_browser:
                        await self._inbox.put_outcome(key, reason)
            self._states = {state: other for state, other in self._states.items() if other is not login}
            del self._running[key]  # remove it last: the next login has the same sessions and the same record
            await login.end(reason)

    async def _forget(self, login: RunningLogin) -> None:
        """Delete the stored state of the login, so that later answers are rejected."""
        key, states = login.key, [state for state, other in self._states.items() if other is login]
        await self._records.drop_login(key)
        await self._inbox.clear(key, *states)
        if self._public_url is not None:
            for state in states:
                await self.links.forget(state)

    async def _kept_login(self, key: ServerKey) -> KeptState | None:
        """Return the login that was pending before a restart, if the browser's answer can still reach this process."""
        kept = await self._records.kept_login(key)
        if isinstance(kept, BrowserLogin):
            address = without_digest(kept.request.redirect_uri)
            if address != await self.callback.address(address):
                return None
            await self._make_link(kept, self._running[key])
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
            own_document=self._client_metadata_url,
        )

    async def _store_tokens(self, key: ServerKey, settings: OAuthSettings, tokens: TokenSet) -> None:
        """Store the tokens. A store failure does not keep the process from using them."""
        try:
            await self._repository.save(key, tokens)
            await self._announce_change()
            if settings.client_id is not None:
                await self._records.pin_issuer(key, settings.client_id, tokens.issuer)
        except StoreError as error:
            log.warning("token_not_saved", server=key.server, error=str(error))
        log.info("logged_in", server=key.server, issuer=tokens.issuer)

    async def client_document(self, digest: str = "") -> JsonObject | None:
        """Return the client metadata for all authorization servers or the one with this digest. None without a URL."""
        url = self._client_metadata_url
        if url is None:
            return None
        return client_document(with_digest(url, digest), (with_digest(await self.callback.address(), digest),))

    # Returning browsers.

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach emceepee with TLS."""
        return (self._public_url or "").startswith("https://")

    async def receive(self, url: str, cookie: str | None = None) -> CallbackOutcome:
        """Accept the address with which a browser returned. Return the login's outcome, or that it is unfinished.

        `cookie` identifies the browser, where logins are bound to one.
        """
        state = state_in(url)
        if state is None:
            return not_awaited(NOT_WAITING)
        try:
            login = self._states.get(state)
            # The link of an ending login may be deleted already, when a browser loads the page a second time.
            has_link = login is not None and login.link is not None and not login.is_ending
            if self._public_url is not None and not await self.links.may_answer(state, cookie, has_link=has_link):
                return OTHER_BROWSER
            if login is not None:
                if (problem := login.receive(url)) is not None:
                    return not_awaited(problem)
                return ended_login(login.key.server, await within(self.clock, OUTCOME_SECONDS, login.outcome))
            if (key := await self._inbox.put(state, url)) is None:
                return not_awaited(NOT_WAITING)
            return await self._distant_outcome(key)
        except TimeoutError:
            return UNFINISHED
        except StoreError as error:
            return not_awaited(str(error))

    async def _distant_outcome(self, key: ServerKey) -> CallbackOutcome:
        """Wait for the outcome of a login in another process. Raises: TimeoutError, StoreError."""
        try:
            async with give_up_after(self.clock, TAKE_SECONDS):
                await self._inbox.wait_until_taken(key)
        except TimeoutError:
            return STORED
        async with give_up_after(self.clock, OUTCOME_SECONDS):
            return ended_login(key.server, await self._inbox.wait_for_outcome(key))

    async def _register_state(self, waiting: BrowserLogin, login: RunningLogin) -> None:
        state = waiting.request.state
        self._states[state] = login
        await self._make_link(waiting, login)
        await self._inbox.expect(state, login.key)

    async def _make_link(self, waiting: BrowserLogin, login: RunningLogin) -> None:
        if self._public_url is not None:
            login.link = self._public_url.rstrip("/") + await self.links.make(login.key, waiting)

    async def _poll_other_processes(self, login: RunningLogin, demand: Demand, stale: TokenSet | None) -> None:
        """Check for a browser that returned to another process, and for a login that another process finished."""
        key = login.key
        await login.turn.wait()
        while not login.is_over:
            with suppress(StoreError):
                if (url := await self._inbox.take(key)) is not None:
                    if (problem := login.receive(url)) is not None:
                        await self._inbox.put_outcome(key, problem)
                    else:
                        login.has_distant_browser = True
                tokens = await self._repository.load(key)
                if tokens is not None and _may_satisfy(tokens, demand, stale):
                    login.adopt(tokens)
            await self.clock.sleep(LOOK_SECONDS)


def _may_satisfy(tokens: TokenSet, demand: Demand, stale: TokenSet | None) -> bool:
    """Whether these tokens may satisfy the demand: they differ from the stale ones, or were asked for other scopes."""
    if stale is None or demand.kind is not DemandKind.SCOPES:
        return stale is None or tokens.access_token != stale.access_token
    return tokens.asked != stale.asked

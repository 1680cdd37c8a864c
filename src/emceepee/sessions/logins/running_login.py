"""One login of one principal to one server, from the demand to stored tokens. Sessions that need it watch it.

A session that needs the login while it runs joins it. The person is asked in every watching session, and answers in one
of them or only in the browser.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from emceepee.backends.oauth.flow import AskPerson, BrowserLogin, KeptState, LoginTerms
from emceepee.backends.oauth.login import Login, LoginFailed, Sender
from emceepee.backends.oauth.oauth_client import Registration
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.logins.login_records import LoginRecords
from emceepee.sessions.secret_records import ServerKey
from emceepee.store.store import StoreError
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog

LOGIN_SECONDS = 3600.0  # time limit for the person; after it, the next call begins again
DECLINED = "The login was declined"
TOO_LATE = f"Nobody logged in within {LOGIN_SECONDS / 60:g} minutes"

log = EventLog("sessions")


class LoginWatcher(Protocol):
    """A session's connection that waits for a login and asks the person."""

    async def put_question(self, asked: AskPerson, *, seconds: float) -> bool:
        """Ask the person in this session. Return False if they decline. An unanswered question is cancelled."""
        ...

    def on_login_ended(self, reason: str | None) -> None:
        """Handle the end of the login. `reason` explains missing tokens; None means success."""
        ...


class RunningLogin:
    """`turn` is set once a person is asked or the login is over. `outcome` resolves to None or a failure reason."""

    def __init__(
        self,
        key: ServerKey,
        sender: Sender,
        records: LoginRecords,
        clock: Clock,
        *,
        register_state: Callable[[BrowserLogin, "RunningLogin"], Awaitable[None]],
    ) -> None:
        self.key, self._records, self._clock = key, records, clock
        self._register_state = register_state
        self._sender = sender
        self._login = Login(self, sender, clock)
        self._adopted: TokenSet | None = None
        self._questions = TaskOwner("login-questions")
        self._watchers: dict[LoginWatcher, asyncio.Task[None] | None] = {}
        self.asked: AskPerson | None = None
        self.is_ending = False  # whether the outcome is decided; a new request then waits for it and begins again
        self.has_distant_browser = False  # whether another process shows the outcome to the browser
        self.link: str | None = None  # link that begins the login, in place of the authorization server's address
        self._received: str | None = None  # the address with which the browser returned
        self.turn = asyncio.Event()
        self.outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self.outcome.done()

    @property
    def waits_for(self) -> str:
        """Return the name of the server that the login currently asks."""
        return self._login.requested_origin or "the authorization server"

    @property
    def has_watchers(self) -> bool:
        """Whether any session watches the login."""
        return bool(self._watchers)

    @property
    def has_adopted(self) -> bool:
        """Whether another process has stored the tokens."""
        return self._adopted is not None

    async def run(self, kept: KeptState | None, begin: Callable[[], Awaitable[LoginTerms]]) -> TokenSet:
        """Resume the `kept` login. If there is none, or it fails before asking a person, begin. Raises: LoginFailed."""
        deadline = self._clock.call_later(LOGIN_SECONDS, lambda: self.abandon(_ask_again(TOO_LATE)))
        try:
            if kept is not None:
                try:
                    tokens = await self._login.run(kept)
                    self._adopted = None
                    return tokens
                except LoginFailed:
                    if self.asked is not None:
                        raise
                self._login = Login(self, self._sender, self._clock)
            tokens = await self._login.run(await begin())
            self._adopted = None
            return tokens
        except LoginFailed:
            if self._adopted is None:
                raise
            return self._adopted
        finally:
            deadline.cancel()

    async def end(self, reason: str | None) -> None:
        """End the login: publish the outcome, then notify the watchers."""
        if self.is_over:
            return
        self.outcome.set_result(reason)
        self.turn.set()
        for watcher in list(self._watchers):
            watcher.on_login_ended(reason)
        await self._questions.close()

    def receive(self, url: str) -> str | None:
        """Return the problem with that address, or None if it is the awaited one. A browser may load the page twice."""
        if url == self._received and not self.is_over:
            return None
        problem = self._login.receive(url)
        if problem is None:
            self._received = url
        return problem

    def adopt(self, tokens: TokenSet) -> None:
        """Use tokens that another process got first."""
        self._adopted = tokens
        self.abandon("another process has logged in")

    def abandon(self, reason: str) -> None:
        self.is_ending = True
        self._login.abandon(reason)

    # Watchers.

    def join(self, watcher: LoginWatcher) -> None:
        if watcher not in self._watchers and not self.is_over:
            self._watchers[watcher] = None
            self._ask_in(watcher)

    def leave(self, watcher: LoginWatcher) -> None:
        question = self._watchers.pop(watcher, None)
        if question is not None:
            question.cancel()

    def _ask_in(self, watcher: LoginWatcher) -> None:
        if self.asked is not None and self._watchers.get(watcher) is None:
            self._watchers[watcher] = self._questions.spawn(self._question(watcher, self.asked), name=self.key.server)

    async def _question(self, watcher: LoginWatcher, asked: AskPerson) -> None:
        if not await watcher.put_question(asked, seconds=LOGIN_SECONDS):
            self.abandon(_ask_again(DECLINED))

    # Callbacks of the login (`LoginHost`).

    async def keep_login(self, state: KeptState) -> None:
        """Store the login's state. If the store fails, the login continues, but a restart loses it."""
        try:
            if isinstance(state, BrowserLogin):
                await self._register_state(state, self)
            await self._records.keep_login(self.key, state)
        except StoreError as error:
            log.warning("login_not_stored", server=self.key.server, error=str(error))

    async def keep_registration(self, registration: Registration) -> None:
        try:
            await self._records.keep_registration(self.key.principal, registration)
        except StoreError as error:
            log.warning("registration_not_stored", server=self.key.server, error=str(error))

    async def forget_registration(self, issuer: str, client_id: str) -> None:
        try:
            await self._records.forget_registration(self.key.principal, issuer, client_id)
        except StoreError as error:
            log.warning("registration_not_deleted", server=self.key.server, error=str(error))

    def ask_person(self, asked: AskPerson) -> None:
        self.asked = asked if self.link is None else replace(asked, link=self.link)
        log.info("login_required", server=self.key.server)
        self.turn.set()
        for watcher in list(self._watchers):
            self._ask_in(watcher)


def _ask_again(reason: str) -> str:
    return f"{reason}. {call_to('reconnect_server')} asks for it again"

"""One login of one principal to one server, from the demand to stored tokens; sessions that want it look on.

Whoever comes while it runs joins it. A person is asked in every session that looks on, and answers in one of them, or
only in the browser.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from emceepee.backends.oauth.client import Registration
from emceepee.backends.oauth.flow import AskPerson, AwaitingBrowser, KeptState, LoginTerms
from emceepee.backends.oauth.login import Login, LoginFailed, Sender
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.logins.login_records import LoginRecords
from emceepee.sessions.secret_records import ServerKey
from emceepee.store.store import StoreError
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog

LOGIN_SECONDS = 3600.0  # that a person has; after it, the next call begins again
DECLINED = "The login was declined"
TOO_LATE = f"Nobody logged in within {LOGIN_SECONDS / 60:g} minutes"

log = EventLog("sessions")


class LoginWatcher(Protocol):
    """A session's connection that waits for a login, and shows its question to the person."""

    async def put_question(self, asked: AskPerson, *, seconds: float) -> bool:
        """Ask the person there. False if they decline; if they never say anything, it is cancelled."""
        ...

    def on_login_ended(self, reason: str | None) -> None:
        """`reason` is why there are no tokens, if there are none."""
        ...


class RunningLogin:
    """`turn` is set once a person is asked, or it is over; `outcome` is resolved when it is: with None, or a reason."""

    def __init__(
        self,
        key: ServerKey,
        sender: Sender,
        records: LoginRecords,
        clock: Clock,
        *,
        register_state: Callable[[AwaitingBrowser, "RunningLogin"], Awaitable[None]],
    ) -> None:
        self.key, self._records, self._clock = key, records, clock
        self._register_state = register_state
        self._sender = sender
        self._login = Login(self, sender, clock)
        self._adopted: TokenSet | None = None
        self._questions = TaskOwner("login-questions")
        self._watchers: dict[LoginWatcher, asyncio.Task[None] | None] = {}
        self.asked: AskPerson | None = None
        self.is_ending = False  # whether it is decided how it ends: who wants one then waits for that, and begins anew
        self.has_distant_browser = False  # whether another process shows the browser how it ended
        self.link: str | None = None  # that begins the login, instead of the authorization server's address
        self._received: str | None = None  # the address that the browser came back with
        self.turn = asyncio.Event()
        self.outcome: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        return self.outcome.done()

    @property
    def waits_for(self) -> str:
        """Who is asked something just now."""
        return self._login.asks or "the authorization server"

    @property
    def is_wanted(self) -> bool:
        """Whether any session looks on."""
        return bool(self._watchers)

    @property
    def has_adopted(self) -> bool:
        """Whether another process has stored the tokens."""
        return self._adopted is not None

    async def run(self, kept: KeptState | None, begin: Callable[[], Awaitable[LoginTerms]]) -> TokenSet:
        """Go on with what was `kept`; if that leads nowhere, or nothing was, begin. Raises: LoginFailed."""
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
        """Everyone is told: first that it is over, then those who wait for it."""
        if self.is_over:
            return
        self.outcome.set_result(reason)
        self.turn.set()
        for watcher in list(self._watchers):
            watcher.on_login_ended(reason)
        await self._questions.close()

    def receive(self, url: str) -> str | None:
        """Return what is wrong with that address, or None if it is the one awaited. A page may be loaded twice."""
        if url == self._received and not self.is_over:
            return None
        problem = self._login.receive(url)
        if problem is None:
            self._received = url
        return problem

    def adopt(self, tokens: TokenSet) -> None:
        """Another process was quicker."""
        self._adopted = tokens
        self.abandon("another process has logged in")

    def abandon(self, reason: str) -> None:
        self.is_ending = True
        self._login.abandon(reason)

    # Who looks on.

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

    # What the login needs (`LoginHost`).

    async def keep_login(self, state: KeptState) -> None:
        """A store in trouble costs no login: it is only not known after a restart."""
        try:
            if isinstance(state, AwaitingBrowser):
                await self._register_state(state, self)
            await self._records.keep_login(self.key, state)
        except StoreError as error:
            log.warning("login_not_kept", server=self.key.server, error=str(error))

    async def keep_registration(self, registration: Registration) -> None:
        try:
            await self._records.keep_registration(self.key.principal, registration)
        except StoreError as error:
            log.warning("registration_not_kept", server=self.key.server, error=str(error))

    async def forget_registration(self, issuer: str, client_id: str) -> None:
        try:
            await self._records.forget_registration(self.key.principal, issuer, client_id)
        except StoreError as error:
            log.warning("registration_not_forgotten", server=self.key.server, error=str(error))

    def ask_person(self, asked: AskPerson) -> None:
        self.asked = asked if self.link is None else replace(asked, link=self.link)
        log.info("login_wanted", server=self.key.server)
        self.turn.set()
        for watcher in list(self._watchers):
            self._ask_in(watcher)


def _ask_again(reason: str) -> str:
    return f"{reason}. {call_to('reconnect_server')} asks for it again"

"""Runs a login: sends its requests, waits for the person, and returns tokens or raises LoginFailed."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, assert_never

from emceepee.backends.oauth.authorization import StrayRedirect, read_redirect
from emceepee.backends.oauth.discovery import begin
from emceepee.backends.oauth.flow import (
    AskPerson,
    BrowserLogin,
    BrowserReturned,
    DeviceLogin,
    ExchangeAnswered,
    ExchangeUnanswered,
    FlowEffect,
    FlowEvent,
    FlowFailed,
    FlowGranted,
    FlowState,
    ForgetRegistration,
    KeepRegistration,
    KeptState,
    LoginAbandoned,
    LoginTerms,
    LoginTimerFired,
    SendRequest,
    StartLoginTimer,
    TokenRequest,
)
from emceepee.backends.oauth.flow_step import resume, step
from emceepee.backends.oauth.metadata.well_known import origin_of
from emceepee.backends.oauth.oauth_client import Registration
from emceepee.backends.oauth.oauth_messages import OAuthRequest
from emceepee.backends.oauth.proofs import new_dpop_key
from emceepee.backends.oauth.tokens import TokenSet, TokenType
from emceepee.clock import Clock, Handle
from emceepee.telemetry.redaction import without_keys_of

NOT_WAITING = "No login is waiting for a URL. It has ended, or has not reached that step"


class LoginFailed(Exception):
    """The text gives the reason and may advise what to do. `may_try_again`: a later attempt may succeed."""

    def __init__(self, reason: str, *, may_try_again: bool = False) -> None:
        super().__init__(reason)
        self.may_try_again = may_try_again


class Sender(Protocol):
    async def send(
        self, request: OAuthRequest, *, dpop_key: str | None = None
    ) -> ExchangeAnswered | ExchangeUnanswered: ...


class LoginHost(Protocol):
    """The caller of a login: stores the state that must survive a restart, and asks the person."""

    async def keep_login(self, state: KeptState) -> None:
        """Store the state. Called before the person is asked, and before a code is redeemed."""
        ...

    async def keep_registration(self, registration: Registration) -> None: ...

    async def forget_registration(self, issuer: str, client_id: str) -> None: ...

    def ask_person(self, asked: AskPerson) -> None: ...


class Login:
    """One login, from a demand to a token. `run` it once."""

    def __init__(self, host: LoginHost, sender: Sender, clock: Clock) -> None:
        self._host, self._sender, self._clock = host, sender, clock
        self._events: asyncio.Queue[FlowEvent] = asyncio.Queue()
        self._state: FlowState | None = None
        self._timer: Handle | None = None
        self._dpop_key: str | None = None
        self.requested_origin: str | None = None
        """The origin of the request in flight, or None."""

    @property
    def is_waiting(self) -> bool:
        """Whether the login waits for a person."""
        return isinstance(self._state, BrowserLogin | DeviceLogin)

    async def run(self, start: LoginTerms | KeptState) -> TokenSet:
        """Raises: LoginFailed."""
        self._state, effects = begin(start) if isinstance(start, LoginTerms) else resume(start)
        try:
            while not isinstance(self._state, FlowGranted | FlowFailed):
                event = await self._carry_out(effects) or await self._events.get()
                before = self._state
                self._state, effects = step(before, event)
                if (kept := _state_to_store(before, self._state)) is not None:
                    await self._host.keep_login(kept)
            await self._carry_out(effects)
        finally:
            self._stop_timer()
        if isinstance(self._state, FlowFailed):
            server_url = start.server_url if isinstance(start, LoginTerms) else start.grantor.resource
            reason = without_keys_of(server_url, self._state.reason)
            raise LoginFailed(reason, may_try_again=self._state.may_try_again)
        tokens = self._state.tokens
        return replace(tokens, dpop_key=self._dpop_key if tokens.token_type is TokenType.DPOP else None)

    def receive(self, url: str) -> str | None:
        """Accept the URL that the browser was redirected to. Return the problem if it does not answer this login."""
        state = self._state
        if not isinstance(state, BrowserLogin):
            return NOT_WAITING
        outcome = read_redirect(url, state.request, state.grantor.server)
        if isinstance(outcome, StrayRedirect):
            return outcome.reason
        self._events.put_nowait(BrowserReturned(url))
        return None

    def abandon(self, reason: str) -> None:
        """Cancel the login. If a request is in flight, the login ends after that request."""
        self._events.put_nowait(LoginAbandoned(reason))

    async def _carry_out(self, effects: Sequence[FlowEffect]) -> FlowEvent | None:
        """Perform the effects. Return the outcome of the request among them, or None if there is none."""
        outcome: FlowEvent | None = None
        for effect in effects:
            match effect:
                case SendRequest():
                    outcome = await self._send(effect.request)
                case AskPerson():
                    self._host.ask_person(effect)
                case StartLoginTimer():
                    self._start_timer(effect.seconds)
                case KeepRegistration():
                    await self._host.keep_registration(effect.registration)
                case ForgetRegistration():
                    await self._host.forget_registration(effect.issuer, effect.client_id)
                case _:
                    assert_never(effect)
        return outcome

    async def _send(self, request: OAuthRequest) -> FlowEvent:
        if request.is_proven and self._dpop_key is None:
            self._dpop_key = new_dpop_key()
        self.requested_origin = origin_of(request.url)
        try:
            return await self._sender.send(request, dpop_key=self._dpop_key)
        finally:
            self.requested_origin = None

    def _start_timer(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._clock.call_later(
            seconds, lambda: self._events.put_nowait(LoginTimerFired(self._clock.now()))
        )

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _state_to_store(before: FlowState, now: FlowState) -> KeptState | None:
    """Return the new state if it must be stored, so that the person need not log in again after a restart."""
    if isinstance(now, BrowserLogin | DeviceLogin) and type(now) is not type(before):
        return now
    return now if isinstance(now, TokenRequest) and isinstance(before, BrowserLogin) else None

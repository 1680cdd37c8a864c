"""A login carried out by hand: the test's authorization server is a table of answers, and nothing is sent."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from emceepee.backends.oauth.discovery import begin
from emceepee.backends.oauth.flow import (
    AskPerson,
    BrowserReturned,
    ExchangeAnswered,
    ExchangeUnanswered,
    FlowEffect,
    FlowEvent,
    FlowState,
    LoginTerms,
    SendRequest,
)
from emceepee.backends.oauth.flow_step import step
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthRequest
from emceepee.backends.oauth.oauth_settings import OAuthSettings
from emceepee.wire.codec import encode
from support.fakes.clock import START

SERVER, ISSUER = "https://mcp.example/mcp", "https://login.example"
REDIRECT = "http://127.0.0.1:8080/oauth/callback"
OWN_REDIRECT = f"{REDIRECT}/{hashlib.sha256(ISSUER.encode()).hexdigest()[:32]}"  # of that issuer alone
RESOURCE_URL = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
ISSUER_URL = f"{ISSUER}/.well-known/oauth-authorization-server"
Reply = HttpAnswer | ExchangeUnanswered | Callable[[OAuthRequest], HttpAnswer]


def reply(status: int = 200, headers: dict[str, str] | None = None, **document: Any) -> HttpAnswer:
    return HttpAnswer(status=status, headers=headers or {}, body=encode(document))


def resource_document(**changes: Any) -> HttpAnswer:
    return reply(**{"resource": SERVER, "authorization_servers": [ISSUER]} | changes)


def issuer_document(**changes: Any) -> HttpAnswer:
    """A value of None leaves the key out."""
    document = {
        "issuer": ISSUER,
        "authorization_endpoint": f"{ISSUER}/authorize?tenant=1",
        "token_endpoint": f"{ISSUER}/token",
        "registration_endpoint": f"{ISSUER}/register",
        "revocation_endpoint": f"{ISSUER}/revoke",
        "device_authorization_endpoint": f"{ISSUER}/device",
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
    } | changes
    return reply(**{name: value for name, value in document.items() if value is not None})


def terms(settings: OAuthSettings | None = None, demand: Demand | None = None, **changes: Any) -> LoginTerms:
    given: dict[str, Any] = {"server_url": SERVER, "redirect_uri": REDIRECT, "verifier": "v" * 43, "state": "the state"}
    return LoginTerms(settings=settings or OAuthSettings(), demand=demand or Demand(), **given | changes)


@dataclass
class ScriptedLogin:
    """`replies` by address; what is not there is a 404. `sent` are the requests, `effects` all the rest, in order."""

    replies: dict[str, Reply] = field(
        default_factory=lambda: {
            RESOURCE_URL: resource_document(),
            ISSUER_URL: issuer_document(),
            f"{ISSUER}/register": reply(201, client_id="registered"),
            f"{ISSUER}/token": reply(access_token="access", token_type="bearer", expires_in=3600),
        }
    )
    now: datetime = START
    sent: list[OAuthRequest] = field(default_factory=list)
    effects: list[FlowEffect] = field(default_factory=list)

    def begin(self, given: LoginTerms) -> FlowState:
        return self._go_on(*begin(given))

    def happen(self, state: FlowState, event: FlowEvent) -> FlowState:
        return self._go_on(*step(state, event))

    def come_back(self, waiting: FlowState, /, **query: str) -> FlowState:
        """The browser, with these parameters."""
        written = "&".join(f"{name}={value}" for name, value in query.items())
        return self.happen(waiting, BrowserReturned(f"{self.asked['redirect_uri']}?{written}"))

    @property
    def asked(self) -> dict[str, str]:
        """Return the parameters of the address that the person was shown last."""
        shown = [effect for effect in self.effects if isinstance(effect, AskPerson)][-1]
        return {name: value for name, (value,) in parse_qs(urlsplit(shown.url).query).items()}

    @property
    def urls(self) -> list[str]:
        return [request.url for request in self.sent]

    @property
    def form(self) -> dict[str, str]:
        """Return the form that was sent last."""
        return dict(self.sent[-1].form)

    def pass_time(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now

    def _go_on(self, state: FlowState, effects: tuple[FlowEffect, ...]) -> FlowState:
        for effect in effects:
            if not isinstance(effect, SendRequest):
                self.effects.append(effect)
                continue
            self.sent.append(effect.request)
            found = self.replies.get(effect.request.url, HttpAnswer(status=404))
            answer = found(effect.request) if callable(found) else found
            event = answer if isinstance(answer, ExchangeUnanswered) else ExchangeAnswered(answer=answer, at=self.now)
            return self.happen(state, event)
        return state

"""The states, events, and effects of a login. `flow_step.py` has the transitions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from emceepee.backends.http1.origin import Address
from emceepee.backends.oauth.authorization import AuthorizationRequest, DeviceCode
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.metadata.metadata import ResourceMetadata, ServerMetadata
from emceepee.backends.oauth.metadata.scopes import Scopes
from emceepee.backends.oauth.oauth_client import OAuthClient, Registration
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthRequest
from emceepee.backends.oauth.oauth_settings import OAuthSettings
from emceepee.backends.oauth.tokens import TokenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTerms:
    """The input of a login. `verifier` and `state` are random values, so that the steps can be deterministic.

    `asked_before`: the scopes requested for the token that was insufficient. `pinned_issuer`: the issuer at which the
    configured client was used before.
    """

    server_url: str
    settings: OAuthSettings
    demand: Demand
    redirect_uri: str
    verifier: str = field(repr=False)
    state: str = field(repr=False)
    asked_before: Scopes = ()
    registrations: Mapping[str, Registration] = field(default_factory=dict)
    pinned_issuer: str | None = None
    own_document: str | None = None  # the URL at which emceepee serves its own client metadata document


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantor:
    """The authorization server, resource, and scopes of a token request. `is_proven`: bind the token by DPoP."""

    resource: str
    server: ServerMetadata
    scopes: Scopes
    is_proven: bool = False


# States.


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLookup:
    """Looking for the server's resource metadata, at one address after another."""

    terms: LoginTerms
    asked: str
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLookup:
    """Looking for the authorization server's metadata. `why` is the reason that the last address failed."""

    terms: LoginTerms
    resource: ResourceMetadata | None
    issuer: str
    asked: str
    left: tuple[str, ...]
    other_issuers: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistration:
    """Waiting for a dynamic registration. `bare` is the fallback without scopes, for servers that reject the scopes."""

    terms: LoginTerms
    grantor: Grantor
    bare: OAuthRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserLogin:
    """Waiting for a person to log in. The state is stored, so that the answer remains valid after a restart."""

    grantor: Grantor
    request: AuthorizationRequest
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCodeRequest:
    grantor: Grantor
    client: OAuthClient


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLogin:
    """Waiting for a person to enter a code. The state is stored. `is_polling`: a poll is in flight."""

    grantor: Grantor
    client: OAuthClient
    device: DeviceCode
    is_polling: bool = False
    nonce: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityExchange:
    """Waiting for the company's identity provider to issue a grant for the server."""

    terms: LoginTerms
    grantor: Grantor
    client: OAuthClient


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """Waiting for the token endpoint. `request` is stored for a retry with a nonce or after a restart."""

    grantor: Grantor
    client: OAuthClient
    request: OAuthRequest
    had_nonce: bool = False


@dataclass(frozen=True, slots=True)
class FlowGranted:
    tokens: TokenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFailed:
    """The login failed. `may_try_again`: a later attempt may succeed."""

    reason: str
    may_try_again: bool = False


FlowState: TypeAlias = (
    ResourceLookup
    | ServerLookup
    | ClientRegistration
    | BrowserLogin
    | DeviceCodeRequest
    | DeviceLogin
    | IdentityExchange
    | TokenRequest
    | FlowGranted
    | FlowFailed
)
KeptState: TypeAlias = BrowserLogin | DeviceLogin | TokenRequest

# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeAnswered:
    answer: HttpAnswer
    at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeUnanswered:
    """No complete answer arrived, or the request could not be sent."""

    reason: str


@dataclass(frozen=True, slots=True)
class BrowserReturned:
    """The browser reached the callback with this URL, or the person pasted the URL."""

    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginTimerFired:
    at: datetime


@dataclass(frozen=True, slots=True)
class LoginAbandoned:
    reason: str


FlowEvent: TypeAlias = ExchangeAnswered | ExchangeUnanswered | BrowserReturned | LoginTimerFired | LoginAbandoned

# Effects.


@dataclass(frozen=True, slots=True)
class SendRequest:
    """Send the request. The outcome is the event ExchangeAnswered or ExchangeUnanswered."""

    request: OAuthRequest


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Ask a person to open an address and, if there is a code, to enter it there. The state must be stored first.

    `link` redirects there from emceepee. If it is set, the person opens it instead of `url`.
    """

    url: str = field(repr=False)
    issuer: str
    user_code: str | None = None
    expires_at: datetime | None = None
    link: str | None = field(default=None, repr=False)

    @property
    def opens(self) -> str:
        """The address that the person opens."""
        return self.link or self.url

    @property
    def host(self) -> str:
        """The host of the login page."""
        return Address.of(self.url).authority

    @property
    def issuer_host(self) -> str:
        """The host of the authorization server, which receives the code."""
        return Address.of(self.issuer).authority


@dataclass(frozen=True, slots=True)
class StartLoginTimer:
    seconds: float


@dataclass(frozen=True, slots=True)
class KeepRegistration:
    registration: Registration


@dataclass(frozen=True, slots=True)
class ForgetRegistration:
    """Delete a registration that the authorization server no longer recognizes."""

    issuer: str
    client_id: str


FlowEffect: TypeAlias = SendRequest | AskPerson | StartLoginTimer | KeepRegistration | ForgetRegistration
Step: TypeAlias = tuple[FlowState, tuple[FlowEffect, ...]]

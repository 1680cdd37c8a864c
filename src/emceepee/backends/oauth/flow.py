"""The states of a login, what can happen to it, and what is to be done then. `flow_step.py` decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from emceepee.backends.http1.address import Address
from emceepee.backends.oauth.authorization import AuthorizationRequest
from emceepee.backends.oauth.client import OAuthClient, Registration
from emceepee.backends.oauth.device import DeviceCode
from emceepee.backends.oauth.exchange import HttpAnswer, OAuthRequest
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.metadata.metadata import ResourceMetadata, ServerMetadata
from emceepee.backends.oauth.metadata.scopes import Scopes
from emceepee.backends.oauth.settings import OAuthSettings
from emceepee.backends.oauth.tokens import TokenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginTerms:
    """What a login begins with. `verifier` and `state` are chance, so that the rest need not be.

    `asked_before`: the scopes of the token that did not do. `pinned_issuer`: where the configured client was used.
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
    own_document: str | None = None  # where emceepee serves its own client document, if it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Grantor:
    """Whom a token is asked of, for what, and for which scopes. `is_proven`: it is to be bound to a key."""

    resource: str
    server: ServerMetadata
    scopes: Scopes
    is_proven: bool = False


# States.


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingResource:
    """The server's own document is asked for, at one address after the other."""

    terms: LoginTerms
    asked: str
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingServer:
    """The authorization server's document is asked for. `why` is why the last address did not do."""

    terms: LoginTerms
    resource: ResourceMetadata | None
    issuer: str
    asked: str
    left: tuple[str, ...]
    other_issuers: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registering:
    """`bare` is the same without scopes, if some were named: a server may know those of others only when asked."""

    terms: LoginTerms
    grantor: Grantor
    bare: OAuthRequest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingBrowser:
    """A person is asked to log in. This is kept, so that the answer is good after a restart, too."""

    grantor: Grantor
    request: AuthorizationRequest
    url: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingForDeviceCode:
    grantor: Grantor
    client: OAuthClient


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitingDevice:
    """A person is asked to enter a code. Kept, too. `is_polling`: the question whether that is done is under way."""

    grantor: Grantor
    client: OAuthClient
    device: DeviceCode
    is_polling: bool = False
    nonce: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangingIdentity:
    """The company's identity provider is asked for a grant to the server."""

    terms: LoginTerms
    grantor: Grantor
    client: OAuthClient


@dataclass(frozen=True, slots=True, kw_only=True)
class AskingForToken:
    """`request` is what was sent, in case it has to be sent again with a nonce."""

    grantor: Grantor
    client: OAuthClient
    request: OAuthRequest
    had_nonce: bool = False


@dataclass(frozen=True, slots=True)
class Granted:
    tokens: TokenSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """`may_try_again`: it was no refusal, so later it may succeed."""

    reason: str
    may_try_again: bool = False


FlowState: TypeAlias = (
    FindingResource
    | FindingServer
    | Registering
    | AwaitingBrowser
    | AskingForDeviceCode
    | AwaitingDevice
    | ExchangingIdentity
    | AskingForToken
    | Granted
    | Failed
)
KeptState: TypeAlias = AwaitingBrowser | AwaitingDevice | AskingForToken

# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeAnswered:
    answer: HttpAnswer
    at: datetime


@dataclass(frozen=True, slots=True)
class ExchangeUnanswered:
    """No whole answer could be had."""

    reason: str


@dataclass(frozen=True, slots=True)
class BrowserReturned:
    """With that address, at our callback or pasted."""

    url: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginTimerFired:
    at: datetime


@dataclass(frozen=True, slots=True)
class Abandoned:
    reason: str


FlowEvent: TypeAlias = ExchangeAnswered | ExchangeUnanswered | BrowserReturned | LoginTimerFired | Abandoned

# Effects.


@dataclass(frozen=True, slots=True)
class Send:
    """The outcome is Answered or Unanswered."""

    request: OAuthRequest


@dataclass(frozen=True, slots=True)
class AskPerson:
    """To open an address, and to enter the code there if there is one. What the login waits in is to be kept first.

    `link` leads there by way of emceepee, and is what the person opens if it is there.
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
        """The host of the page that the person is sent to."""
        return Address.of(self.url).authority

    @property
    def issuer_host(self) -> str:
        """The host of the authorization server, which gets the code."""
        return Address.of(self.issuer).authority


@dataclass(frozen=True, slots=True)
class StartLoginTimer:
    seconds: float


@dataclass(frozen=True, slots=True)
class KeepRegistration:
    registration: Registration


@dataclass(frozen=True, slots=True)
class ForgetRegistration:
    """The authorization server does not know it any more."""

    issuer: str
    client_id: str


FlowEffect: TypeAlias = Send | AskPerson | StartLoginTimer | KeepRegistration | ForgetRegistration
Step: TypeAlias = tuple[FlowState, tuple[FlowEffect, ...]]

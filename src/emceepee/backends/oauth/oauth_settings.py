"""The configuration of logins to one server, and its form in add_server and in configuration files."""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from emceepee.backends.oauth.metadata.scopes import MOST_SCOPES, Scopes, parse_scopes

SIGNING_ALGORITHMS = frozenset(
    {"ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA"}
)
LONGEST_VALUE = 16 << 10
_WORD = re.compile(r"(?<=[a-z])[A-Z]")


class Grant(StrEnum):
    """How emceepee obtains a token."""

    AUTHORIZATION_CODE = "authorization_code"
    """A person logs in with a browser, which is redirected back to emceepee."""
    DEVICE_CODE = "device_code"
    """A person logs in with any browser, and enters a code there."""
    CLIENT_CREDENTIALS = "client_credentials"
    """emceepee has its own account."""
    JWT_BEARER = "jwt_bearer"
    """The platform gives a workload a token, which is exchanged."""
    ENTERPRISE = "enterprise"
    """The company's identity provider decides who may use the server: an ID token is exchanged there, and then here."""

    @property
    def needs_person(self) -> bool:
        return self in (Grant.AUTHORIZATION_CODE, Grant.DEVICE_CODE)


GRANT_TYPES = {
    Grant.AUTHORIZATION_CODE: "authorization_code",
    Grant.DEVICE_CODE: "urn:ietf:params:oauth:grant-type:device_code",
    Grant.CLIENT_CREDENTIALS: "client_credentials",
    Grant.JWT_BEARER: "urn:ietf:params:oauth:grant-type:jwt-bearer",
    Grant.ENTERPRISE: "urn:ietf:params:oauth:grant-type:jwt-bearer",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityProvider:
    """The provider that exchanges an ID token for a token that the server's authorization server accepts."""

    token_endpoint: str
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    id_token: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """The settings of one server. If `issuer` is set, no other authorization server may be used."""

    grant: Grant = Grant.AUTHORIZATION_CODE
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    signing_algorithm: str = "ES256"
    client_metadata_url: str | None = None
    scopes: Scopes | None = None
    issuer: str | None = None
    assertion: str | None = field(default=None, repr=False)
    identity_provider: IdentityProvider | None = None
    wants_dpop: bool = False


def _split(value: object) -> object:
    """Accept scopes as one space-separated string, as in OAuth, or as a list."""
    return list(parse_scopes(value)) if isinstance(value, str) else value


Scope = Annotated[str, Field(min_length=1, max_length=1000, pattern=r"^[\x21\x23-\x5b\x5d-\x7e]+$")]
ScopeList = Annotated[list[Scope], Field(max_length=MOST_SCOPES)]
Value = Annotated[str, Field(min_length=1, max_length=LONGEST_VALUE)]


class IdentityProviderEntry(BaseModel):
    """The company's identity provider, for the grant "enterprise"."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    token_endpoint: Value
    client_id: Value
    client_secret: Value | None = Field(None, repr=False)
    id_token: Value = Field(repr=False)


class OAuthEntry(BaseModel):
    """How emceepee logs in to a server. Without these settings, the server itself specifies its requirements."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    grant: Grant = Grant.AUTHORIZATION_CODE
    client_id: Value | None = None
    client_secret: Value | None = Field(None, repr=False)
    private_key: Value | None = Field(None, repr=False)
    signing_algorithm: str = "ES256"
    client_metadata_url: Value | None = None
    scopes: Annotated[ScopeList | None, BeforeValidator(_split)] = None
    issuer: Value | None = None
    assertion: Value | None = Field(None, repr=False)
    identity_provider: IdentityProviderEntry | None = None
    dpop: bool = False

    @model_validator(mode="before")
    @classmethod
    def _other_spelling(cls, settings: Any) -> Any:
        """Accept camelCase names such as clientId, which other programs use in their configurations."""
        if not isinstance(settings, dict):
            return settings
        return {_WORD.sub(lambda found: f"_{found[0].lower()}", str(name)): value for name, value in settings.items()}

    @model_validator(mode="after")
    def _complete(self) -> "OAuthEntry":
        if (self.client_secret or self.private_key) and not self.client_id:
            raise ValueError("client_secret and private_key need the client_id that they belong to")
        if self.client_metadata_url is not None and not self.client_metadata_url.startswith("https://"):
            raise ValueError("client_metadata_url must begin with https://")
        if self.signing_algorithm not in SIGNING_ALGORITHMS:
            raise ValueError(f"signing_algorithm must be one of {', '.join(sorted(SIGNING_ALGORITHMS))}")
        needed = {
            Grant.CLIENT_CREDENTIALS: ("client_id", self.client_id),
            Grant.JWT_BEARER: ("assertion", self.assertion),
            Grant.ENTERPRISE: ("identity_provider", self.identity_provider),
        }
        name, value = needed.get(self.grant, ("", self.grant))
        if value is None:
            raise ValueError(f"the grant {self.grant} needs {name}")
        return self

    def settings(self) -> OAuthSettings:
        provider = self.identity_provider
        return OAuthSettings(
            grant=self.grant,
            client_id=self.client_id,
            client_secret=self.client_secret,
            private_key=self.private_key,
            signing_algorithm=self.signing_algorithm,
            client_metadata_url=self.client_metadata_url,
            scopes=None if self.scopes is None else tuple(dict.fromkeys(self.scopes)),
            issuer=self.issuer,
            assertion=self.assertion,
            identity_provider=None if provider is None else IdentityProvider(**provider.model_dump()),
            wants_dpop=self.dpop,
        )


def oauth_entry_of(settings: OAuthSettings) -> OAuthEntry:
    """Return the entry that produces these settings."""
    provider = settings.identity_provider
    return OAuthEntry(
        grant=settings.grant,
        client_id=settings.client_id,
        client_secret=settings.client_secret,
        private_key=settings.private_key,
        signing_algorithm=settings.signing_algorithm,
        client_metadata_url=settings.client_metadata_url,
        scopes=None if settings.scopes is None else list(settings.scopes),
        issuer=settings.issuer,
        assertion=settings.assertion,
        identity_provider=None
        if provider is None
        else IdentityProviderEntry(
            token_endpoint=provider.token_endpoint,
            client_id=provider.client_id,
            client_secret=provider.client_secret,
            id_token=provider.id_token,
        ),
        dpop=settings.wants_dpop,
    )

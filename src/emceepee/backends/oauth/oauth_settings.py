"""The configuration of logins to one server."""

from dataclasses import dataclass, field
from enum import StrEnum

from emceepee.backends.oauth.metadata.scopes import Scopes


class Grant(StrEnum):
    """How emceepee obtains a token."""

    AUTHORIZATION_CODE = "authorization_code"
    """A person logs in with a browser, which comes back to emceepee."""
    DEVICE_CODE = "device_code"
    """A person logs in with any browser, and enters a code there."""
    CLIENT_CREDENTIALS = "client_credentials"
    """emceepee has an account of its own."""
    JWT_BEARER = "jwt_bearer"
    """A workload has a token from its platform, which is exchanged."""
    ENTERPRISE = "enterprise"
    """The company's identity provider says who may use the server: an ID token is exchanged there, then here."""

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

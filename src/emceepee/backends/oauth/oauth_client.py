"""The OAuth client identity of emceepee at an authorization server, and its dynamic registration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from emceepee.backends.oauth.metadata.metadata import Malformed, ServerMetadata, read_object
from emceepee.backends.oauth.metadata.scopes import Scopes, parse_scopes
from emceepee.backends.oauth.oauth_settings import GRANT_TYPES, Grant, OAuthSettings
from emceepee.backends.oauth.redirect_address import document_address
from emceepee.wire.codec import encode

CLIENT_NAME = "emceepee"
LONGEST_ID = 4096


class AuthMethod(StrEnum):
    """How a client authenticates at the token endpoint. The values come from the registry of RFC 7591."""

    NONE = "none"
    BASIC = "client_secret_basic"
    POST = "client_secret_post"
    PRIVATE_KEY_JWT = "private_key_jwt"


WITH_SECRET = (AuthMethod.BASIC, AuthMethod.POST)


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthClient:
    client_id: str
    client_secret: str | None = field(default=None, repr=False)
    auth_method: AuthMethod = AuthMethod.NONE
    private_key: str | None = field(default=None, repr=False)
    signing_algorithm: str = "ES256"
    is_registered: bool = False  # dynamically by emceepee, which may therefore register again


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A dynamically registered client. It is valid only at the authorization server of that issuer."""

    issuer: str
    client: OAuthClient
    redirect_uris: tuple[str, ...] = ()
    grant: Grant = Grant.AUTHORIZATION_CODE
    scopes: Scopes | None = None
    secret_expires_at: datetime | None = None

    def serves(self, *, redirect_uri: str, grant: Grant, scopes: Scopes, now: datetime) -> bool:
        """Return whether a login with these parameters can use the registration."""
        return (
            (self.secret_expires_at is None or now < self.secret_expires_at)
            and grant is self.grant
            and (grant is not Grant.AUTHORIZATION_CODE or redirect_uri in self.redirect_uris)
            and (self.scopes is None or set(scopes) <= set(self.scopes))
        )


@dataclass(frozen=True, slots=True)
class RegistrationRequest:
    """Register a client dynamically by sending `body` to `url`.

    `bare` is the same request without scopes, or None if the request names none.
    """

    url: str
    body: bytes
    bare: bytes | None = None


@dataclass(frozen=True, slots=True)
class NoClient:
    """No client is available until a person registers one by hand."""

    reason: str


Identity: TypeAlias = OAuthClient | RegistrationRequest | NoClient


def identify(
    settings: OAuthSettings,
    server: ServerMetadata,
    registrations: Mapping[str, Registration],
    *,
    redirect_uri: str,
    by_hand: str,
    own_document: str | None,
    scopes: Scopes,
    registered_scopes: Scopes,
    now: datetime,
) -> Identity:
    """Select the client for a login.

    The order of preference is a client that was registered by hand, a client metadata document, an earlier dynamic
    registration, and a new dynamic registration. `by_hand` is the redirect URI for clients that are registered by hand.
    """
    if settings.client_id is not None:
        return _configured_client(settings, settings.client_id, server)
    if server.accepts_client_documents:
        if settings.client_metadata_url is not None:
            return OAuthClient(client_id=settings.client_metadata_url)
        if own_document is not None:
            return OAuthClient(client_id=document_address(own_document, settings, server))
    known = registrations.get(server.issuer)
    if known is not None and known.serves(redirect_uri=redirect_uri, grant=settings.grant, scopes=scopes, now=now):
        return known.client
    if server.registration_endpoint is not None and settings.grant.needs_person:
        body = _registration_body(settings.grant, server, redirect_uri, registered_scopes)
        bare = _registration_body(settings.grant, server, redirect_uri, ()) if registered_scopes else None
        return RegistrationRequest(server.registration_endpoint, body, bare)
    return NoClient(
        f"The authorization server {server.issuer} registers no clients by itself. Register emceepee there by hand,"
        f" with the redirect address {by_hand}, and put client_id (and client_secret) into the server's oauth"
        " settings"
    )


def read_registration(
    body: bytes, *, issuer: str, redirect_uri: str, grant: Grant, server: ServerMetadata
) -> Registration:
    """Read the authorization server's answer to a registration. Raises: Malformed."""
    document = read_object(body)
    client_id, secret = document.get("client_id"), document.get("client_secret")
    if not isinstance(client_id, str) or not 0 < len(client_id) <= LONGEST_ID:
        raise Malformed('it has no "client_id"')
    secret = secret if isinstance(secret, str) and secret else None
    agreed = document.get("token_endpoint_auth_method")
    method = _auth_method(server, has_secret=secret is not None)
    if agreed in (AuthMethod.NONE, AuthMethod.BASIC, AuthMethod.POST):
        method = AuthMethod(agreed)
    uris = document.get("redirect_uris")
    scope = document.get("scope")
    return Registration(
        issuer=issuer,
        client=OAuthClient(client_id=client_id, client_secret=secret, auth_method=method, is_registered=True),
        redirect_uris=tuple(uri for uri in uris if isinstance(uri, str))
        if isinstance(uris, list) and uris
        else (redirect_uri,),
        grant=grant,
        scopes=parse_scopes(scope) if isinstance(scope, str) else None,
        secret_expires_at=_expiry(document.get("client_secret_expires_at")) if secret else None,
    )


def application_type(redirect_uri: str) -> str:
    """Return "native" if the redirect URI leads to this machine, else "web"."""
    host = urlsplit(redirect_uri).hostname or ""
    return "native" if host in ("localhost", "127.0.0.1", "::1") else "web"


def client_document(url: str, redirect_uris: tuple[str, ...]) -> dict[str, Any]:
    """Return the client metadata document of emceepee, to be served at `url`."""
    return {
        "client_id": url,
        "client_name": CLIENT_NAME,
        "redirect_uris": list(redirect_uris),
        "grant_types": [GRANT_TYPES[Grant.AUTHORIZATION_CODE], "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": AuthMethod.NONE.value,
        "application_type": application_type(redirect_uris[0]),
    }


def _configured_client(settings: OAuthSettings, client_id: str, server: ServerMetadata) -> OAuthClient:
    if settings.private_key is not None:
        method = AuthMethod.PRIVATE_KEY_JWT
    else:
        method = _auth_method(server, has_secret=settings.client_secret is not None)
    return OAuthClient(
        client_id=client_id,
        client_secret=settings.client_secret,
        auth_method=method,
        private_key=settings.private_key,
        signing_algorithm=settings.signing_algorithm,
    )


def _auth_method(server: ServerMetadata, *, has_secret: bool) -> AuthMethod:
    """Return the best method that both sides support.

    The default for servers without metadata about it is the secret in the Authorization header (RFC 8414).
    """
    if not has_secret:
        return AuthMethod.NONE
    supported = server.auth_methods_supported
    if supported is None:
        return AuthMethod.BASIC
    fallback = AuthMethod.NONE if AuthMethod.NONE in supported else AuthMethod.BASIC
    return next((method for method in WITH_SECRET if method in supported), fallback)


def _registration_body(grant: Grant, server: ServerMetadata, redirect_uri: str, scopes: Scopes) -> bytes:
    supported = server.auth_methods_supported
    method = AuthMethod.NONE
    if supported is not None and AuthMethod.NONE not in supported:
        method = next((each for each in WITH_SECRET if each in supported), AuthMethod.BASIC)
    document: dict[str, Any] = {
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect_uri],
        "grant_types": [GRANT_TYPES[grant], "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method.value,
        "application_type": application_type(redirect_uri),
    }
    if grant is Grant.DEVICE_CODE:
        document |= {"redirect_uris": [], "response_types": []}
    if scopes:
        document["scope"] = " ".join(scopes)
    return encode(document)


def _expiry(value: object) -> datetime | None:
    """Return the timestamp as a datetime, or None if the secret does not expire."""
    if not isinstance(value, int | float) or value <= 0:
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None

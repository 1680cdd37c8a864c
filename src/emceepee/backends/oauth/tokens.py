"""Tokens: their stored form, the time of their refresh, and the answers of a token endpoint."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from emceepee.backends.oauth.metadata.scopes import Scopes, parse_scopes
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_messages import (
    HttpAnswer,
    OAuthError,
    OAuthRequest,
    answered_object,
    error_in,
    post_form,
)

AHEAD = timedelta(seconds=60)  # how long before its expiry a token is refreshed
SHARE_AHEAD = 5  # at most one fifth of its lifetime
LONGEST_TOKEN = 64 << 10
LONGEST_LIFE = timedelta(days=3650)
TOO_MANY_REQUESTS = 429


class TokenType(StrEnum):
    BEARER = "Bearer"
    DPOP = "DPoP"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """A token, and everything needed to refresh and revoke it without fetching metadata again.

    `asked` are the requested scopes, and `scopes` are the granted scopes.
    """

    issuer: str
    resource: str
    client: OAuthClient = field(repr=False)
    token_endpoint: str
    revocation_endpoint: str | None = None
    access_token: str = field(repr=False)
    token_type: TokenType = TokenType.BEARER
    issued_at: datetime
    expires_at: datetime | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: Scopes = ()
    asked: Scopes = ()
    dpop_key: str | None = field(default=None, repr=False)

    def is_expired(self, now: datetime) -> bool:
        return self.expires_at is not None and now >= self.expires_at

    @property
    def refresh_at(self) -> datetime | None:
        """The time from which the token should be refreshed, or None if it does not expire."""
        if self.expires_at is None:
            return None
        return self.expires_at - min(AHEAD, (self.expires_at - self.issued_at) / SHARE_AHEAD)


class TokenSlot:
    """The newest tokens of one principal for one server that this process knows, or None.

    Links read it before every request, so it is a plain attribute that all links to the server share.
    """

    __slots__ = ("__weakref__", "current")

    def __init__(self, current: TokenSet | None = None) -> None:
        self.current = current


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenGrant:
    """A successful answer of a token endpoint."""

    access_token: str = field(repr=False)
    token_type: TokenType
    lives: timedelta | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scopes: Scopes | None = None


@dataclass(frozen=True, slots=True)
class GrantRejected:
    """The grant has become invalid, or never was valid: `invalid_grant`."""

    error: OAuthError


@dataclass(frozen=True, slots=True)
class TokenRefused:
    """The server permanently refuses this request. Existing tokens remain as valid as before."""

    reason: str
    error: OAuthError | None = None


@dataclass(frozen=True, slots=True)
class IssuerUnavailable:
    """The server did not answer, or reported a temporary failure. The grant may still be valid."""

    reason: str


@dataclass(frozen=True, slots=True)
class NonceRequired:
    """The request must be sent again with this nonce in the DPoP proof."""

    nonce: str


TokenOutcome: TypeAlias = TokenGrant | GrantRejected | TokenRefused | IssuerUnavailable | NonceRequired


def read_token_answer(answer: HttpAnswer) -> TokenOutcome:
    if answer.status >= 500 or answer.status == TOO_MANY_REQUESTS:
        return IssuerUnavailable(f"HTTP {answer.status}")
    error = error_in(answer)
    if error is not None:
        nonce = answer.headers.get("dpop-nonce")
        if error.code == "use_dpop_nonce" and nonce:
            return NonceRequired(nonce)
        return GrantRejected(error) if error.code == "invalid_grant" else TokenRefused(str(error), error)
    if answer.status != 200:
        return TokenRefused(f"HTTP {answer.status}")
    return _read_grant(answer)


def refresh_request(tokens: TokenSet) -> OAuthRequest | None:
    """Build the refresh request, or return None if there is no refresh token."""
    if tokens.refresh_token is None:
        return None
    return post_form(
        tokens.token_endpoint,
        {"grant_type": "refresh_token", "refresh_token": tokens.refresh_token, "resource": tokens.resource},
        client=tokens.client,
        audience=tokens.issuer,
        is_proven=tokens.dpop_key is not None,
    )


def revocation_requests(tokens: TokenSet) -> tuple[OAuthRequest, ...]:
    """Build the revocation requests (RFC 7009): first for the refresh token, then for the access token.

    Some servers revoke the access token together with the refresh token, but not all do.
    """
    if tokens.revocation_endpoint is None:
        return ()
    held = (("refresh_token", tokens.refresh_token), ("access_token", tokens.access_token))
    return tuple(
        post_form(
            tokens.revocation_endpoint,
            {"token": token, "token_type_hint": hint},
            client=tokens.client,
            audience=tokens.issuer,
        )
        for hint, token in held
        if token is not None
    )


def renewed_tokens(tokens: TokenSet, grant: TokenGrant, now: datetime) -> TokenSet:
    """Return the renewed tokens. If the server does not rotate refresh tokens, the old refresh token stays in use."""
    return replace(
        tokens,
        access_token=grant.access_token,
        token_type=grant.token_type,
        issued_at=now,
        expires_at=None if grant.lives is None else now + grant.lives,
        refresh_token=grant.refresh_token or tokens.refresh_token,
        scopes=tokens.scopes if grant.scopes is None else grant.scopes,
    )


def _read_grant(answer: HttpAnswer) -> TokenOutcome:
    document = answered_object(answer)
    if document is None:
        return TokenRefused("the answer of the token endpoint is not a JSON object")
    token, refresh = document.get("access_token"), document.get("refresh_token")
    if not _is_token(token):
        return TokenRefused("the answer of the token endpoint has no access_token that a header can carry")
    kind = str(document.get("token_type", "Bearer")).lower()
    known = {str(each).lower(): each for each in TokenType}
    if kind not in known:
        return TokenRefused("the token endpoint gave a token of a type that emceepee does not know")
    scope = document.get("scope")
    return TokenGrant(
        access_token=str(token),
        token_type=known[kind],
        lives=_duration(document.get("expires_in")),
        refresh_token=refresh if isinstance(refresh, str) and 0 < len(refresh) <= LONGEST_TOKEN else None,
        scopes=parse_scopes(scope) if isinstance(scope, str) else None,
    )


def _is_token(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TOKEN:
        return False
    return value.isascii() and value.isprintable() and " " not in value


def _duration(value: object) -> timedelta | None:
    """Return the lifetime, or None if it is missing or invalid. Some servers send the number as a string."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        value = int(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= 0:
        return None
    return LONGEST_LIFE if value > LONGEST_LIFE.total_seconds() else timedelta(seconds=value)

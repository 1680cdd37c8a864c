"""The authorization by a person: in a browser that is redirected back, or by a code (device grant, RFC 8628)."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

from emceepee.backends.oauth.metadata.metadata import ServerMetadata
from emceepee.backends.oauth.metadata.scopes import OFFLINE, Scopes
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthError, answered_object, error_in, plain
from emceepee.backends.oauth.redirect_address import digest_in_path
from emceepee.backends.oauth.tokens import IssuerUnavailable, TokenRefused

S256 = "S256"
LONGEST_REDIRECT = 16 << 10
POLL_SECONDS, SLOW_DOWN_SECONDS = 5.0, 5.0  # between polls, unless the server sets it; added after slow_down
SHORTEST_POLL, LONGEST_POLL = 1.0, 60.0
CODE_LIFE, LONGEST_CODE_LIFE = timedelta(minutes=10), timedelta(hours=1)  # the default, and the accepted maximum
LONGEST_CODE = 64
WHOLE_ADDRESS = "Paste the whole address that the browser ended at"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """The parameters of an authorization request. A redirect is valid only if it matches them."""

    client: OAuthClient
    redirect_uri: str
    resource: str
    scopes: Scopes
    verifier: str = field(repr=False)
    state: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AuthorizationCode:
    """The person granted access."""

    code: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoginDenied:
    """The person or the authorization server denied access."""

    error: OAuthError


@dataclass(frozen=True, slots=True)
class StrayRedirect:
    """The redirect does not answer this request, so the login continues to wait."""

    reason: str


@dataclass(frozen=True, slots=True)
class ForgedRedirect:
    """The redirect matches the request, but another authorization server sent it. Its code must never be redeemed."""

    reason: str


RedirectOutcome: TypeAlias = AuthorizationCode | LoginDenied | StrayRedirect | ForgedRedirect


def code_challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def authorization_url(server: ServerMetadata, request: AuthorizationRequest) -> str:
    assert server.authorization_endpoint is not None  # `discovery` has checked it
    query = {
        "response_type": "code",
        "client_id": request.client.client_id,
        "redirect_uri": request.redirect_uri,
        "code_challenge": code_challenge(request.verifier),
        "code_challenge_method": S256,
        "state": request.state,
        "resource": request.resource,
    }
    if request.scopes:
        query["scope"] = " ".join(request.scopes)
    if OFFLINE in request.scopes:
        query["prompt"] = "consent"  # OpenID Connect: servers ignore the scope without it
    parts = urlsplit(server.authorization_endpoint)
    joined = "&".join(part for part in (parts.query, urlencode(query)) if part)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, joined, ""))


def state_in(redirect_url: str) -> str | None:
    """Return the `state` parameter, which identifies the login that a redirect belongs to."""
    return _parameters(redirect_url).get("state")


def read_redirect(redirect_url: str, request: AuthorizationRequest, server: ServerMetadata) -> RedirectOutcome:
    """Classify a redirect. The issuer is checked before the error and the code are trusted (RFC 9207)."""
    found, path = _parameters(redirect_url), _path(redirect_url)
    state = found.get("state")
    if state is None:
        return StrayRedirect(f"The address has no state. {WHOLE_ADDRESS}")
    if not hmac.compare_digest(state.encode(), request.state.encode()):
        return StrayRedirect("The address belongs to another login, or to one that has ended. Begin again")
    expected = digest_in_path(_path(f"{request.redirect_uri}?"))
    if expected and not path:
        return StrayRedirect(f"The address has no path. {WHOLE_ADDRESS}")
    if digest_in_path(path) != expected:  # a proxy may change the rest of the address
        return ForgedRedirect(f"The answer came to the address of another authorization server than {server.issuer}")
    issuer = found.get("iss")
    if issuer is not None and issuer != server.issuer:
        return ForgedRedirect(f"The answer comes from {plain(issuer)}, and {server.issuer} was asked")
    if issuer is None and server.sends_issuer:
        return ForgedRedirect(
            f"The answer does not say that it comes from {server.issuer}, which says so in all its answers"
        )
    if (error := found.get("error")) is not None:
        return LoginDenied(OAuthError(plain(error), plain(found.get("error_description", ""))))
    if code := found.get("code"):
        return AuthorizationCode(code)
    return StrayRedirect(f"The address has no code. {WHOLE_ADDRESS}")


def _parameters(url: str) -> dict[str, str]:
    """Return the first value of each parameter. A pasted address may consist of the query only."""
    text = url.strip()[:LONGEST_REDIRECT]
    try:
        query = urlsplit(text).query if "?" in text else text
        return {name: values[0] for name, values in parse_qs(query, max_num_fields=100).items()}
    except ValueError:
        return {}


def _path(url: str) -> str:
    """Return the path of an address, or an empty string if the address consists of a query only."""
    text = url.strip()[:LONGEST_REDIRECT]
    try:
        return urlsplit(text).path if "?" in text else ""
    except ValueError:
        return ""


# The device authorization grant.


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """The user code shown to a person, and the device code for polling. `complete_uri` includes the user code."""

    device_code: str = field(repr=False)
    user_code: str
    verification_uri: str
    complete_uri: str | None = None
    expires_at: datetime
    interval: float = POLL_SECONDS


def read_device_answer(answer: HttpAnswer, now: datetime) -> DeviceCode | TokenRefused | IssuerUnavailable:
    if answer.status >= 500:
        return IssuerUnavailable(f"HTTP {answer.status}")
    if (error := error_in(answer)) is not None:
        return TokenRefused(str(error), error)
    document = answered_object(answer)
    if answer.status != 200 or document is None:
        return TokenRefused(f"HTTP {answer.status}")
    code, user_code = document.get("device_code"), document.get("user_code")
    address = document.get("verification_uri", document.get("verification_url"))
    if not isinstance(code, str) or not isinstance(user_code, str) or not isinstance(address, str):
        return TokenRefused("the answer has no device_code, user_code or verification_uri")
    complete = document.get("verification_uri_complete")
    return DeviceCode(
        device_code=code,
        user_code=plain(user_code)[:LONGEST_CODE],
        verification_uri=address,
        complete_uri=complete if isinstance(complete, str) else None,
        expires_at=now + _life(document.get("expires_in")),
        interval=_interval(document.get("interval")),
    )


def _life(value: object) -> timedelta:
    if not isinstance(value, int | float) or not value > 0:
        return CODE_LIFE
    return timedelta(seconds=min(value, LONGEST_CODE_LIFE.total_seconds()))


def _interval(value: object) -> float:
    if not isinstance(value, int | float) or not value > 0:
        return POLL_SECONDS
    return float(min(max(value, SHORTEST_POLL), LONGEST_POLL))

"""The token request of each grant, and the tokens in its answer."""

from datetime import datetime

from emceepee.backends.oauth.authorization import AuthorizationRequest
from emceepee.backends.oauth.device import DeviceCode
from emceepee.backends.oauth.flow import Grantor
from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthRequest, answered_object, error_in, post_form
from emceepee.backends.oauth.oauth_settings import GRANT_TYPES, Grant, IdentityProvider
from emceepee.backends.oauth.tokens import LONGEST_TOKEN, TokenGrant, TokenRefused, TokenSet, Unavailable

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


def code_request(grantor: Grantor, request: AuthorizationRequest, code: str) -> OAuthRequest:
    fields = {"code": code, "redirect_uri": request.redirect_uri, "code_verifier": request.verifier}
    return _token_request(grantor, request.client, Grant.AUTHORIZATION_CODE, fields, has_scope=False)


def client_credentials_request(grantor: Grantor, client: OAuthClient) -> OAuthRequest:
    return _token_request(grantor, client, Grant.CLIENT_CREDENTIALS, {})


def assertion_request(grantor: Grantor, client: OAuthClient, assertion: str) -> OAuthRequest:
    return _token_request(grantor, client, Grant.JWT_BEARER, {"assertion": assertion})


def device_request(grantor: Grantor, client: OAuthClient) -> OAuthRequest:
    """Build the request for a user code and a device code."""
    assert grantor.server.device_authorization_endpoint is not None  # `discovery` has checked it
    return post_form(
        grantor.server.device_authorization_endpoint,
        {"scope": _scope(grantor), "resource": grantor.resource},
        client=client,
        audience=grantor.server.issuer,
    )


def device_code_request(grantor: Grantor, client: OAuthClient, device: DeviceCode) -> OAuthRequest:
    return _token_request(grantor, client, Grant.DEVICE_CODE, {"device_code": device.device_code}, has_scope=False)


def identity_request(grantor: Grantor, provider: IdentityProvider) -> OAuthRequest:
    """Build the token exchange at the identity provider, which yields a grant for the server (RFC 8693)."""
    method = AuthMethod.NONE if provider.client_secret is None else AuthMethod.BASIC
    client = OAuthClient(client_id=provider.client_id, client_secret=provider.client_secret, auth_method=method)
    fields = {
        "grant_type": TOKEN_EXCHANGE,
        "requested_token_type": ID_JAG,
        "subject_token": provider.id_token,
        "subject_token_type": ID_TOKEN,
        "audience": grantor.server.issuer,
        "resource": grantor.resource,
        "scope": _scope(grantor),
    }
    return post_form(provider.token_endpoint, fields, client=client, audience=provider.token_endpoint)


def granted_identity(answer: HttpAnswer) -> str | TokenRefused | Unavailable:
    """Return the assertion that the identity provider issued, or why there is none."""
    if answer.status >= 500:
        return Unavailable(f"HTTP {answer.status}")
    if (error := error_in(answer)) is not None:
        return TokenRefused(str(error), error)
    document = answered_object(answer) or {}
    token = document.get("access_token")
    if answer.status != 200 or not isinstance(token, str) or not 0 < len(token) <= LONGEST_TOKEN:
        return TokenRefused(f"HTTP {answer.status} without a token")
    if document.get("issued_token_type") != ID_JAG:
        return TokenRefused("it gave a token of another type")
    return token


def tokens_of(grantor: Grantor, client: OAuthClient, grant: TokenGrant, now: datetime) -> TokenSet:
    """Build the token set. If the answer names no scopes, the requested scopes were granted (RFC 6749)."""
    return TokenSet(
        issuer=grantor.server.issuer,
        resource=grantor.resource,
        client=client,
        token_endpoint=grantor.server.token_endpoint,
        revocation_endpoint=grantor.server.revocation_endpoint,
        access_token=grant.access_token,
        token_type=grant.token_type,
        issued_at=now,
        expires_at=None if grant.lives is None else now + grant.lives,
        refresh_token=grant.refresh_token,
        scopes=grantor.scopes if grant.scopes is None else grant.scopes,
        asked=grantor.scopes,
    )


def _token_request(
    grantor: Grantor, client: OAuthClient, grant: Grant, fields: dict[str, str], *, has_scope: bool = True
) -> OAuthRequest:
    scope = _scope(grantor) if has_scope else None
    return post_form(
        grantor.server.token_endpoint,
        {"grant_type": GRANT_TYPES[grant], **fields, "resource": grantor.resource, "scope": scope},
        client=client,
        audience=grantor.server.issuer,
        is_proven=grantor.is_proven,
    )


def _scope(grantor: Grantor) -> str | None:
    return " ".join(grantor.scopes) or None

"""The second part of a login: request the token, with or without a person, and read the token endpoint's answer."""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from emceepee.backends.oauth.authorization import (
    SLOW_DOWN_SECONDS,
    AuthorizationCode,
    AuthorizationRequest,
    DeviceCode,
    ForgedRedirect,
    LoginDenied,
    StrayRedirect,
    authorization_url,
    read_device_answer,
    read_redirect,
)
from emceepee.backends.oauth.flow import (
    AskPerson,
    BrowserLogin,
    DeviceCodeRequest,
    DeviceLogin,
    FlowFailed,
    FlowGranted,
    ForgetRegistration,
    Grantor,
    IdentityExchange,
    LoginTerms,
    SendRequest,
    StartLoginTimer,
    Step,
    TokenRequest,
)
from emceepee.backends.oauth.metadata.well_known import is_openable, is_trustworthy
from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthRequest, answered_object, error_in, post_form
from emceepee.backends.oauth.oauth_settings import GRANT_TYPES, Grant, IdentityProvider
from emceepee.backends.oauth.redirect_address import redirect_address
from emceepee.backends.oauth.tokens import (
    LONGEST_TOKEN,
    GrantRejected,
    IssuerUnavailable,
    NonceRequired,
    TokenGrant,
    TokenRefused,
    TokenSet,
    read_token_answer,
)

TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
INVALID_CLIENT = ("invalid_client", "unauthorized_client")


def start_token_request(terms: LoginTerms, grantor: Grantor, client: OAuthClient) -> Step:
    match terms.settings.grant:
        case Grant.AUTHORIZATION_CODE:
            return _start_browser_request(terms, grantor, client)
        case Grant.DEVICE_CODE:
            return DeviceCodeRequest(grantor=grantor, client=client), (SendRequest(device_request(grantor, client)),)
        case Grant.CLIENT_CREDENTIALS:
            return _send_for_token(grantor, client, client_credentials_request(grantor, client))
        case Grant.JWT_BEARER:
            if terms.settings.assertion is None:
                return fail("The grant jwt_bearer needs an assertion in the server's oauth settings")
            return _send_for_token(grantor, client, assertion_request(grantor, client, terms.settings.assertion))
        case Grant.ENTERPRISE:
            if (provider := terms.settings.identity_provider) is None:
                return fail("The grant enterprise needs an identity provider in the server's oauth settings")
            if not is_trustworthy(provider.token_endpoint, terms.server_url):
                return fail("The token_endpoint of the identity provider is not at an https address")
            state = IdentityExchange(terms=terms, grantor=grantor, client=client)
            return state, (SendRequest(identity_request(grantor, provider)),)
        case _:
            assert_never(terms.settings.grant)


def _start_browser_request(terms: LoginTerms, grantor: Grantor, client: OAuthClient) -> Step:
    request = AuthorizationRequest(
        client=client,
        redirect_uri=redirect_address(terms.redirect_uri, terms.settings, grantor.server),
        resource=grantor.resource,
        scopes=grantor.scopes,
        verifier=terms.verifier,
        state=terms.state,
    )
    url = authorization_url(grantor.server, request)
    waiting = BrowserLogin(grantor=grantor, request=request, url=url)
    return waiting, (person_prompt(waiting),)


def handle_redirect(state: BrowserLogin, url: str) -> Step:
    request, grantor = state.request, state.grantor
    match outcome := read_redirect(url, request, grantor.server):
        case AuthorizationCode():
            return _send_for_token(grantor, request.client, code_request(grantor, request, outcome.code))
        case LoginDenied():
            return fail(f"The login was refused: {outcome.error}")
        case ForgedRedirect():
            return fail(f"{outcome.reason}. The login was not used. Begin again, and inform the server's operator")
        case StrayRedirect():
            return state, ()  # anyone can send a stray request, so it must not end the login
        case _:
            assert_never(outcome)


def handle_device_code(state: DeviceCodeRequest, answer: HttpAnswer, now: datetime) -> Step:
    found = read_device_answer(answer, now)
    issuer = state.grantor.server.issuer
    match found:
        case IssuerUnavailable():
            return unreachable(issuer, found.reason)
        case TokenRefused():
            return _refuse(state.grantor, state.client, found)
        case DeviceCode():
            if not is_openable(found.verification_uri, issuer):
                return fail(f"{issuer} wants the code to be entered at an address that is not https")
            waiting = DeviceLogin(grantor=state.grantor, client=state.client, device=found)
            return waiting, (person_prompt(waiting), StartLoginTimer(found.interval))
        case _:
            assert_never(found)


def person_prompt(state: BrowserLogin | DeviceLogin) -> AskPerson:
    """Return the prompt for the person while the login waits in this state."""
    if isinstance(state, BrowserLogin):
        return AskPerson(state.url, state.grantor.server.issuer)
    device, issuer = state.device, state.grantor.server.issuer
    complete = device.complete_uri
    url = complete if complete and is_openable(complete, issuer) else device.verification_uri
    return AskPerson(url, issuer, device.user_code, device.expires_at)


def poll(state: DeviceLogin, now: datetime) -> Step:
    if state.is_polling:
        return state, ()
    if now >= state.device.expires_at:
        return FlowFailed(reason="The code was not entered in time. Begin again", may_try_again=True), ()
    request = device_code_request(state.grantor, state.client, state.device)
    return replace(state, is_polling=True), (SendRequest(request.with_nonce(state.nonce) if state.nonce else request),)


def handle_poll(state: DeviceLogin, answer: HttpAnswer, now: datetime) -> Step:
    waiting = replace(state, is_polling=False)
    match outcome := read_token_answer(answer):
        case TokenGrant():
            return FlowGranted(tokens_of(state.grantor, state.client, outcome, now)), ()
        case IssuerUnavailable():
            return waiting, (StartLoginTimer(state.device.interval + SLOW_DOWN_SECONDS),)
        case NonceRequired() if state.nonce != outcome.nonce:
            return poll(replace(waiting, nonce=outcome.nonce), now)
    error = outcome.error if isinstance(outcome, TokenRefused | GrantRejected) else None
    match error.code if error is not None else "":
        case "authorization_pending":
            return waiting, (StartLoginTimer(state.device.interval),)
        case "slow_down":
            slower = replace(state.device, interval=state.device.interval + SLOW_DOWN_SECONDS)
            return replace(waiting, device=slower), (StartLoginTimer(slower.interval),)
        case "expired_token":
            return FlowFailed(reason="The code was not entered in time. Begin again", may_try_again=True), ()
        case "access_denied":
            return fail("The login was refused")
    reason = str(error) if error is not None else "the token endpoint's answer is invalid"
    return _refuse(state.grantor, state.client, TokenRefused(reason, error))


def handle_identity(state: IdentityExchange, answer: HttpAnswer) -> Step:
    found = granted_identity(answer)
    if isinstance(found, IssuerUnavailable):
        return unreachable("the identity provider", found.reason)
    if isinstance(found, TokenRefused):
        return fail(f"The identity provider gave no grant to this server: {found.reason}")
    return _send_for_token(state.grantor, state.client, assertion_request(state.grantor, state.client, found))


# Receiving the token.


def _send_for_token(grantor: Grantor, client: OAuthClient, request: OAuthRequest) -> Step:
    return TokenRequest(grantor=grantor, client=client, request=request), (SendRequest(request),)


def handle_token(state: TokenRequest, answer: HttpAnswer, now: datetime) -> Step:
    match outcome := read_token_answer(answer):
        case TokenGrant():
            return FlowGranted(tokens_of(state.grantor, state.client, outcome, now)), ()
        case NonceRequired() if not state.had_nonce:
            request = state.request.with_nonce(outcome.nonce)
            return replace(state, request=request, had_nonce=True), (SendRequest(request),)
        case NonceRequired():
            return fail(f"{state.grantor.server.issuer} wants one nonce after the other")
        case IssuerUnavailable():
            return unreachable(state.grantor.server.issuer, outcome.reason)
        case GrantRejected():
            return _refuse(state.grantor, state.client, TokenRefused(str(outcome.error), outcome.error))
        case TokenRefused():
            return _refuse(state.grantor, state.client, outcome)
        case _:
            assert_never(outcome)


def _refuse(grantor: Grantor, client: OAuthClient, refusal: TokenRefused) -> Step:
    issuer = grantor.server.issuer
    failed = FlowFailed(reason=f"{issuer} gave no token: {refusal.reason}")
    if client.is_registered and refusal.error is not None and refusal.error.code in INVALID_CLIENT:
        return replace(failed, may_try_again=True), (ForgetRegistration(issuer, client.client_id),)
    return failed, ()


def unreachable(who: str, reason: str) -> Step:
    return FlowFailed(reason=f"{who} cannot be asked for a login just now: {reason}", may_try_again=True), ()


def fail(reason: str) -> Step:
    return FlowFailed(reason=reason), ()


# The requests of each grant, and the values in their answers.


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


def granted_identity(answer: HttpAnswer) -> str | TokenRefused | IssuerUnavailable:
    """Return the assertion that the identity provider issued, or the reason why it issued none."""
    if answer.status >= 500:
        return IssuerUnavailable(f"HTTP {answer.status}")
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

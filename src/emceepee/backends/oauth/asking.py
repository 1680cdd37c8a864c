"""The second part of a login: request the token, with or without a person, and read the token endpoint's answer."""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from emceepee.backends.oauth.authorization import (
    AuthorizationCode,
    AuthorizationRequest,
    Denied,
    Forged,
    Stray,
    authorization_url,
    read_redirect,
)
from emceepee.backends.oauth.device import SLOWER, DeviceCode, read_device_answer
from emceepee.backends.oauth.flow import (
    AskingForDeviceCode,
    AskingForToken,
    AskPerson,
    AwaitingBrowser,
    AwaitingDevice,
    ExchangingIdentity,
    Failed,
    ForgetRegistration,
    Granted,
    Grantor,
    LoginTerms,
    Send,
    StartLoginTimer,
    Step,
)
from emceepee.backends.oauth.grants import (
    assertion_request,
    client_credentials_request,
    code_request,
    device_code_request,
    device_request,
    granted_identity,
    identity_request,
    tokens_of,
)
from emceepee.backends.oauth.metadata.well_known import is_openable, is_trustworthy
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_messages import HttpAnswer, OAuthRequest
from emceepee.backends.oauth.oauth_settings import Grant
from emceepee.backends.oauth.redirect_address import redirect_address
from emceepee.backends.oauth.tokens import (
    NonceWanted,
    Rejected,
    TokenGrant,
    TokenRefused,
    Unavailable,
    read_token_answer,
)

INVALID_CLIENT = ("invalid_client", "unauthorized_client")


def ask(terms: LoginTerms, grantor: Grantor, client: OAuthClient) -> Step:
    match terms.settings.grant:
        case Grant.AUTHORIZATION_CODE:
            return _ask_browser(terms, grantor, client)
        case Grant.DEVICE_CODE:
            return AskingForDeviceCode(grantor=grantor, client=client), (Send(device_request(grantor, client)),)
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
            state = ExchangingIdentity(terms=terms, grantor=grantor, client=client)
            return state, (Send(identity_request(grantor, provider)),)
        case _:
            assert_never(terms.settings.grant)


def _ask_browser(terms: LoginTerms, grantor: Grantor, client: OAuthClient) -> Step:
    request = AuthorizationRequest(
        client=client,
        redirect_uri=redirect_address(terms.redirect_uri, terms.settings, grantor.server),
        resource=grantor.resource,
        scopes=grantor.scopes,
        verifier=terms.verifier,
        state=terms.state,
    )
    url = authorization_url(grantor.server, request)
    waiting = AwaitingBrowser(grantor=grantor, request=request, url=url)
    return waiting, (show(waiting),)


def take_return(state: AwaitingBrowser, url: str) -> Step:
    request, grantor = state.request, state.grantor
    match outcome := read_redirect(url, request, grantor.server):
        case AuthorizationCode():
            return _send_for_token(grantor, request.client, code_request(grantor, request, outcome.code))
        case Denied():
            return fail(f"The login was refused: {outcome.error}")
        case Forged():
            return fail(f"{outcome.reason}. The login was not used. Begin again, and tell the server's operator")
        case Stray():
            return state, ()  # anyone can send a stray request, so it must not end the login
        case _:
            assert_never(outcome)


def show_code(state: AskingForDeviceCode, answer: HttpAnswer, now: datetime) -> Step:
    found = read_device_answer(answer, now)
    issuer = state.grantor.server.issuer
    match found:
        case Unavailable():
            return unreachable(issuer, found.reason)
        case TokenRefused():
            return _refuse(state.grantor, state.client, found)
        case DeviceCode():
            if not is_openable(found.verification_uri, issuer):
                return fail(f"{issuer} wants the code to be entered at an address that is not https")
            waiting = AwaitingDevice(grantor=state.grantor, client=state.client, device=found)
            return waiting, (show(waiting), StartLoginTimer(found.interval))
        case _:
            assert_never(found)


def show(state: AwaitingBrowser | AwaitingDevice) -> AskPerson:
    """Return what to ask the person while the login waits in this state."""
    if isinstance(state, AwaitingBrowser):
        return AskPerson(state.url, state.grantor.server.issuer)
    device, issuer = state.device, state.grantor.server.issuer
    complete = device.complete_uri
    url = complete if complete and is_openable(complete, issuer) else device.verification_uri
    return AskPerson(url, issuer, device.user_code, device.expires_at)


def poll(state: AwaitingDevice, now: datetime) -> Step:
    if state.is_polling:
        return state, ()
    if now >= state.device.expires_at:
        return Failed(reason="The code was not entered in time. Begin again", may_try_again=True), ()
    request = device_code_request(state.grantor, state.client, state.device)
    return replace(state, is_polling=True), (Send(request.with_nonce(state.nonce) if state.nonce else request),)


def take_poll(state: AwaitingDevice, answer: HttpAnswer, now: datetime) -> Step:
    waiting = replace(state, is_polling=False)
    match outcome := read_token_answer(answer):
        case TokenGrant():
            return Granted(tokens_of(state.grantor, state.client, outcome, now)), ()
        case Unavailable():
            return waiting, (StartLoginTimer(state.device.interval + SLOWER),)
        case NonceWanted() if state.nonce != outcome.nonce:
            return poll(replace(waiting, nonce=outcome.nonce), now)
    error = outcome.error if isinstance(outcome, TokenRefused | Rejected) else None
    match error.code if error is not None else "":
        case "authorization_pending":
            return waiting, (StartLoginTimer(state.device.interval),)
        case "slow_down":
            slower = replace(state.device, interval=state.device.interval + SLOWER)
            return replace(waiting, device=slower), (StartLoginTimer(slower.interval),)
        case "expired_token":
            return Failed(reason="The code was not entered in time. Begin again", may_try_again=True), ()
        case "access_denied":
            return fail("The login was refused")
    reason = str(error) if error is not None else "the token endpoint's answer makes no sense"
    return _refuse(state.grantor, state.client, TokenRefused(reason, error))


def exchange_identity(state: ExchangingIdentity, answer: HttpAnswer) -> Step:
    found = granted_identity(answer)
    if isinstance(found, Unavailable):
        return unreachable("the identity provider", found.reason)
    if isinstance(found, TokenRefused):
        return fail(f"The identity provider gave no grant to this server: {found.reason}")
    return _send_for_token(state.grantor, state.client, assertion_request(state.grantor, state.client, found))


# Receiving the token.


def _send_for_token(grantor: Grantor, client: OAuthClient, request: OAuthRequest) -> Step:
    return AskingForToken(grantor=grantor, client=client, request=request), (Send(request),)


def take_token(state: AskingForToken, answer: HttpAnswer, now: datetime) -> Step:
    match outcome := read_token_answer(answer):
        case TokenGrant():
            return Granted(tokens_of(state.grantor, state.client, outcome, now)), ()
        case NonceWanted() if not state.had_nonce:
            request = state.request.with_nonce(outcome.nonce)
            return replace(state, request=request, had_nonce=True), (Send(request),)
        case NonceWanted():
            return fail(f"{state.grantor.server.issuer} wants one nonce after the other")
        case Unavailable():
            return unreachable(state.grantor.server.issuer, outcome.reason)
        case Rejected():
            return _refuse(state.grantor, state.client, TokenRefused(str(outcome.error), outcome.error))
        case TokenRefused():
            return _refuse(state.grantor, state.client, outcome)
        case _:
            assert_never(outcome)


def _refuse(grantor: Grantor, client: OAuthClient, refusal: TokenRefused) -> Step:
    issuer = grantor.server.issuer
    failed = Failed(reason=f"{issuer} gave no token: {refusal.reason}")
    if client.is_registered and refusal.error is not None and refusal.error.code in INVALID_CLIENT:
        return replace(failed, may_try_again=True), (ForgetRegistration(issuer, client.client_id),)
    return failed, ()


def unreachable(who: str, reason: str) -> Step:
    return Failed(reason=f"{who} cannot be asked for a login just now: {reason}", may_try_again=True), ()


def fail(reason: str) -> Step:
    return Failed(reason=reason), ()

"""Stored logins are decoded unchanged."""

from dataclasses import replace
from datetime import timedelta

import pytest

from emceepee.backends.oauth.authorization import AuthorizationRequest, DeviceCode
from emceepee.backends.oauth.flow import BrowserLogin, DeviceLogin, Grantor, KeptState, TokenRequest
from emceepee.backends.oauth.login_codec import (
    UnreadableLogin,
    read_login,
    read_registration,
    read_tokens,
    write_login,
    write_registration,
    write_tokens,
)
from emceepee.backends.oauth.metadata.metadata import ServerMetadata
from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient, Registration
from emceepee.backends.oauth.oauth_messages import post_form
from emceepee.backends.oauth.oauth_settings import Grant
from emceepee.backends.oauth.tokens import TokenSet, TokenType
from support.fakes.clock import START

CLIENT = OAuthClient(client_id="me", client_secret="s", auth_method=AuthMethod.BASIC, is_registered=True)
GRANTOR = Grantor(
    resource="https://mcp.example/mcp",
    server=ServerMetadata(issuer="https://login.example", token_endpoint="https://login.example/token"),
    scopes=("a", "b"),
    is_proven=True,
)
REQUEST = AuthorizationRequest(
    client=CLIENT, redirect_uri="http://127.0.0.1/", resource="r", scopes=("a",), verifier="v", state="s"
)
DEVICE = DeviceCode(device_code="d", user_code="u", verification_uri="https://login.example/d", expires_at=START)
TOKENS = TokenSet(
    issuer="i",
    resource="r",
    client=CLIENT,
    token_endpoint="t",
    access_token="a",
    token_type=TokenType.DPOP,
    issued_at=START,
    expires_at=START + timedelta(microseconds=1),
    dpop_key="PEM",
    scopes=("x",),
)


@pytest.mark.parametrize(
    "state",
    [
        BrowserLogin(grantor=GRANTOR, request=REQUEST, url="https://login.example/?x"),
        DeviceLogin(grantor=GRANTOR, client=CLIENT, device=DEVICE),
        TokenRequest(
            grantor=GRANTOR,
            client=CLIENT,
            request=post_form("https://t", {"code": "c"}, client=CLIENT, audience="i", is_proven=True),
        ),
    ],
    ids=lambda state: type(state).__name__,
)
def test_a_stored_login_is_decoded_unchanged(state: KeptState) -> None:
    assert read_login(write_login(state)) == state


@pytest.mark.parametrize("tokens", [TOKENS, replace(TOKENS, expires_at=None, refresh_token="r", dpop_key=None)])
def test_stored_tokens_are_decoded_unchanged(tokens: TokenSet) -> None:
    assert read_tokens(write_tokens(tokens)) == tokens


def test_a_stored_registration_is_decoded_unchanged() -> None:
    registration = Registration(
        issuer="i", client=CLIENT, redirect_uris=("u",), grant=Grant.DEVICE_CODE, secret_expires_at=START
    )
    assert read_registration(write_registration(registration)) == registration


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"format":2,"kind":"tokens","value":{}}', b'{"format":1,"kind":"tokens","value":{}}']
)
def test_a_login_record_of_another_version_is_rejected_as_unreadable(data: bytes) -> None:
    for read in (read_tokens, read_login, read_registration):
        with pytest.raises(UnreadableLogin):
            read(data)

"""When tokens are refreshed, and how the response of a token endpoint changes the stored ones."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient
from emceepee.backends.oauth.oauth_messages import DeferredPart, HttpAnswer, OAuthError
from emceepee.backends.oauth.tokens import (
    LONGEST_LIFE,
    GrantRejected,
    IssuerUnavailable,
    NonceRequired,
    TokenGrant,
    TokenRefused,
    TokenSet,
    TokenType,
    read_token_answer,
    refresh_request,
    renewed_tokens,
    revocation_requests,
)
from support.backends.scripted_login import reply
from support.fakes.clock import START

TOKENS = TokenSet(
    issuer="https://login.example",
    resource="https://mcp.example/mcp",
    client=OAuthClient(client_id="me", client_secret="s", auth_method=AuthMethod.POST),
    token_endpoint="https://login.example/token",
    revocation_endpoint="https://login.example/revoke",
    access_token="old",
    issued_at=START,
    expires_at=START + timedelta(hours=1),
    refresh_token="refresh-1",
    scopes=("a",),
    asked=("a", "b"),
)


@pytest.mark.parametrize(("lives", "due"), [(3600, 3540), (300, 240), (100, 80), (5, 4)])
def test_a_token_is_refreshed_a_minute_early_but_never_before_most_of_its_life(lives: int, due: int) -> None:
    tokens = replace(TOKENS, expires_at=START + timedelta(seconds=lives))
    assert tokens.refresh_at == START + timedelta(seconds=due)
    assert not tokens.is_expired(START + timedelta(seconds=lives - 1))
    assert tokens.is_expired(START + timedelta(seconds=lives))


def test_a_token_without_an_expiry_is_never_due_for_renewal() -> None:
    tokens = replace(TOKENS, expires_at=None)
    assert tokens.refresh_at is None
    assert not tokens.is_expired(START + timedelta(days=10_000))


def test_a_refresh_request_names_the_resource_and_the_client() -> None:
    request = refresh_request(TOKENS)
    assert request is not None
    assert dict(request.form) == {
        "grant_type": "refresh_token",
        "refresh_token": "refresh-1",
        "resource": "https://mcp.example/mcp",
        "client_id": "me",
        "client_secret": "s",
    }
    assert refresh_request(replace(TOKENS, refresh_token=None)) is None


def test_a_refresh_of_a_bound_token_carries_a_proof() -> None:
    request = refresh_request(replace(TOKENS, dpop_key="PEM"))
    assert request is not None
    assert request.missing == frozenset({DeferredPart.PROOF})


def test_a_rotated_refresh_token_replaces_the_old_one() -> None:
    later = START + timedelta(hours=2)
    grant = TokenGrant(access_token="new", token_type=TokenType.BEARER, lives=timedelta(seconds=60))
    kept = renewed_tokens(TOKENS, grant, later)
    assert (kept.access_token, kept.refresh_token, kept.scopes) == ("new", "refresh-1", ("a",))
    assert (kept.issued_at, kept.expires_at) == (later, later + timedelta(seconds=60))
    rotated = renewed_tokens(TOKENS, replace(grant, refresh_token="refresh-2", scopes=("x",), lives=None), later)
    assert (rotated.refresh_token, rotated.scopes, rotated.expires_at) == ("refresh-2", ("x",), None)


def test_both_tokens_are_revoked_if_the_server_offers_revocation() -> None:
    sent = [dict(request.form) for request in revocation_requests(TOKENS)]
    assert [(form["token"], form["token_type_hint"]) for form in sent] == [
        ("refresh-1", "refresh_token"),
        ("old", "access_token"),
    ]
    assert revocation_requests(replace(TOKENS, revocation_endpoint=None)) == ()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            reply(400, error="invalid_grant", error_description="used"),
            GrantRejected(OAuthError("invalid_grant", "used")),
        ),
        (reply(401, error="invalid_client"), TokenRefused("invalid_client", OAuthError("invalid_client"))),
        (reply(200, error="invalid_grant"), GrantRejected(OAuthError("invalid_grant"))),
        (reply(503, error="invalid_grant"), IssuerUnavailable("HTTP 503")),
        (HttpAnswer(status=500, body=b"<html>"), IssuerUnavailable("HTTP 500")),
        (HttpAnswer(status=429), IssuerUnavailable("HTTP 429")),
        (HttpAnswer(status=404), TokenRefused("HTTP 404")),
        (HttpAnswer(status=302), TokenRefused("HTTP 302")),
        (reply(400, {"dpop-nonce": "n"}, error="use_dpop_nonce"), NonceRequired("n")),
        (reply(400, error="use_dpop_nonce"), TokenRefused("use_dpop_nonce", OAuthError("use_dpop_nonce"))),
    ],
)
def test_only_invalid_grant_counts_as_an_ended_login(answer: HttpAnswer, expected: object) -> None:
    assert read_token_answer(answer) == expected


@pytest.mark.parametrize(
    ("document", "lives"),
    [
        ({"expires_in": 60}, timedelta(seconds=60)),
        ({"expires_in": "60"}, timedelta(seconds=60)),
        ({"expires_in": 1.5}, timedelta(seconds=1.5)),
        ({"expires_in": 1e300}, LONGEST_LIFE),
        ({"expires_in": -1}, None),
        ({"expires_in": True}, None),
        ({"expires_in": "soon"}, None),
        ({}, None),
    ],
)
def test_the_lifetime_of_a_token_is_parsed_in_the_formats_that_servers_use(
    document: dict[str, Any], lives: timedelta | None
) -> None:
    found = read_token_answer(reply(access_token="a", token_type="BEARER", **document))
    assert found == TokenGrant(access_token="a", token_type=TokenType.BEARER, lives=lives)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"access_token": ""},
        {"access_token": "a b"},
        {"access_token": "a\r\nx-evil: 1"},
        {"access_token": "ü"},
        {"access_token": 5},
        {"access_token": "x" * 100_000},
        {"access_token": "a", "token_type": "mac"},
    ],
)
def test_a_token_with_characters_unfit_for_a_header_is_rejected(document: dict[str, Any]) -> None:
    assert isinstance(read_token_answer(reply(**document)), TokenRefused)


def test_an_oauth_error_description_is_shortened_to_one_line() -> None:
    found = read_token_answer(reply(400, error="invalid_grant", error_description="a\r\n\x1b[31mb" + "x" * 1000))
    assert isinstance(found, GrantRejected)
    assert found.error.description.startswith("a [31mbxx")
    assert len(found.error.description) == 200


def test_the_repr_of_a_token_set_shows_no_token() -> None:
    text = repr(replace(TOKENS, dpop_key="PEM-canary")) + repr(read_token_answer(reply(access_token="old")))
    for secret in ("old", "refresh-1", "PEM-canary", "'s'"):
        assert secret not in text

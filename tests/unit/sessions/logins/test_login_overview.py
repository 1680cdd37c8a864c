"""The overview of logins: enough to act on, without secrets."""

from datetime import timedelta
from typing import Any

import pytest

from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_settings import Grant, OAuthSettings
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget, UnusableTarget
from emceepee.sessions.logins.login_overview import LoginState, login_overview
from emceepee.sessions.secret_records import LOGIN, TOKENS, ServerKey
from support.fakes.clock import START


def tokens(**changes: Any) -> TokenSet:
    given: dict[str, Any] = {
        "issuer": "https://login.example",
        "resource": "https://gone.example/mcp",
        "client": OAuthClient(client_id="c", client_secret="hidden-1"),
        "token_endpoint": "https://login.example/token",
        "access_token": "hidden-2",
        "refresh_token": "hidden-3",
        "issued_at": START,
        "expires_at": START + timedelta(hours=1),
        "scopes": ("read",),
    }
    return TokenSet(**given | changes)


def spec(name: str, url: str = "https://a.example/mcp", **settings: Any) -> BackendSpec:
    return BackendSpec(name=name, target=HttpTarget(url=url, **settings))


def record(name: str, kind: str = TOKENS, url: str = "https://a.example/mcp") -> str:
    return ServerKey("ann", name, url).record(kind)


def test_the_login_overview_shows_a_state_for_every_server_and_no_secret() -> None:
    specs = [
        spec("held"),
        spec("over"),
        spec("asked"),
        spec("new"),
        spec("own", headers={"Authorization": "Bearer hidden-4"}),
        BackendSpec(name="program", target=StdioTarget(command="cat")),
        spec("moved", "https://elsewhere.example/mcp"),
        BackendSpec(name="broken", target=UnusableTarget(label="?", reason="it has no url")),
    ]
    held = {
        record("held"): tokens(),
        record("over"): tokens(refresh_token=None),
        record("moved"): tokens(),
    }
    views = login_overview("ann", specs, held, {record("asked", LOGIN)}, START + timedelta(hours=2))
    assert [(view.server, view.state, view.is_known) for view in views] == [
        ("held", LoginState.LOGGED_IN, True),
        ("over", LoginState.EXPIRED, True),
        ("asked", LoginState.AUTHORIZING, True),
        ("new", LoginState.LOGGED_OUT, True),
        ("own", LoginState.NO_LOGIN, True),
        ("program", LoginState.NO_LOGIN, True),
        ("moved", LoginState.LOGGED_OUT, True),
        ("broken", LoginState.UNUSABLE, True),
        ("moved", LoginState.LOGGED_IN, False),
    ]
    assert "hidden" not in repr(views)
    assert (views[0].issuer, views[0].scopes, views[0].is_renewable) == ("https://login.example", ("read",), True)


@pytest.mark.parametrize(
    ("grant", "state"),
    [
        (Grant.CLIENT_CREDENTIALS, LoginState.LOGGED_IN),
        (Grant.JWT_BEARER, LoginState.LOGGED_IN),
        (Grant.ENTERPRISE, LoginState.LOGGED_IN),
        (Grant.AUTHORIZATION_CODE, LoginState.EXPIRED),
        (Grant.DEVICE_CODE, LoginState.EXPIRED),
    ],
)
def test_a_login_without_a_person_renews_itself_without_a_refresh_token(grant: Grant, state: LoginState) -> None:
    specs = [spec("own", oauth=OAuthSettings(grant=grant, client_id="me"))]
    held = {record("own"): tokens(refresh_token=None)}
    [view] = login_overview("ann", specs, held, (), START + timedelta(hours=2))
    assert (view.state, view.is_renewable) == (state, state is LoginState.LOGGED_IN)

"""Mix-up attacks: an authorization server cannot pass off the response of another as its own."""

from typing import Any

import pytest

from emceepee.backends.oauth.flow import AskPerson, BrowserReturned, FlowFailed
from emceepee.backends.oauth.oauth_settings import OAuthSettings
from emceepee.wire.codec import decode
from support.backends.scripted_login import (
    ISSUER,
    ISSUER_URL,
    REDIRECT,
    RESOURCE_URL,
    ScriptedLogin,
    issuer_document,
    reply,
    resource_document,
    terms,
)

EVIL = "https://evil.example"
EVIL_URL = f"{EVIL}/.well-known/oauth-authorization-server"
OWN_DOCUMENT = "https://emceepee.example/oauth/client.json"


@pytest.fixture
def login() -> ScriptedLogin:
    """An honest site."""
    return ScriptedLogin()


def evil_login(**changes: Any) -> ScriptedLogin:
    """A server whose issuer names the login page of another site, and its own token endpoint."""
    document = {
        "issuer": EVIL,
        "authorization_endpoint": f"{ISSUER}/authorize",
        "registration_endpoint": f"{EVIL}/register",
        "token_endpoint": f"{EVIL}/token",
    }
    return ScriptedLogin(
        {
            RESOURCE_URL: resource_document(authorization_servers=[EVIL]),
            EVIL_URL: issuer_document(**document | changes),
            f"{EVIL}/register": reply(201, client_id="registered"),
            f"{EVIL}/token": reply(access_token="access", token_type="bearer"),
        }
    )


def test_each_issuer_that_does_not_identify_itself_gets_its_own_redirect_address(login: ScriptedLogin) -> None:
    login.begin(terms())
    evil = evil_login()
    evil.begin(terms())
    ours, theirs = login.asked["redirect_uri"], evil.asked["redirect_uri"]
    assert ours != theirs
    assert ours.startswith(f"{REDIRECT}/")
    assert theirs.startswith(f"{REDIRECT}/")
    (sent,) = [request for request in evil.sent if request.url == f"{EVIL}/register"]
    assert decode(sent.body or b"")["redirect_uris"] == [theirs]


def test_a_login_response_at_the_redirect_address_of_another_issuer_is_not_used(login: ScriptedLogin) -> None:
    """The browser was redirected to the honest site, which responds at the address of its own logins."""
    login.begin(terms())
    evil = evil_login(authorization_endpoint=f"{EVIL}/authorize")
    waiting = evil.begin(terms())
    for address in (login.asked["redirect_uri"], REDIRECT):
        failed = evil.happen(waiting, BrowserReturned(f"{address}?code=c&state=the%20state"))
        assert isinstance(failed, FlowFailed)
        assert "another authorization server" in failed.reason
    assert f"{EVIL}/token" not in evil.urls


def test_a_login_with_the_shared_redirect_address_accepts_responses_only_there(login: ScriptedLogin) -> None:
    login.begin(terms())
    evil = evil_login()
    waiting = evil.begin(terms(OAuthSettings(client_id="by-hand")))
    assert evil.asked["redirect_uri"] == REDIRECT
    failed = evil.happen(waiting, BrowserReturned(f"{login.asked['redirect_uri']}?code=c&state=the%20state"))
    assert isinstance(failed, FlowFailed)
    assert evil.urls[-1] == EVIL_URL


def test_a_pasted_query_alone_does_not_identify_the_issuer(login: ScriptedLogin) -> None:
    waiting = login.begin(terms())
    assert login.happen(waiting, BrowserReturned("code=c&state=the%20state")) == waiting


def test_an_issuer_that_names_itself_in_its_responses_uses_the_shared_redirect_address() -> None:
    evil = evil_login(authorization_response_iss_parameter_supported=True)
    waiting = evil.begin(terms())
    assert evil.asked["redirect_uri"] == REDIRECT
    for query in ("code=c&state=the%20state", f"code=c&state=the%20state&iss={ISSUER}"):
        assert isinstance(evil.happen(waiting, BrowserReturned(f"{REDIRECT}?{query}")), FlowFailed)


@pytest.mark.parametrize("by_hand", [{"client_id": "me"}, {"client_metadata_url": "https://me.example/c.json"}])
def test_a_manually_registered_client_uses_the_shared_redirect_address(
    login: ScriptedLogin, by_hand: dict[str, Any]
) -> None:
    login.replies[ISSUER_URL] = issuer_document(client_id_metadata_document_supported=True)
    login.begin(terms(OAuthSettings(**by_hand)))
    assert login.asked["redirect_uri"] == REDIRECT


def test_the_error_names_the_redirect_address_to_register_manually(login: ScriptedLogin) -> None:
    login.replies[ISSUER_URL] = issuer_document(registration_endpoint=None)
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert f"the redirect address {REDIRECT}, " in failed.reason


def test_each_issuer_that_does_not_identify_itself_gets_its_own_client_document(login: ScriptedLogin) -> None:
    """Consent that a person gave to emceepee for one issuer then does not apply to another."""
    login.replies[ISSUER_URL] = issuer_document(client_id_metadata_document_supported=True)
    login.begin(terms(own_document=OWN_DOCUMENT))
    digest = login.asked["redirect_uri"].rpartition("/")[2]
    assert login.asked["client_id"] == f"https://emceepee.example/oauth/client/{digest}.json"
    login.replies[ISSUER_URL] = issuer_document(
        client_id_metadata_document_supported=True, authorization_response_iss_parameter_supported=True
    )
    login.begin(terms(own_document=OWN_DOCUMENT))
    assert login.asked["client_id"] == OWN_DOCUMENT


def test_a_login_shows_the_person_which_issuer_it_is_for() -> None:
    evil = evil_login()
    evil.begin(terms())
    [asked] = [effect for effect in evil.effects if isinstance(effect, AskPerson)]
    assert (asked.host, asked.issuer_host) == ("login.example", "evil.example")

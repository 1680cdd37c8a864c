"""Logins from a token demand to a token, and every reason for failure."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.backends.oauth.discovery import begin
from emceepee.backends.oauth.flow import (
    AskPerson,
    BrowserLogin,
    BrowserReturned,
    DeviceLogin,
    ExchangeAnswered,
    ExchangeUnanswered,
    FlowEvent,
    FlowFailed,
    FlowGranted,
    ForgetRegistration,
    KeepRegistration,
    LoginAbandoned,
    LoginTimerFired,
    SendRequest,
    StartLoginTimer,
    TokenRequest,
)
from emceepee.backends.oauth.flow_step import resume, step
from emceepee.backends.oauth.metadata.challenge import Demand, DemandKind
from emceepee.backends.oauth.oauth_client import AuthMethod, OAuthClient, Registration
from emceepee.backends.oauth.oauth_messages import DeferredPart, HttpAnswer, OAuthRequest
from emceepee.backends.oauth.oauth_settings import Grant, IdentityProvider, OAuthSettings
from emceepee.backends.oauth.tokens import TokenSet, TokenType
from emceepee.wire.codec import decode
from support.backends.scripted_login import (
    ISSUER,
    ISSUER_URL,
    OWN_REDIRECT,
    REDIRECT,
    RESOURCE_URL,
    SERVER,
    Reply,
    ScriptedLogin,
    issuer_document,
    reply,
    resource_document,
    terms,
)
from support.fakes.clock import START

ROOT_RESOURCE_URL = "https://mcp.example/.well-known/oauth-protected-resource"
REGISTERED = OAuthClient(client_id="registered", is_registered=True)


@pytest.fixture
def login() -> ScriptedLogin:
    return ScriptedLogin()


def test_an_authorization_code_login_yields_a_token(login: ScriptedLogin) -> None:
    waiting = login.begin(terms(demand=Demand(scopes=("read",))))
    assert isinstance(waiting, BrowserLogin)
    assert login.asked == {
        "tenant": "1",
        "response_type": "code",
        "client_id": "registered",
        "redirect_uri": OWN_REDIRECT,
        "code_challenge": "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM",
        "code_challenge_method": "S256",
        "state": "the state",
        "resource": SERVER,
        "scope": "read",
    }
    done = login.come_back(waiting, code="the-code", state="the%20state")
    assert login.form == {
        "grant_type": "authorization_code",
        "code": "the-code",
        "redirect_uri": OWN_REDIRECT,
        "code_verifier": "v" * 43,
        "resource": SERVER,
        "client_id": "registered",
    }
    assert done == FlowGranted(
        TokenSet(
            issuer=ISSUER,
            resource=SERVER,
            client=REGISTERED,
            token_endpoint=f"{ISSUER}/token",
            revocation_endpoint=f"{ISSUER}/revoke",
            access_token="access",
            issued_at=START,
            expires_at=START + timedelta(hours=1),
            scopes=("read",),
            asked=("read",),
        )
    )


# Discovery.


def test_metadata_documents_are_requested_in_the_order_of_the_specification(login: ScriptedLogin) -> None:
    login.replies = {
        ROOT_RESOURCE_URL: resource_document(authorization_servers=[f"{ISSUER}/tenant"]),
        f"{ISSUER}/tenant/.well-known/openid-configuration": issuer_document(issuer=f"{ISSUER}/tenant"),
    }
    login.begin(terms(OAuthSettings(client_id="me"), Demand(resource_metadata="https://mcp.example/named")))
    assert login.urls == [
        "https://mcp.example/named",
        RESOURCE_URL,
        ROOT_RESOURCE_URL,
        f"{ISSUER}/.well-known/oauth-authorization-server/tenant",
        f"{ISSUER}/.well-known/openid-configuration/tenant",
        f"{ISSUER}/tenant/.well-known/openid-configuration",
    ]
    assert login.asked["client_id"] == "me"


def test_a_metadata_document_without_tls_is_not_requested(login: ScriptedLogin) -> None:
    login.begin(terms(demand=Demand(resource_metadata="http://mcp.example/named")))
    assert login.urls[0] == RESOURCE_URL


def test_the_resource_parameter_is_the_published_resource(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(resource="https://mcp.example")
    login.begin(terms())
    assert login.asked["resource"] == "https://mcp.example"


def test_metadata_of_another_resource_ends_the_login(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(resource="https://evil.example/mcp")
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "another resource" in failed.reason
    assert login.urls == [RESOURCE_URL]


def test_metadata_of_another_issuer_is_not_used(login: ScriptedLogin) -> None:
    login.replies[ISSUER_URL] = issuer_document(issuer="https://evil.example")
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert f"is the metadata of https://evil.example, not of {ISSUER}" in failed.reason
    assert not any("evil" in url for url in login.urls)


def test_the_next_authorization_server_is_tried_if_the_first_has_no_metadata(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(authorization_servers=["https://gone.example", ISSUER])
    assert isinstance(login.begin(terms()), BrowserLogin)
    assert "https://gone.example/.well-known/oauth-authorization-server" in login.urls


def test_an_authorization_server_with_a_stored_registration_is_tried_first(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(authorization_servers=["https://other.example", ISSUER])
    known = Registration(issuer=ISSUER, client=REGISTERED, redirect_uris=(OWN_REDIRECT,))
    login.begin(terms(registrations={ISSUER: known}))
    assert login.urls == [RESOURCE_URL, ISSUER_URL]


@pytest.mark.parametrize("pin", [{"settings": OAuthSettings(client_id="me", issuer="https://mine.example")}, {}])
def test_a_configured_client_is_used_only_with_its_own_issuer(login: ScriptedLogin, pin: dict[str, Any]) -> None:
    given = pin or {"settings": OAuthSettings(client_id="me"), "pinned_issuer": "https://mine.example"}
    failed = login.begin(terms(**given))
    assert isinstance(failed, FlowFailed)
    assert "belongs to https://mine.example" in failed.reason
    assert login.urls == [RESOURCE_URL]


def test_a_server_error_does_not_count_as_missing_metadata(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = HttpAnswer(status=503)
    assert login.begin(terms()) == FlowFailed(
        reason=f"{RESOURCE_URL} cannot be asked for a login just now: HTTP 503", may_try_again=True
    )


@pytest.mark.parametrize("trouble", [HttpAnswer(status=500), ExchangeUnanswered("no answer within 15 s")])
def test_a_login_may_be_retried_after_an_authorization_server_error(login: ScriptedLogin, trouble: Reply) -> None:
    login.replies[ISSUER_URL] = trouble
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert failed.may_try_again


def test_a_server_of_2025_03_26_has_its_oauth_endpoints_at_its_root(login: ScriptedLogin) -> None:
    login.replies = {"https://mcp.example/register": reply(201, client_id="registered")}
    waiting = login.begin(terms())
    assert isinstance(waiting, BrowserLogin)
    assert waiting.url.startswith("https://mcp.example/authorize?")
    assert login.asked["resource"] == SERVER


def test_a_server_without_logins_is_recognized_by_its_failed_registration(login: ScriptedLogin) -> None:
    login.replies = {}
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "token into its headers" in failed.reason


# Rejected servers and addresses.


@pytest.mark.parametrize("methods", [None, [], ["plain"]])
def test_a_login_without_pkce_support_is_refused(login: ScriptedLogin, methods: list[str] | None) -> None:
    login.replies[ISSUER_URL] = issuer_document(code_challenge_methods_supported=methods)
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "PKCE" in failed.reason
    assert f"{ISSUER}/register" not in login.urls


@pytest.mark.parametrize(
    "endpoint",
    [
        {"token_endpoint": "http://login.example/token"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"registration_endpoint": "http://login.example/register"},
        {"revocation_endpoint": "http://login.example/revoke"},
    ],
)
def test_oauth_endpoints_must_use_tls_if_the_server_does(login: ScriptedLogin, endpoint: dict[str, str]) -> None:
    login.replies[ISSUER_URL] = issuer_document(**endpoint)
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "not at an https address" in failed.reason


PLAIN = "http://mcp.example/mcp"
SOCKET = "unix:///run/docker.sock:/v1.43/containers/create"


@pytest.mark.parametrize(
    "name",
    [
        "token_endpoint",
        "registration_endpoint",
        "revocation_endpoint",
        "authorization_endpoint",
        "device_authorization_endpoint",
    ],
)
def test_an_oauth_endpoint_may_not_be_a_unix_socket(login: ScriptedLogin, name: str) -> None:
    """Metadata of a server without TLS may name addresses without TLS, but no other kind of address."""
    login.replies = {
        "http://mcp.example/.well-known/oauth-protected-resource/mcp": resource_document(resource=PLAIN),
        ISSUER_URL: issuer_document(**{name: SOCKET}),
    }
    failed = login.begin(terms(server_url=PLAIN))
    assert isinstance(failed, FlowFailed)
    assert f"The {name} of the authorization server" in failed.reason
    assert not any(url.startswith("unix") for url in login.urls)


def test_neither_metadata_nor_an_issuer_may_be_at_a_unix_socket(login: ScriptedLogin) -> None:
    resource_url = "http://mcp.example/.well-known/oauth-protected-resource/mcp"
    login.replies = {resource_url: resource_document(resource=PLAIN, authorization_servers=[SOCKET])}
    assert isinstance(login.begin(terms(server_url=PLAIN, demand=Demand(resource_metadata=SOCKET))), FlowFailed)
    assert login.urls == [resource_url]


def test_a_server_at_a_unix_socket_cannot_start_a_login(login: ScriptedLogin) -> None:
    failed = login.begin(terms(server_url="unix:///run/mcp.sock:/mcp"))
    assert isinstance(failed, FlowFailed)
    assert login.urls == []


@pytest.mark.parametrize("address", [SOCKET, "http://idp.example/token", "file:///etc/passwd"])
def test_an_identity_token_is_never_sent_to_an_address_without_tls(login: ScriptedLogin, address: str) -> None:
    provider = IdentityProvider(token_endpoint=address, client_id="me", id_token="secret")
    settings = OAuthSettings(client_id="me", grant=Grant.ENTERPRISE, identity_provider=provider)
    failed = login.begin(terms(settings))
    assert isinstance(failed, FlowFailed)
    assert "token_endpoint of the identity provider" in failed.reason
    assert address not in login.urls


@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "http://elsewhere.example/enter"])
def test_a_login_asks_a_person_to_open_only_secure_web_pages(login: ScriptedLogin, address: str) -> None:
    issuer = "http://login.example"
    login.replies = {
        "http://mcp.example/.well-known/oauth-protected-resource/mcp": resource_document(
            resource=PLAIN, authorization_servers=[issuer]
        ),
        f"{issuer}/.well-known/oauth-authorization-server": issuer_document(issuer=issuer),
        f"{ISSUER}/register": reply(201, client_id="registered"),
        f"{ISSUER}/device": reply(device_code="d", user_code="ABCD", verification_uri=address),
    }
    failed = login.begin(terms(OAuthSettings(grant=Grant.DEVICE_CODE), server_url=PLAIN))
    assert isinstance(failed, FlowFailed)
    assert not any(isinstance(effect, AskPerson) for effect in login.effects)


def test_an_unsupported_grant_is_named_in_the_error(login: ScriptedLogin) -> None:
    login.replies[ISSUER_URL] = issuer_document(grant_types_supported=["client_credentials"])
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "does not offer the grant authorization_code, but client_credentials" in failed.reason


# Client registration.


def test_a_client_registration_declares_its_application_type_and_scopes(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(scopes_supported=["read", "write"])
    login.begin(terms(demand=Demand(scopes=("read",))))
    (sent,) = [request for request in login.sent if request.url == f"{ISSUER}/register"]
    assert decode(sent.body or b"") == {
        "client_name": "emceepee",
        "redirect_uris": [OWN_REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": "read write",
    }
    (kept,) = [effect for effect in login.effects if isinstance(effect, KeepRegistration)]
    assert kept.registration == Registration(issuer=ISSUER, client=REGISTERED, redirect_uris=(OWN_REDIRECT,))


def test_a_hosted_emceepee_registers_as_a_web_application(login: ScriptedLogin) -> None:
    login.begin(terms(redirect_uri="https://emceepee.example/oauth/callback"))
    (sent,) = [request for request in login.sent if request.url == f"{ISSUER}/register"]
    assert decode(sent.body or b"")["application_type"] == "web"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, False),
        ({"redirect_uris": ("http://127.0.0.1:9/oauth/callback",)}, True),
        ({"secret_expires_at": START}, True),
        ({"secret_expires_at": START + timedelta(seconds=1)}, False),
        ({"scopes": ("other",)}, True),
        ({"scopes": ("read", "other")}, False),
        ({"issuer": "https://other.example"}, True),
    ],
)
def test_a_client_registration_is_reused_while_it_is_valid(
    login: ScriptedLogin, change: dict[str, Any], expected: bool
) -> None:
    known = replace(Registration(issuer=ISSUER, client=REGISTERED, redirect_uris=(OWN_REDIRECT,)), **change)
    login.begin(terms(demand=Demand(scopes=("read",)), registrations={known.issuer: known}))
    assert (f"{ISSUER}/register" in login.urls) is expected


def test_the_client_metadata_url_is_used_as_client_id_if_the_server_supports_it(login: ScriptedLogin) -> None:
    settings = OAuthSettings(client_metadata_url="https://me.example/client.json")
    login.replies[ISSUER_URL] = issuer_document(client_id_metadata_document_supported=True)
    login.begin(terms(settings))
    assert login.asked["client_id"] == "https://me.example/client.json"
    assert f"{ISSUER}/register" not in login.urls
    login.replies[ISSUER_URL] = issuer_document()
    login.begin(terms(settings))
    assert login.asked["client_id"] == "registered"


def test_a_configured_client_takes_precedence_over_metadata_and_registration(login: ScriptedLogin) -> None:
    settings = OAuthSettings(client_id="mine", client_secret="s", client_metadata_url="https://me.example/client.json")
    login.replies[ISSUER_URL] = issuer_document(client_id_metadata_document_supported=True)
    waiting = login.begin(terms(settings))
    assert login.asked["client_id"] == "mine"
    login.come_back(waiting, code="c", state="the%20state")
    assert login.sent[-1].headers["authorization"] == "Basic bWluZTpz"


def test_without_registration_the_error_explains_how_to_register_a_client(login: ScriptedLogin) -> None:
    login.replies[ISSUER_URL] = issuer_document(registration_endpoint=None)
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert REDIRECT in failed.reason
    assert "client_id" in failed.reason


def test_a_registration_refused_for_its_scopes_is_retried_without_them(login: ScriptedLogin) -> None:
    """Servers that know scopes only together with a resource reject them at the registration."""

    def register(request: OAuthRequest) -> HttpAnswer:
        if b"scope" in (request.body or b""):
            return reply(400, error="invalid_client_metadata", error_description="scope is not known")
        return reply(201, client_id="registered")

    login.replies[f"{ISSUER}/register"] = register
    waiting = login.begin(terms(OAuthSettings(scopes=("notes:read",))))
    assert isinstance(waiting, BrowserLogin)
    assert login.asked["scope"] == "notes:read"
    assert [request.url for request in login.sent].count(f"{ISSUER}/register") == 2


@pytest.mark.parametrize(
    "answer", [reply(400, error="invalid_client_metadata", error_description="no"), reply(201, client_name="x")]
)
def test_a_failed_client_registration_is_explained(login: ScriptedLogin, answer: HttpAnswer) -> None:
    login.replies[f"{ISSUER}/register"] = answer
    failed = login.begin(terms())
    assert isinstance(failed, FlowFailed)
    assert "did not register emceepee" in failed.reason


@pytest.mark.parametrize(
    ("supported", "given", "expected"),
    [
        (["none"], None, AuthMethod.NONE),
        (["client_secret_basic"], None, AuthMethod.BASIC),
        (["client_secret_post"], None, AuthMethod.POST),
        (None, None, AuthMethod.BASIC),
        (["client_secret_basic"], "client_secret_post", AuthMethod.POST),
        (["client_secret_basic"], "tls_client_auth", AuthMethod.BASIC),
    ],
)
def test_a_client_secret_is_sent_with_the_agreed_method(
    login: ScriptedLogin, supported: list[str] | None, given: str | None, expected: AuthMethod
) -> None:
    login.replies[ISSUER_URL] = issuer_document(token_endpoint_auth_methods_supported=supported)
    answer: dict[str, Any] = {"client_id": "c", "client_secret": "s"} | (
        {"token_endpoint_auth_method": given} if given else {}
    )
    login.replies[f"{ISSUER}/register"] = reply(201, **answer)
    waiting = login.begin(terms())
    assert isinstance(waiting, BrowserLogin)
    assert waiting.request.client.auth_method is expected
    login.come_back(waiting, code="c", state="the%20state")
    assert ("authorization" in login.sent[-1].headers) is (expected is AuthMethod.BASIC)
    assert ("client_secret" in login.form) is (expected is AuthMethod.POST)


# The redirect of the browser.


@pytest.mark.parametrize(
    ("advertised", "issuer", "is_good"),
    [
        (True, ISSUER, True),
        (None, ISSUER, True),
        (None, None, True),
        (True, None, False),
        (True, f"{ISSUER}/", False),
        (None, f"{ISSUER}/", False),
        (None, "https://evil.example", False),
        (False, "https://evil.example", False),
    ],
)
def test_a_login_response_is_accepted_only_from_the_expected_issuer(
    login: ScriptedLogin, advertised: bool | None, issuer: str | None, is_good: bool
) -> None:
    login.replies[ISSUER_URL] = issuer_document(authorization_response_iss_parameter_supported=advertised)
    waiting = login.begin(terms())
    query = {"code": "c", "state": "the%20state"} | ({"iss": issuer} if issuer else {})
    done = login.come_back(waiting, **query)
    assert isinstance(done, FlowGranted if is_good else FlowFailed)
    assert (f"{ISSUER}/token" in login.urls) is is_good


def test_a_login_error_is_believed_only_from_the_expected_issuer(login: ScriptedLogin) -> None:
    waiting = login.begin(terms())
    denied = login.come_back(waiting, error="access_denied", error_description="no%0Anever", state="the%20state")
    assert denied == FlowFailed(reason="The login was refused: access_denied: no never")
    forged = login.come_back(waiting, error="access_denied", state="the%20state", iss="https://evil.example")
    assert isinstance(forged, FlowFailed)
    assert "access_denied" not in forged.reason


@pytest.mark.parametrize("query", [{"code": "c"}, {"code": "c", "state": "other"}, {"state": "the%20state"}, {}])
def test_a_login_response_with_a_wrong_or_missing_state_is_ignored(login: ScriptedLogin, query: dict[str, str]) -> None:
    waiting = login.begin(terms())
    assert login.come_back(waiting, **query) == waiting


# Scopes.


def test_a_scope_step_up_requests_the_union_of_old_and_new_scopes(login: ScriptedLogin) -> None:
    login.replies[RESOURCE_URL] = resource_document(scopes_supported=["profile"])
    login.begin(terms(demand=Demand(kind=DemandKind.SCOPES, scopes=("write",)), asked_before=("read",)))
    assert login.asked["scope"] == "read write"


def test_the_scope_parameter_is_omitted_if_no_scopes_are_known(login: ScriptedLogin) -> None:
    login.begin(terms())
    assert "scope" not in login.asked


def test_offline_access_is_requested_with_consent_if_it_is_offered(login: ScriptedLogin) -> None:
    login.replies[ISSUER_URL] = issuer_document(scopes_supported=["read", "offline_access"])
    login.begin(terms(demand=Demand(scopes=("read",))))
    assert (login.asked["scope"], login.asked["prompt"]) == ("read offline_access", "consent")


# The token endpoint.


def test_a_registration_that_the_issuer_no_longer_knows_is_forgotten(login: ScriptedLogin) -> None:
    login.replies[f"{ISSUER}/token"] = reply(401, error="invalid_client")
    waiting = login.begin(terms())
    failed = login.come_back(waiting, code="c", state="the%20state")
    assert failed == FlowFailed(reason=f"{ISSUER} gave no token: invalid_client", may_try_again=True)
    assert login.effects[-1] == ForgetRegistration(ISSUER, "registered")


@pytest.mark.parametrize("trouble", [HttpAnswer(status=503), HttpAnswer(status=429), ExchangeUnanswered("reset")])
def test_a_login_may_be_retried_after_a_token_endpoint_error(login: ScriptedLogin, trouble: Reply) -> None:
    login.replies[f"{ISSUER}/token"] = trouble
    failed = login.come_back(login.begin(terms()), code="c", state="the%20state")
    assert isinstance(failed, FlowFailed)
    assert failed.may_try_again


def test_a_dpop_nonce_is_retried_only_once(login: ScriptedLogin) -> None:
    login.replies[f"{ISSUER}/token"] = reply(400, {"dpop-nonce": "n"}, error="use_dpop_nonce")
    waiting = login.begin(terms(demand=Demand(accepts_bearer=False, accepts_dpop=True)))
    failed = login.come_back(waiting, code="c", state="the%20state")
    assert isinstance(failed, FlowFailed)
    assert [request.nonce for request in login.sent if request.url.endswith("/token")] == [None, "n"]


def test_a_token_is_bound_to_a_dpop_key_if_the_server_requires_it(login: ScriptedLogin) -> None:
    def give(request: OAuthRequest) -> HttpAnswer:
        assert DeferredPart.PROOF in request.missing
        return reply(access_token="a", token_type="DPoP")

    login.replies[f"{ISSUER}/token"] = give
    waiting = login.begin(terms(demand=Demand(accepts_bearer=False, accepts_dpop=True)))
    done = login.come_back(waiting, code="c", state="the%20state")
    assert isinstance(done, FlowGranted)
    assert done.tokens.token_type is TokenType.DPOP


# Other grants.


def test_the_client_credentials_grant_needs_no_person(login: ScriptedLogin) -> None:
    settings = OAuthSettings(grant=Grant.CLIENT_CREDENTIALS, client_id="me", client_secret="s", scopes=("a", "b"))
    login.replies[ISSUER_URL] = issuer_document(code_challenge_methods_supported=None, authorization_endpoint=None)
    assert isinstance(login.begin(terms(settings)), FlowGranted)
    assert login.form == {"grant_type": "client_credentials", "resource": SERVER, "scope": "a b"}


def test_a_private_key_assertion_is_signed_for_the_issuer(login: ScriptedLogin) -> None:
    settings = OAuthSettings(grant=Grant.CLIENT_CREDENTIALS, client_id="me", private_key="PEM")
    login.begin(terms(settings))
    sent = login.sent[-1]
    assert (sent.missing, sent.audience) == (frozenset({DeferredPart.ASSERTION}), ISSUER)
    assert login.form["client_assertion_type"].endswith("jwt-bearer")


def test_a_workload_token_is_exchanged_and_a_rejected_one_ends_the_login(login: ScriptedLogin) -> None:
    settings = OAuthSettings(grant=Grant.JWT_BEARER, client_id="me", assertion="the.jwt")
    assert isinstance(login.begin(terms(settings)), FlowGranted)
    assert login.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "the.jwt",
        "resource": SERVER,
        "client_id": "me",
    }
    login.replies[f"{ISSUER}/token"] = reply(400, error="invalid_grant")
    before = len(login.sent)
    assert isinstance(login.begin(terms(settings)), FlowFailed)
    assert len(login.sent) == before + 3


def test_the_enterprise_grant_asks_the_identity_provider_first(login: ScriptedLogin) -> None:
    provider = IdentityProvider(token_endpoint="https://idp.example/token", client_id="there", id_token="id")
    settings = OAuthSettings(
        grant=Grant.ENTERPRISE, client_id="me", client_secret="s", identity_provider=provider, scopes=("a",)
    )
    login.replies["https://idp.example/token"] = reply(
        access_token="jag", issued_token_type="urn:ietf:params:oauth:token-type:id-jag", token_type="N_A"
    )
    assert isinstance(login.begin(terms(settings)), FlowGranted)
    exchanged, taken = login.sent[-2:]
    assert dict(exchanged.form) == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": "urn:ietf:params:oauth:token-type:id-jag",
        "subject_token": "id",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": ISSUER,
        "resource": SERVER,
        "scope": "a",
        "client_id": "there",
    }
    assert dict(taken.form)["assertion"] == "jag"


# Device codes.


DEVICE: dict[str, Any] = {
    "device_code": "secret",
    "user_code": "ABCD-EFGH",
    "verification_uri": f"{ISSUER}/enter",
    "verification_uri_complete": f"{ISSUER}/enter?code=ABCD-EFGH",
    "expires_in": 60,
    "interval": 2,
}


def begin_device(login: ScriptedLogin, **changes: Any) -> DeviceLogin:
    login.replies[f"{ISSUER}/device"] = reply(**DEVICE | changes)
    waiting = login.begin(terms(OAuthSettings(grant=Grant.DEVICE_CODE)))
    assert isinstance(waiting, DeviceLogin)
    return waiting


def test_a_device_code_login_asks_the_person_to_enter_a_code(login: ScriptedLogin) -> None:
    waiting = begin_device(login)
    assert login.effects[-2:] == [
        AskPerson(f"{ISSUER}/enter?code=ABCD-EFGH", ISSUER, "ABCD-EFGH", START + timedelta(seconds=60)),
        StartLoginTimer(2),
    ]
    login.replies[f"{ISSUER}/token"] = reply(400, error="authorization_pending")
    waiting = login.happen(waiting, LoginTimerFired(login.pass_time(2)))  # type: ignore[assignment]  # it still waits
    assert login.effects[-1] == StartLoginTimer(2)
    login.replies[f"{ISSUER}/token"] = reply(400, error="slow_down")
    waiting = login.happen(waiting, LoginTimerFired(login.pass_time(2)))  # type: ignore[assignment]  # it still waits
    assert login.effects[-1] == StartLoginTimer(7)
    login.replies[f"{ISSUER}/token"] = HttpAnswer(status=502)
    waiting = login.happen(waiting, LoginTimerFired(login.pass_time(7)))  # type: ignore[assignment]  # it still waits
    assert login.effects[-1] == StartLoginTimer(12)
    login.replies[f"{ISSUER}/token"] = reply(access_token="a", token_type="bearer")
    assert isinstance(login.happen(waiting, LoginTimerFired(login.pass_time(12))), FlowGranted)
    assert login.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": "secret",
        "resource": SERVER,
        "client_id": "registered",
    }


@pytest.mark.parametrize(
    ("error", "may_again"), [("expired_token", True), ("access_denied", False), ("invalid_grant", False)]
)
def test_a_rejected_or_expired_device_code_ends_the_login(login: ScriptedLogin, error: str, may_again: bool) -> None:
    waiting = begin_device(login)
    login.replies[f"{ISSUER}/token"] = reply(400, error=error)
    failed = login.happen(waiting, LoginTimerFired(login.pass_time(2)))
    assert isinstance(failed, FlowFailed)
    assert failed.may_try_again is may_again


def test_a_device_code_is_not_polled_after_it_expires(login: ScriptedLogin) -> None:
    waiting = begin_device(login)
    before = len(login.sent)
    assert isinstance(login.happen(waiting, LoginTimerFired(login.pass_time(60))), FlowFailed)
    assert len(login.sent) == before


def test_a_device_code_login_never_shows_a_verification_page_without_tls(login: ScriptedLogin) -> None:
    login.replies[f"{ISSUER}/device"] = reply(**DEVICE | {"verification_uri": "http://login.example/enter"})
    assert isinstance(login.begin(terms(OAuthSettings(grant=Grant.DEVICE_CODE))), FlowFailed)


# After a restart.


def test_a_login_resumes_after_a_restart(login: ScriptedLogin) -> None:
    waiting = login.begin(terms())
    assert isinstance(waiting, BrowserLogin)
    assert resume(waiting) == (waiting, (AskPerson(waiting.url, ISSUER),))
    device = begin_device(login)
    again, effects = resume(replace(device, is_polling=True))
    assert again == device
    assert effects == tuple(login.effects[-2:])


def test_a_token_request_in_flight_at_a_restart_is_repeated_once(login: ScriptedLogin) -> None:
    waiting = login.begin(terms())
    assert isinstance(waiting, BrowserLogin)
    asking, effects = step(waiting, BrowserReturned(f"{OWN_REDIRECT}?code=c&state=the%20state"))
    assert isinstance(asking, TokenRequest)
    assert resume(asking) == (asking, effects)
    assert isinstance(effects[0], SendRequest)


# Invariants.


EVENTS: list[FlowEvent] = [
    ExchangeUnanswered("reset"),
    BrowserReturned(f"{OWN_REDIRECT}?code=c&state=the%20state"),
    LoginTimerFired(START),
    LoginAbandoned("nobody wants it"),
    *(
        ExchangeAnswered(answer=HttpAnswer(status=status, body=body), at=START)
        for status in (200, 404, 500)
        for body in (b"", b"{}")
    ),
    ExchangeAnswered(answer=resource_document(), at=START),
    ExchangeAnswered(answer=issuer_document(), at=START),
    ExchangeAnswered(answer=reply(201, client_id="c"), at=START),
    ExchangeAnswered(answer=reply(access_token="a"), at=START),
    ExchangeAnswered(answer=reply(400, error="invalid_grant"), at=START),
]


@given(st.sampled_from(list(Grant)), st.lists(st.sampled_from(EVENTS), max_size=8))
def test_a_login_has_at_most_one_request_in_flight_for_any_events_in_any_order(
    grant: Grant, events: list[FlowEvent]
) -> None:
    state, effects = begin(terms(OAuthSettings(grant=grant, client_id="c")))
    for event in events:
        assert sum(isinstance(effect, SendRequest) for effect in effects) <= 1
        if isinstance(state, FlowGranted | FlowFailed):
            assert step(state, event) == (state, ())
        state, effects = step(state, event)


def test_an_abandoned_login_ends_in_every_state(login: ScriptedLogin) -> None:
    waiting = login.begin(terms())
    assert login.happen(waiting, LoginAbandoned("nobody wants it")) == FlowFailed(reason="nobody wants it")


def test_the_repr_of_a_login_state_shows_no_secret(login: ScriptedLogin) -> None:
    login.replies[f"{ISSUER}/register"] = reply(201, client_id="c", client_secret="canary-secret")
    login.replies[f"{ISSUER}/token"] = reply(access_token="canary-access", refresh_token="canary-refresh")
    waiting = login.begin(terms(verifier="canary-verifier", state="canary-state"))
    asking, effects = step(waiting, BrowserReturned(f"{OWN_REDIRECT}?code=canary-code&state=canary-state"))
    done = login.come_back(waiting, code="canary-code", state="canary-state")
    assert isinstance(done, FlowGranted)
    for each in (waiting, asking, effects, done, login.effects, login.sent):
        assert "canary" not in repr(each)

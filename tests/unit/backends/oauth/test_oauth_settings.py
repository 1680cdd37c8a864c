"""OAuth settings of a server are read, validated, and written back unchanged."""

import pytest
from pydantic import ValidationError

from emceepee.backends.oauth.oauth_settings import Grant, OAuthEntry, OAuthSettings, oauth_entry_of
from emceepee.backends.spec import HttpTarget, ServerEntry, entry_of
from emceepee.wire.json_types import JsonObject

PROVIDER = {"token_endpoint": "https://idp.test/token", "client_id": "c", "id_token": "i"}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"client_id": "me", "client_secret": "s3cret", "scopes": "read write"},
        {"client_id": "me", "private_key": "-----", "signing_algorithm": "RS256", "grant": "client_credentials"},
        {"grant": "device_code", "scopes": [], "dpop": True, "issuer": "https://as.test"},
        {"grant": "enterprise", "identity_provider": PROVIDER},
        {"grant": "jwt_bearer", "assertion": "a.b.c"},
        {"client_metadata_url": "https://me.test/client.json"},
    ],
)
def test_oauth_settings_survive_a_round_trip_through_the_configuration(given: JsonObject) -> None:
    settings = OAuthEntry.model_validate(given).settings()
    assert oauth_entry_of(settings).settings() == settings
    spec = ServerEntry(name="one", url="http://one.test", oauth=OAuthEntry.model_validate(given)).spec()
    assert entry_of(spec).spec() == spec


def test_scopes_may_be_written_as_a_string_or_as_a_list() -> None:
    assert OAuthEntry.model_validate({"scopes": "a b a"}).settings().scopes == ("a", "b")
    assert OAuthEntry.model_validate({"scopes": ["a", "b"]}).settings().scopes == ("a", "b")
    assert OAuthEntry().settings() == OAuthSettings(grant=Grant.AUTHORIZATION_CODE)


def test_camel_case_oauth_keys_of_other_programs_are_accepted() -> None:
    given = {"clientId": "me", "clientSecret": "s"}
    assert OAuthEntry.model_validate(given) == OAuthEntry(client_id="me", client_secret="s")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"client_secret": "canary"}, "client_id"),
        ({"grant": "client_credentials", "client_secret": "canary", "client_id": ""}, "client_id"),
        ({"grant": "jwt_bearer"}, "needs assertion"),
        ({"grant": "enterprise", "client_secret": "canary", "client_id": "c"}, "needs identity_provider"),
        ({"client_metadata_url": "http://me.test/c.json"}, "https://"),
        ({"signing_algorithm": "none"}, "signing_algorithm"),
        ({"scopes": ["a b"]}, "scopes"),
        ({"client_sercet": "canary"}, "client_sercet"),
    ],
)
def test_contradictory_oauth_settings_are_rejected_without_showing_secrets(given: JsonObject, word: str) -> None:
    with pytest.raises(ValidationError, match=word) as caught:
        OAuthEntry.model_validate(given)
    assert "canary" not in str(caught.value)


def test_the_repr_of_oauth_settings_shows_no_secret() -> None:
    entry = OAuthEntry.model_validate(
        {"client_id": "me", "client_secret": "canary-1", "identity_provider": PROVIDER | {"id_token": "canary-2"}}
    )
    spec = ServerEntry(name="one", url="http://one.test", oauth=entry)
    assert "canary" not in f"{entry!r} {spec!r} {spec.spec()!r} {entry.settings()!r}"


@pytest.mark.parametrize(
    ("target", "may"),
    [
        (HttpTarget(url="http://h/mcp"), True),
        (HttpTarget(url="http://h/mcp", headers={"X-Key": "k"}), True),
        (HttpTarget(url="http://h/mcp", headers={"authorization": "Bearer t"}), False),
        (HttpTarget(url="http://me:pass@h/mcp"), False),
    ],
)
def test_a_configured_credential_disables_logins(target: HttpTarget, may: bool) -> None:
    assert target.may_log_in is may

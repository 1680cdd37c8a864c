import pytest

from emceepee.telemetry.redaction import MASK, Invitation, public_url, redacted


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-API-Key", "x-auth-token"),
        *("GITHUB_TOKEN", "access_token", "refresh-token", "client_secret", "DB_PASSWORD", "passwd", "api_key"),
        *("apikey", "AWS_SECRET_ACCESS_KEY", "credentials", "private_key", "token"),
        *("accessToken", "clientSecret", "apiKey", "userPassword", "authTokenValue", "privateKey"),
    ],
)
def test_a_value_under_a_telling_name_is_masked(name: str) -> None:
    assert redacted({name: "s3cret"}) == {name: MASK}
    assert redacted("s3cret", name=name) == MASK


@pytest.mark.parametrize("name", ["server", "tool", "tokenizer", "maxTokens", "secretary", "key", "author", "status"])
def test_a_value_under_a_harmless_name_is_kept(name: str) -> None:
    assert redacted({name: "value"}) == {name: "value"}


def test_secrets_are_masked_however_deep_they_lie() -> None:
    value = {"servers": [{"headers": {"Authorization": "Bearer x", "Accept": "*/*"}}, ("http://u:p@h/",)], "n": 1}
    assert redacted(value) == {
        "servers": [{"headers": {"Authorization": MASK, "Accept": "*/*"}}, ["http://h/"]],
        "n": 1,
    }


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/mcp", "https://host/mcp"),
        ("https://user:pass@host:8080/mcp", "https://host:8080/mcp"),
        ("https://user:p@ss@host/mcp", "https://host/mcp"),
        ("https://token@host", "https://host"),
        ("https://host/mcp?key=s3cret", "https://host/mcp?key=***"),
        ("https://host/mcp?a=1&b=2#top", "https://host/mcp?a=***&b=***#top"),
        ("https://u:p@host/?a=b=c&d", "https://host/?a=***&d"),
        ("https://host/@scope/package", "https://host/@scope/package"),
        ("https://host/?mail=a@b.c", "https://host/?mail=***"),
        ("see https://u:p@host/x, and a@b.c", "see https://host/x, and a@b.c"),
    ],
)
def test_an_address_is_shown_without_user_password_and_query_values(url: str, shown: str) -> None:
    assert public_url(url) == shown
    assert redacted(url) == shown


def test_other_values_stay_what_they_are() -> None:
    assert redacted({"a": None, "b": 1.5, "c": True, "d": "text"}) == {"a": None, "b": 1.5, "c": True, "d": "text"}


def test_an_invitation_is_shown_whole_unless_its_name_says_that_it_is_a_secret() -> None:
    link = Invitation("http://127.0.0.1:8080/console/login?code=abc")
    assert redacted({"link": link, "token": link}) == {"link": str(link), "token": MASK}


def test_a_text_that_is_json_is_looked_into() -> None:
    text = '{"api_key":"s3cret","page":3,"next":[{"token":"s3cret"}]}'
    assert redacted({"text": text}) == {"text": '{"api_key":"***","page":3,"next":[{"token":"***"}]}'}
    for other in ("{token", "[secret] of the sea", '{"page":3}'):
        assert redacted(other) == other

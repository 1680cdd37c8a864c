import time

import pytest

from emceepee.telemetry.redaction import (
    LOOKED_AT,
    MASK,
    masked_url,
    public_place,
    public_start,
    public_url,
    redacted,
    without_keys_of,
)

SIZE = 64_000


@pytest.mark.parametrize(
    "name",
    [
        *("Authorization", "authorization", "Proxy-Authorization", "Cookie", "Set-Cookie", "X-API-Key", "x-auth-token"),
        *("GITHUB_TOKEN", "access_token", "refresh-token", "client_secret", "DB_PASSWORD", "passwd", "api_key"),
        *("apikey", "AWS_SECRET_ACCESS_KEY", "credentials", "private_key", "token"),
        *("accessToken", "clientSecret", "apiKey", "userPassword", "authTokenValue", "privateKey"),
    ],
)
def test_a_value_under_a_sensitive_name_is_masked(name: str) -> None:
    assert redacted({name: "s3cret"}) == {name: MASK}
    assert redacted("s3cret", name=name) == MASK


@pytest.mark.parametrize("name", ["server", "tool", "tokenizer", "maxTokens", "secretary", "key", "author", "status"])
def test_a_value_under_a_harmless_name_is_not_masked(name: str) -> None:
    assert redacted({name: "value"}) == {name: "value"}


def test_deeply_nested_secrets_are_masked() -> None:
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
def test_a_url_is_shown_without_user_password_and_query_values(url: str, shown: str) -> None:
    assert public_url(url) == shown
    assert redacted(url) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/mcp", "https://host/mcp"),
        ("https://user:p@ss@host:8080/mcp?key=s3cret", "https://***@host:8080/mcp?key=***"),
        ("postgresql://u:p@db and redis://:p@db", "postgresql://***@db and redis://***@db"),
    ],
)
def test_a_url_can_show_masked_credentials(url: str, shown: str) -> None:
    assert masked_url(url) == shown
    assert redacted({"a": [url]}, address=masked_url) == {"a": [shown]}


def test_redaction_leaves_other_values_unchanged() -> None:
    assert redacted({"a": None, "b": 1.5, "c": True, "d": "text"}) == {"a": None, "b": 1.5, "c": True, "d": "text"}


def test_secrets_in_json_text_are_masked() -> None:
    text = '{"api_key":"s3cret","page":3,"next":[{"token":"s3cret"}]}'
    assert redacted({"text": text}) == {"text": '{"api_key":"***","page":3,"next":[{"token":"***"}]}'}
    for other in ("{token", "[secret] of the sea", '{"page":3}', '{ "a": "no secret" }'):
        assert redacted(other) == other


@pytest.mark.parametrize(
    "text",
    [
        *("?" * SIZE, "&" * SIZE, "?&" * (SIZE // 2), "?a" * (SIZE // 2), "=" * SIZE, "@" * SIZE, "?" + "a" * SIZE),
        *("://" * (SIZE // 3), "://a" * (SIZE // 4), ":/" * (SIZE // 2), "://" + "a" * SIZE, "://" + "@" * SIZE),
        *("token" * (SIZE // 5), "aA" * (SIZE // 2), "token-" * (SIZE // 6)),
        *(
            '{"token' + '"' * SIZE,
            '{"token":"' + '\\"' * (SIZE // 2),
            '{"token"' + ":" * SIZE,
            '["token"' + '"a' * SIZE,
        ),
        *('{"' + "token" * (SIZE // 5), '{"token' + '":"' * (SIZE // 3), '{"token' + "\\" * SIZE),
    ],
    ids=lambda text: text[:14],
)
def test_redaction_takes_time_linear_in_the_text(text: str) -> None:
    began = time.process_time()
    redacted({text: text, "url": "https://h/" + text})
    public_url(text)
    took = time.process_time() - began
    assert took < 2, f"{len(text)} characters took {took:.2f} s"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1,"token":"s3cret","b":"cut he', '{"a":1,"token":"***","b":"cut he'),
        ('{"token": "s3c\\"ret", "n": 2', '{"token": "***", "n": 2'),
        ('[{"apiKey":"s3cret', '[{"apiKey":"***"'),
        ('{"password":12345,"user":"me"', '{"password":"***","user":"me"'),
        ('{"tokenizer":"bpe","token', '{"tokenizer":"bpe","token'),
        ('{"a":{"b":["x",{"token":"s3cret"},"y', '{"a":{"b":["x",{"token":"***"},"y'),
        ('{"secret": {"deep": "s3cret"}, "x', '{"secret": "***"'),
        ('{"secret": ["s3cret", "s3cret2"], "x', '{"secret": "***"'),
    ],
)
def test_secrets_in_truncated_json_are_masked(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://ann:pw@host.test/a?key=1", "https://host.test/a?"),
        (f"https://ann:{'pw' * LOOKED_AT}@host.test/a", "https://"),
        (f"see https://a.test/ and ftp://ann:{'pw' * LOOKED_AT}@host.test", "see https://a.test/ "),
        (f"https://host.test/{'a' * LOOKED_AT}", "https://host.test/aa"),
        (f"https://host.test/?k={'s' * LOOKED_AT}&l=t", "https://host.test/?k"),
    ],
)
def test_the_start_of_a_long_url_contains_no_secrets(text: str, shown: str) -> None:
    """Even if the end of its password lies behind the scanned part."""
    assert public_start(text, 20) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8080/mcp", "https://host:8080/mcp"),
        ("https://host", "https://host"),
        ("https://host/", "https://host/"),
        (
            "https://u:p@host/streamable-http-endpoint/v2/mcp?key=1#s3cret",
            "https://host/streamable-http-endpoint/v2/mcp?key=***",
        ),
        ("https://host/api/mcp/s/NjQ1ZDE2MGUtY2I1/mcp", "https://host/api/mcp/s/***/mcp"),
        ("https://host/550e8400-e29b-41d4-a716-446655440000/sse", "https://host/***/sse"),
        ("https://host/AbcdefGhijklMnopq", "https://host/***"),
        ("https://host/token/abc/mcp", "https://host/token/***/mcp"),
        ("https://host/" + "a" * 61, "https://host/***"),
        ("https://host/mcp#s3cret", "https://host/mcp"),
        ("unix:///run/user/1000/mcp-server-2026.sock", "unix:///run/user/1000/mcp-server-2026.sock"),
    ],
)
def test_the_address_of_a_server_is_shown_without_path_segments_that_may_be_keys(url: str, shown: str) -> None:
    assert public_place(url) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://host/.well-known/x/s/kd8f7a6b5c4e3d2f/mcp failed", "https://host/.well-known/x/s/***/mcp failed"),
        ("it is for https://host/kd8f7a6b5c4e3d2f: no", "it is for https://host/***: no"),
        ("(https://host/kd8f7a6b5c4e3d2f)", "(https://host/***)"),
        ("https://host/kd8f7a6b5c4e3d2fg", "https://host/kd8f7a6b5c4e3d2fg"),
        ("https://issuer/8f7a6b5c4e3d2f10/v2", "https://issuer/8f7a6b5c4e3d2f10/v2"),
    ],
)
def test_keys_from_the_path_of_a_server_url_are_masked_in_a_text(text: str, shown: str) -> None:
    assert without_keys_of("https://host/s/kd8f7a6b5c4e3d2f/mcp?a=b#c", text) == shown

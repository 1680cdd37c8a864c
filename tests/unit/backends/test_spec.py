from typing import Any

import pytest
from pydantic import ValidationError

from emceepee.backends.spec import BackendSpec, HttpTarget, RestartConfig, ServerEntry, StdioTarget


@pytest.mark.parametrize("milliseconds", [1, 1001, 2003, 64_001, 900_000])
def test_timeouts_in_milliseconds_are_read_exactly(milliseconds: int) -> None:
    restart = {"baseDelayMs": milliseconds, "maxDelayMs": milliseconds}
    entry = ServerEntry.model_validate(
        {"name": "a", "command": "x", "timeout_ms": milliseconds, "restartConfig": restart}
    )
    spec = entry.spec()
    assert spec.timeout == milliseconds / 1000
    assert isinstance(spec.target, StdioTarget)
    policy = spec.target.restart.policy(stable_after=60)
    assert (policy.base, policy.longest) == (milliseconds / 1000, milliseconds / 1000)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"name": "a"}, "give either url (HTTP or SSE server) or command (stdio server), and only one of them"),
        (
            {"name": "a", "url": "http://h", "command": "x"},
            "give either url (HTTP or SSE server) or command (stdio server), and only one of them",
        ),
        (
            {"name": "emceepee", "command": "x"},
            'the name "emceepee" is reserved for emceepee itself; choose another',
        ),
        ({"name": "a", "url": "ftp://h"}, "url must begin with http://, https:// or unix://, not 'ftp://h'"),
        ({"name": "a", "url": "ftp://u:s3cret@h/?k=s3cret"}, "not 'ftp://h/?k=***'"),
        ({"name": "a", "url": ""}, "url must begin with http://, https:// or unix://, not ''"),
        ({"name": "a", "url": "http://h", "type": "stdio"}, 'type "stdio" does not go with url'),
        ({"name": "a", "command": "x", "type": "http"}, 'type "http" does not go with command'),
        ({"name": "a", "command": "x", "type": "sse"}, 'type "sse" does not go with command'),
        ({"name": "a", "url": "http://h", "args": ["x"]}, "args does not go with url"),
        ({"name": "a", "url": "http://h", "env": {}}, "env does not go with url"),
        ({"name": "a", "url": "http://h", "cwd": "/"}, "cwd does not go with url"),
        ({"name": "a", "url": "http://h", "restartConfig": {}}, "restartConfig does not go with url"),
        ({"name": "a", "command": "x", "headers": {}}, "headers does not go with command"),
    ],
)
def test_an_inconsistent_server_entry_is_rejected_with_the_reason(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerEntry.model_validate(entry)
    assert message in caught.value.errors()[0]["msg"]


@pytest.mark.parametrize("name", ["", "x" * 101, "a\nb", "a\n", "\x7f", "\0"])
def test_a_server_name_is_one_line_of_up_to_a_hundred_characters(name: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerEntry.model_validate({"name": name, "command": "x"})
    assert caught.value.errors()[0]["loc"] == ("name",)


@pytest.mark.parametrize(
    "change",
    [
        {"timeout_ms": -1},
        {"mode": "2025-11-25"},
        {"restartConfig": {"maxAttempts": -1}},
        {"restartConfig": {"backoffMultiplier": 0.5}},
        {"restartConfig": {"maxAttemps": 1}},
        {"type": "pigeon"},
    ],
)
def test_an_out_of_range_value_in_a_server_entry_is_rejected(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ServerEntry.model_validate({"name": "a", "command": "x", **change})


def test_a_server_entry_with_only_a_command_has_the_documented_defaults() -> None:
    assert ServerEntry.model_validate({"name": "a", "command": "x"}).spec() == BackendSpec(
        name="a",
        target=StdioTarget(
            command="x",
            restart=RestartConfig(
                enabled=True, maxAttempts=5, baseDelayMs=1000, maxDelayMs=60_000, backoffMultiplier=2
            ),
        ),
        timeout=None,
        mode="auto",
    )


def test_the_label_of_a_server_shows_its_address_without_secrets() -> None:
    assert HttpTarget(url="https://u:p@h/mcp?key=s3cret").label == "https://h/mcp?key=***"
    assert StdioTarget(command="npx", args=("--token", "s3cret")).label == "stdio://npx"


def test_the_repr_of_a_server_specification_shows_no_credentials() -> None:
    http = HttpTarget(url="https://h", headers={"Authorization": "s3cret"})
    stdio = StdioTarget(command="x", args=("s3cret",), env={"TOKEN": "s3cret"})
    assert "s3cret" not in repr((http, stdio))


def problems_of(**fields: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        ServerEntry.model_validate({"name": "a", "url": "http://h/mcp"} | fields)
    return str(refused.value)


@pytest.mark.parametrize("key", ["allowedTools", "deniedTools"])
def test_tool_globs_are_limited_in_number_and_length(key: str) -> None:
    assert "may have at most 1000 entries, found 1001" in problems_of(**{key: ["a"] * 1001})
    assert "at most 100 entries with wildcards" in problems_of(**{key: ["a*"] * 101})
    assert "an entry may have at most 200 characters" in problems_of(**{key: ["a" * 201]})
    ServerEntry.model_validate({"name": "a", "url": "http://h", key: ["a" * 200] * 1000})


def test_urls_headers_and_roots_of_a_server_entry_are_limited() -> None:
    assert "at most 8192 characters" in problems_of(url="http://h/" + "a" * 8192)
    assert "at most 200 entries" in problems_of(headers={f"x-{number}": "" for number in range(101)})
    assert "at most 8192 characters" in problems_of(headers={"x": "a" * 8193})
    assert "at most 100 entries" in problems_of(roots=["file:///x"] * 101)
    assert "at most 4096 characters" in problems_of(roots=["file:///" + "x" * 4096])


@pytest.mark.parametrize("root", ["a\0b", "file:///a\0b", "a\nb"])
def test_a_root_with_control_characters_is_rejected_with_an_explanation(root: str) -> None:
    assert "must not have control characters" in problems_of(roots=[root])


def test_a_root_in_an_unknown_home_directory_is_kept_as_a_plain_name() -> None:
    entry = ServerEntry.model_validate({"name": "a", "command": "x", "roots": ["~no-such-user-here/x"]})
    assert entry.spec().roots[0].endswith("/~no-such-user-here/x")


@pytest.mark.parametrize(
    "url",
    ["http://[::1/mcp", "http://h:port/", "http://h:99999/", "http://h:80.other/", "http://h:80:other/", "http://[x]/"],
)
def test_a_url_with_an_invalid_host_or_port_is_rejected(url: str) -> None:
    assert "is not an address" in problems_of(url=url)


def test_the_spec_decides_whether_its_server_receives_the_session_id() -> None:
    spec = BackendSpec(name="one", target=HttpTarget(url="http://one.test", sends_session_id=False))
    assert isinstance(spec.target, HttpTarget)
    assert not spec.target.sends_session_id

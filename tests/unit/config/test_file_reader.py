import json
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from emceepee.backends.http1.tls_contexts import TlsSettings
from emceepee.backends.spec import BackendSpec, HttpTarget, RestartConfig, StdioTarget, UnusableTarget
from emceepee.config.file_reader import inspect, load, parse
from emceepee.config.former_limits import FORMER_LIMITS
from emceepee.config.secret_references import References
from emceepee.config.settings import Config, ConfigError, ConfigProblem
from emceepee.paths import CONFIG_VARIABLE
from emceepee.state.limits import LONGEST, Limits, range_of
from emceepee.state.tool_filter import ToolFilter

HTTP = {"url": "https://host/mcp"}


def parsed(document: Any, **environment: str) -> Config:
    return parse(json.dumps(document), source="file.json", references=References(environment=environment))


def refused(document: Any, **environment: str) -> str:
    """Return the message of the only problem in the document."""
    try:
        (problem,) = parsed(document, **environment).problems
    except ConfigError as error:
        return str(error)
    return f"file.json: {problem}"


def names(config: Config) -> list[str]:
    return [spec.name for spec in config.servers]


FILES = BackendSpec(
    name="files",
    target=StdioTarget(
        command="mcp-files", args=("--root", "/srv"), env={"A": "b"}, cwd="/", restart=RestartConfig(maxAttempts=2)
    ),
    tools=ToolFilter(("read_*",), ("read_secret",)),
    timeout=1.5,
    mode="legacy",
)
FILES_ENTRY = {
    "command": "mcp-files",
    "args": ["--root", "/srv"],
    "env": {"A": "b"},
    "cwd": "/",
    "restartConfig": {"maxAttempts": 2},
    "allowedTools": ["read_*"],
    "deniedTools": ["read_secret"],
    "timeout_ms": 1500,
    "mode": "legacy",
}


@pytest.mark.parametrize(
    "document",
    [
        {"servers": [{"name": "files", **FILES_ENTRY}]},
        {"servers": {"files": FILES_ENTRY}},
        {"mcpServers": {"files": FILES_ENTRY}},
        {"mcpClients": {"files": FILES_ENTRY}},
    ],
)
def test_every_configuration_format_yields_the_same_server(document: Any) -> None:
    assert parsed(document) == Config(servers=(FILES,))


def test_the_timeout_of_a_server_is_limited_by_the_configured_maximum() -> None:
    servers = {"mcpServers": {"a": HTTP | {"timeout_ms": 1_000_000}}}
    assert refused(servers) == (
        "file.json: mcpServers.a.timeout_ms: may be at most 900000 (limits.longest_call_seconds)"
    )
    [spec] = parsed(servers | {"limits": {"longest_call_seconds": 1000}}).servers
    assert spec.timeout == 1000


def test_the_configuration_formats_can_be_combined() -> None:
    config = parsed({"servers": [{"name": "a", **HTTP}], "mcpServers": {"b": HTTP}, "mcpClients": {"c": HTTP}})
    assert names(config) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"url": "https://host/mcp"}, "any"),
        ({"url": "https://host/mcp", "type": "http"}, "http"),
        ({"url": "https://host/mcp", "type": "streamable-http"}, "http"),
        ({"url": "https://host/mcp", "type": "streamableHttp"}, "http"),
        ({"url": "https://host/mcp", "type": "streamable_http"}, "http"),
        ({"url": "https://host/mcp", "type": "sse"}, "sse"),
        ({"serverUrl": "https://host/mcp"}, "any"),
    ],
)
def test_the_spellings_of_other_programs_for_a_url_server_are_accepted(entry: Any, kind: Any) -> None:
    [spec] = parsed({"mcpServers": {"a": entry}}).servers
    assert spec.target == HttpTarget(url="https://host/mcp", kind=kind)


def test_local_is_accepted_as_an_alias_of_stdio() -> None:
    [spec] = parsed({"mcpServers": {"a": {"type": "local", "command": "x"}}}).servers
    assert spec.target == StdioTarget(command="x")


def test_a_disabled_server_is_omitted_and_its_name_is_free() -> None:
    config = parsed({"mcpServers": {"a": {**HTTP, "disabled": True}, "b": {**HTTP, "disabled": False}}})
    assert names(config) == ["b"]
    assert config.ignored == ()


def test_a_disabled_server_may_contain_errors() -> None:
    config = parsed({"mcpServers": {"a": {"disabled": True, "nonsense": 1, "url": 3}}})
    assert (config.servers, config.problems) == ((), ())


def test_a_disabled_server_needs_none_of_its_variables() -> None:
    config = parsed({"mcpServers": {"a": {**HTTP, "headers": {"X": "${NOT_THERE}"}, "disabled": True}}})
    assert (config.servers, config.problems) == ((), ())


def test_a_variable_is_expanded_in_every_text_of_an_entry() -> None:
    entry = {"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}
    [spec] = parsed({"mcpServers": {"a": entry}}, HOST="example.test", TOKEN="t0").servers
    assert spec.target == HttpTarget(url="https://example.test/mcp", headers={"Authorization": "Bearer t0"})


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({}, "fallback"), ({"NAME": ""}, "fallback"), ({"NAME": "given"}, "given")],
)
def test_a_default_replaces_a_missing_or_empty_variable(environment: dict[str, str], expected: str) -> None:
    [spec] = parsed({"mcpServers": {"a": {"command": "x", "args": ["${NAME:-fallback}"]}}}, **environment).servers
    assert spec.target == StdioTarget(command="x", args=(expected,))


def test_a_variable_default_may_be_empty_and_an_empty_variable_without_default_is_empty() -> None:
    [spec] = parsed({"mcpServers": {"a": {"command": "x", "args": ["[${A:-}]", "[${B}]"]}}}, B="").servers
    assert spec.target == StdioTarget(command="x", args=("[]", "[]"))


def test_the_value_of_a_variable_is_not_expanded_again() -> None:
    [spec] = parsed({"mcpServers": {"a": {"command": "x", "args": ["${A}"]}}}, A="${B}", B="no").servers
    assert spec.target == StdioTarget(command="x", args=("${B}",))


def test_a_missing_variable_is_reported_with_file_key_and_name() -> None:
    entry = {"command": "x", "args": ["a", "${API_TOKEN}"]}
    assert refused({"mcpServers": {"gh": entry}}) == (
        "file.json: mcpServers.gh.args[1]: the environment has no variable API_TOKEN; "
        "set it, or write ${API_TOKEN:-default}"
    )


def test_a_secret_is_read_from_a_file_beside_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0\n")
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"a": HTTP | {"headers": {"Authorization": "Bearer ${file:token}"}}}}))
    [spec] = load(str(file), {}).servers
    assert spec.target == HttpTarget(url="https://host/mcp", headers={"Authorization": "Bearer t0"})
    (tmp_path / "token").unlink()
    (problem,) = load(None, {CONFIG_VARIABLE: str(file)}).problems
    assert str(problem) == (
        f"mcpServers.a.headers.Authorization: there is no file {tmp_path}/token; "
        "write the secret to it, and make it private"
    )


def test_secrets_in_plain_text_are_reported_for_a_hint_and_references_are_not() -> None:
    config = parsed(
        {
            "servers": [{"name": "a", **HTTP, "headers": {"Authorization": "Bearer s3cret"}}],
            "mcpServers": {"b": {"command": "x", "env": {"API_KEY": "s3cret", "OTHER_KEY": "${KEY}"}}},
        },
        KEY="k",
    )
    assert config.spelled_out == ("servers[0].headers.Authorization", "mcpServers.b.env.API_KEY")


def test_tls_settings_of_a_server_are_read_and_checked_at_once(tmp_path: Path) -> None:
    entry = HTTP | {"tls": {"server_name": "other", "insecure": True}}
    config = parsed({"mcpServers": {"a": entry, "b": HTTP}})
    assert [spec.target for spec in config.servers] == [
        HttpTarget(url="https://host/mcp", tls=TlsSettings(server_name="other", insecure=True)),
        HttpTarget(url="https://host/mcp"),
    ]
    assert config.unverified == ["a"]
    missing = tmp_path / "ca.pem"
    message = refused({"mcpServers": {"a": HTTP | {"tls": {"ca": str(missing)}}}})
    assert message == f"file.json: mcpServers.a.tls.ca: {missing}: No such file or directory"
    message = refused({"mcpServers": {"a": HTTP | {"tls": {"cafile": "x"}}}})
    assert message.startswith("file.json: mcpServers.a.tls.cafile: no such key; ")
    message = refused({"mcpServers": {"a": HTTP | {"tls": {"key": "x"}}}})
    assert message == "file.json: mcpServers.a.tls: key requires cert; name a file with both as cert alone"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "file.json: expected a JSON object with servers or mcpServers, found a list"),
        ("text", "file.json: expected a JSON object with servers or mcpServers, found a string"),
        ({"servers": 3}, "file.json: servers: expected a list, found a number"),
        ({"mcpServers": []}, "file.json: mcpServers: expected an object of names and servers, found a list"),
        ({"mcpClients": None}, "file.json: mcpClients: expected an object of names and servers, found null"),
        ({"servers": ["x"]}, "file.json: servers[0]: expected an object, found a string"),
        ({"mcpServers": {"a": True}}, "file.json: mcpServers.a: expected an object, found true or false"),
        ({"logLevel": "loud"}, "file.json: logLevel: expected one of debug, info, warn, error, found 'loud'"),
        ({"logFormat": []}, "file.json: logFormat: expected one of text, json, found []"),
        ({"limits": []}, "file.json: limits: expected an object, found a list"),
        ({"servers": [HTTP]}, "file.json: servers[0].name: is missing"),
    ],
)
def test_a_configuration_error_names_the_file_the_key_and_the_expected_value(document: Any, message: str) -> None:
    assert refused(document) == message


def test_a_configuration_error_inside_an_entry_names_the_field() -> None:
    message = refused({"mcpServers": {"a": {**HTTP, "headers": {"X": 1}}}})
    assert message == "file.json: mcpServers.a.headers.X: expected a string, found a number"
    message = refused({"mcpServers": {"a": {"command": "x", "restartConfig": {"maxAttempts": -1}}}})
    assert message.startswith("file.json: mcpServers.a.restartConfig.maxAttempts: ")


@pytest.mark.parametrize(
    ("kind", "shown"), [("pigeon", '"pigeon"'), (["http"], "a list"), ({"a": 1}, "an object"), (7, "7")]
)
def test_an_unknown_transport_is_reported_with_its_key(kind: Any, shown: str) -> None:
    message = refused({"mcpServers": {"a": {**HTTP, "type": kind}}})
    assert message == f"file.json: mcpServers.a.type: expected one of http, sse, stdio, found {shown}"


@pytest.mark.parametrize("value", [{"timeout_ms": 10**400}, {"timeout_ms": 10**13}, {"record": "\ud800"}])
def test_an_unusable_number_or_path_disables_only_its_server(value: Any) -> None:
    config = parsed({"mcpServers": {"odd": {"command": "x"} | value, "good": {"command": "x"}}})
    assert [(spec.name, isinstance(spec.target, UnusableTarget)) for spec in config.servers] == [
        ("odd", True),
        ("good", False),
    ]
    (problem,) = config.problems
    assert problem.key.startswith("mcpServers.odd")


def test_an_entry_without_a_target_is_reported_with_the_options() -> None:
    assert refused({"mcpServers": {"a": {}}}) == (
        "file.json: mcpServers.a: give either url (HTTP or SSE server) or command (stdio server), and only one of them"
    )


def test_a_duplicate_server_name_is_reported_at_its_second_place() -> None:
    message = refused({"servers": [{"name": "a", **HTTP}], "mcpServers": {"a": HTTP}})
    assert message == (
        'file.json: mcpServers.a: the name "a" is used twice; names must be unique, so this entry is ignored'
    )


@pytest.mark.parametrize("other", ["both.jsonl", "./logs/../both.jsonl"])
def test_two_servers_cannot_be_recorded_to_the_same_file(other: str) -> None:
    first, second = {"command": "a", "record": "both.jsonl"}, {"command": "b", "record": other}
    message = refused({"mcpServers": {"a": first, "b": second}})
    assert message == 'file.json: mcpServers.b.record: server "a" is already recorded to that file; choose another'
    assert len(parsed({"mcpServers": {"a": first, "b": second | {"disabled": True}}}).servers) == 1


def test_comments_and_trailing_commas_are_accepted_and_line_numbers_stay_correct() -> None:
    text = '{\n  /* two\n lines */ "mcpServers": {"a": {"command": "x"},} // mine\n}'
    assert [spec.name for spec in parse(text, source="file.json", references=References(environment={})).servers] == [
        "a"
    ]
    with pytest.raises(ConfigError, match=r"file\.json: not valid JSON: .*line 4"):
        parse("{\n  /* two\n lines */\n x}", source="file.json", references=References(environment={}))


def test_invalid_json_is_reported_with_file_and_position() -> None:
    with pytest.raises(ConfigError, match=r"file\.json: not valid JSON: .*line 2"):
        parse('{\n"servers" []}', source="file.json", references=References(environment={}))


def test_unknown_configuration_keys_are_listed_for_a_warning() -> None:
    config = parsed({"theme": "dark", "mcpServers": {"a": {**HTTP, "autoApprove": ["x"]}}})
    assert config.ignored == ("theme", "mcpServers.a.autoApprove")
    assert names(config) == ["a"]


def test_configured_limits_are_read_by_name_and_others_keep_their_defaults() -> None:
    config = parsed({"limits": {"connect_seconds": 0.5, "call_seconds": 7, "log_lines_per_server": 9}})
    assert config.limits == Limits(connect_seconds=0.5, call_seconds=7, log_lines_per_server=9)


def test_an_unknown_limit_is_reported_with_the_known_ones() -> None:
    message = refused({"limits": {"conect_seconds": 1}})
    assert message.startswith("file.json: limits.conect_seconds: no such limit; there are connect_seconds, ")


@pytest.mark.parametrize("name", FORMER_LIMITS)
@pytest.mark.parametrize("value", [1, -1, "many", None])
def test_a_limit_of_an_earlier_version_has_no_effect_and_causes_only_a_warning(name: str, value: object) -> None:
    config = parsed({"limits": {name: value, "connect_seconds": 5}})
    assert (config.problems, config.ignored, config.limits) == ((), (), Limits(connect_seconds=5))
    (warning,) = config.warnings
    assert warning.key == f"limits.{name}"
    assert "no longer has an effect" in warning.message
    assert warning.message.endswith(f"the limit is always {FORMER_LIMITS[name].describe(name)}")


NO_NUMBERS: list[Any] = ["5", None, True, [], {}]
OUT_OF_RANGE = [-1, -1e-9, float("nan"), float("inf"), float("-inf"), 1e300, 10**400, 10**13]


@pytest.mark.parametrize("value", [*NO_NUMBERS, *OUT_OF_RANGE, 0, 1.5])
def test_a_limit_for_a_count_must_be_an_integer_in_its_range(value: Any) -> None:
    message = refused({"limits": {"requests_per_link": value}})
    expected = "file.json: limits.requests_per_link: expected a whole number from 1 to 1,000,000,000, found "
    assert message == expected + (repr(value) if len(repr(value)) <= 60 else repr(value)[:60] + "...")


@pytest.mark.parametrize("value", [*NO_NUMBERS, *OUT_OF_RANGE, 0, 0.05, 1e-9])
def test_a_limit_for_a_duration_must_be_a_number_in_its_range(value: Any) -> None:
    message = refused({"limits": {"connect_seconds": value}})
    expected = "file.json: limits.connect_seconds: expected a number from 0.1 to 31,622,400, found "
    assert message.startswith(expected)


@pytest.mark.parametrize("name", [item.name for item in fields(Limits)])
def test_every_limit_has_a_range_that_contains_its_default(name: str) -> None:
    least, most, or_zero = range_of(name)
    whole = not name.endswith("_seconds")
    for value in (least, most, getattr(Limits(), name), *([0] if or_zero else [])):
        limits = parsed({"limits": {name: int(value) if whole else value}}).limits
        assert getattr(limits, name) == value
    for value in (least - (1 if whole else 0.0005), most * 2, *([] if or_zero or not least else [0])):
        assert f"file.json: limits.{name}: expected " in refused({"limits": {name: int(value) if whole else value}})


EXTREME = {
    **dict.fromkeys(["connect_seconds", "request_seconds", "longest_call_seconds", "task_ttl_seconds"], 0.001),
    **dict.fromkeys(["longest_task_ttl_seconds", "question_seconds", "session_idle_seconds"], 0.001),
    **dict.fromkeys(["session_kept_seconds", "unused_session_seconds", "replica_lease_seconds"], 0.001),
    **dict.fromkeys(["request_head_seconds", "request_body_seconds", "script_compute_seconds"], 0.001),
    **dict.fromkeys(["idle_stop_seconds", "process_idle_seconds", "health_check_seconds", "event_seconds"], 1e-9),
    **dict.fromkeys(["connections_per_origin", "connections_in_all", "request_headers", "events_per_session"], 1),
    **dict.fromkeys(["request_head_bytes", "script_memory_bytes", "recording_bytes", "buffered_item_bytes"], 1),
    **dict.fromkeys(["line_bytes", "unread_bytes_in_all", "notice_bytes"], 100),
}


@pytest.mark.parametrize(("name", "value"), EXTREME.items())
def test_an_extreme_limit_is_rejected_with_its_range(name: str, value: float) -> None:
    message = refused({"limits": {name: value}})
    assert message.startswith(f"file.json: limits.{name}: expected ")
    assert f" from {range_of(name).least:,.15g} to " in message


def test_a_limit_that_zero_disables_is_rejected_with_zero_and_its_range() -> None:
    message = refused({"limits": {"idle_stop_seconds": 1e-9}})
    assert message.endswith("idle_stop_seconds: expected 0 or a number from 0.1 to 31,622,400, found 1e-09")


@pytest.mark.parametrize(
    ("seconds", "is_allowed"), [(0, True), (0.1, True), (86_400, True), (1e-9, False), (-1, False)]
)
def test_the_idle_stop_of_a_server_has_the_same_minimum_as_the_limit(seconds: float, is_allowed: bool) -> None:
    document = {"mcpServers": {"a": {**HTTP, "idleStop": seconds}}}
    if is_allowed:
        assert parsed(document).servers[0].idle_stop == seconds
    else:
        assert "mcpServers.a.idleStop: " in refused(document)


def test_the_longest_durations_can_be_added_to_any_date() -> None:
    assert datetime(2100, 1, 1, tzinfo=UTC) + timedelta(seconds=LONGEST)


@pytest.mark.parametrize("key", ["maxAttempts", "baseDelayMs", "maxDelayMs", "backoffMultiplier"])
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), 1e300, 10**400])
def test_restart_settings_are_checked_against_their_ranges(key: str, value: Any) -> None:
    server = {"command": "x", "restartConfig": {key: value}}
    assert f"file.json: mcpServers.a.restartConfig.{key}: " in refused({"mcpServers": {"a": server}})


def test_log_level_and_format_are_read_from_the_file() -> None:
    config = parsed({"logLevel": "debug", "logFormat": "json"})
    assert (config.log_level, config.log_format) == ("debug", "json")


def a_file(folder: Path, name: str, server: str) -> str:
    path = folder / name
    path.write_text(json.dumps({"mcpServers": {server: HTTP}}), encoding="utf-8")
    return str(path)


def test_without_a_configuration_the_defaults_apply() -> None:
    assert load(None, {}) == load(None, {CONFIG_VARIABLE: "  "}) == Config()


def test_the_config_variable_may_contain_the_configuration_itself() -> None:
    inline = json.dumps({"mcpServers": {"inline": {"command": "${PROGRAM}"}}})
    config = load(None, {CONFIG_VARIABLE: f"\n {inline}", "PROGRAM": "x"})
    assert [spec.target for spec in config.servers] == [StdioTarget(command="x")]


def test_the_config_variable_may_contain_a_path(tmp_path: Path) -> None:
    assert names(load(None, {CONFIG_VARIABLE: a_file(tmp_path, "a.json", "from_file")})) == ["from_file"]


def test_a_config_path_argument_takes_precedence_over_the_variable(tmp_path: Path) -> None:
    environment = {CONFIG_VARIABLE: json.dumps({"mcpServers": {"inline": HTTP}})}
    assert names(load(a_file(tmp_path, "a.json", "flag"), environment)) == ["flag"]


def test_an_error_in_the_config_variable_names_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"^EMCEEPEE_CONFIG: not valid JSON"):
        load(None, {CONFIG_VARIABLE: "{oops"})


def test_a_missing_or_binary_configuration_file_is_named_in_the_error(tmp_path: Path) -> None:
    missing, binary = tmp_path / "missing.json", tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ConfigError, match=r"missing\.json: no such file"):
        load(str(missing), {})
    with pytest.raises(ConfigError, match=r"binary\.json: cannot be read: .*utf-8"):
        load(None, {CONFIG_VARIABLE: str(binary)})
    with pytest.raises(ConfigError, match=r"cannot be read: .*directory"):
        load(str(tmp_path), {})


def test_the_state_setting_must_be_a_string_and_the_sync_setting_one_of_two() -> None:
    assert refused({"state": 1}) == "file.json: state: expected a string, found a number"
    assert refused({"stateSync": "often"}) == "file.json: stateSync: expected one of normal, full, found 'often'"


def test_tags_of_a_server_are_chosen_by_the_operator() -> None:
    references = References(environment={})
    text = json.dumps({"$schema": "x", "mcpServers": {"one": {"command": "x", "tags": ["work", "slow"]}}})
    config = parse(text, source="a.json", references=references)
    assert (config.servers[0].tags, config.ignored) == (("work", "slow"), ())
    for wrong in (["two words"], [""], ["x" * 51], ["x"] * 21, "work"):
        text = json.dumps({"mcpServers": {"one": {"command": "x", "tags": wrong}}})
        (problem,) = parse(text, source="a.json", references=references).problems
        assert problem.key.startswith("mcpServers.one.tags")


# An error disables only its server.

MISSING = "the environment has no variable TOKEN; set it, or write ${TOKEN:-default}"
BROKEN_ENTRIES: dict[str, Any] = {
    "a missing variable": {"url": "https://bad.test/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "a missing file": {"url": "https://bad.test/mcp", "headers": {"Authorization": "${file:no-such-file}"}},
    "a missing certificate": {"url": "https://bad.test/mcp", "tls": {"ca": "no-such-file"}},
    "a value of the wrong kind": {"url": "https://bad.test/mcp", "timeout_ms": "soon"},
    "a tag that is no word": {"url": "https://bad.test/mcp", "tags": ["two words"]},
    "a timeout beyond the limit": {"url": "https://bad.test/mcp", "timeout_ms": 10**9},
    "a home directory that is unknown": {"url": "https://bad.test/mcp", "record": "~no-such-user/calls.jsonl"},
    "a path that is none": {"url": "https://bad.test/mcp", "record": "a\0b"},
    "a secret in the home of nobody": {"url": "https://bad.test/mcp", "headers": {"X": "${file:~no-such-user/a}"}},
}


@pytest.mark.parametrize("mistake", BROKEN_ENTRIES)
def test_an_error_in_one_entry_leaves_the_other_servers_usable_and_is_reported_with_its_server(mistake: str) -> None:
    entry = BROKEN_ENTRIES[mistake]
    config = parsed({"mcpServers": {"good": HTTP, "bad": entry, "also good": {"command": "x"}}})
    assert names(config) == ["good", "bad", "also good"]
    good, bad, also_good = (spec.target for spec in config.servers)
    assert (good, also_good) == (HttpTarget(url=HTTP["url"]), StdioTarget(command="x"))
    (problem,) = config.problems
    assert (problem.server, problem.is_fatal) == ("bad", False)
    assert problem.key.startswith("mcpServers.bad")
    assert bad == UnusableTarget(label="https://bad.test/mcp", reason=str(problem))


@pytest.mark.parametrize("name", [None, 7, [], {}, "", "x" * 101, "a\nb", "emceepee\0"])
def test_an_entry_with_an_invalid_name_is_reported_and_disables_no_other_server(name: Any) -> None:
    config = parsed({"servers": [{"name": name, **HTTP}, {"name": "good", **HTTP}]})
    assert names(config) == ["good"]
    assert [(problem.key, problem.server) for problem in config.problems] == [("servers[0].name", None)]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"mcpServers": {"a": {"args": ' + "[" * 900 + "]" * 900 + "}}}"])
def test_a_configuration_that_is_nested_too_deeply_is_reported_with_the_file(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^file\.json: .*(nested too deeply|not valid JSON)"):
        parse(text, source="file.json", references=References(environment={}))


def test_an_unusable_server_keeps_its_description_and_tags_and_hides_secrets_in_its_url() -> None:
    url = "https://ada:s3cret@${HOST}/mcp?key=s3cret"
    (spec,) = parsed({"mcpServers": {"a": {"url": url, "description": "what it is for", "tags": ["work"]}}}).servers
    assert (spec.description, spec.tags) == ("what it is for", ("work",))
    assert isinstance(spec.target, UnusableTarget)
    assert "s3cret" not in spec.target.label
    assert spec.target.label.startswith("https://${HOST}/mcp")


def test_every_configuration_error_is_reported_with_its_key() -> None:
    config = parsed(
        {
            "servers": [{"name": "first", "headers": {"A": "${TOKEN}", "B": "${TOKEN}"}, "timeout_ms": -1}, HTTP],
            "mcpServers": {"second": {"command": 1, "tags": ["", "x"]}, "third": 7},
            "limits": {"requests_per_link": 0, "no_such_limit": 1, "connect_seconds": 5},
            "notices": "some",
        }
    )
    found = [(problem.key, problem.server) for problem in config.problems]
    assert sorted(found, key=str) == sorted(
        [
            ("servers[0].headers.A", "first"),
            ("servers[0].headers.B", "first"),
            ("servers[0].timeout_ms", "first"),
            ("servers[1].name", None),
            ("mcpServers.second.command", "second"),
            ("mcpServers.second.tags[0]", "second"),
            ("mcpServers.third", "third"),
            ("limits.requests_per_link", None),
            ("limits.no_such_limit", None),
            ("notices", None),
        ],
        key=str,
    )
    assert config.problems[2] == ConfigProblem("servers[0].headers.A", MISSING, server="first", is_reference=True)


def test_an_unresolved_reference_is_reported_once_and_not_used_as_a_value() -> None:
    assert refused({"mcpServers": {"a": {"url": "${TOKEN}"}}}) == f"file.json: mcpServers.a.url: {MISSING}"
    assert refused({"mcpServers": {"a": {"url": "https://x.test", "type": "${TOKEN}"}}}).endswith(f"a.type: {MISSING}")


def test_a_reference_under_an_unknown_key_needs_no_variable() -> None:
    config = parsed({"theme": "${TOKEN}", "mcpServers": {"a": HTTP | {"color": "${TOKEN}"}}})
    assert (config.problems, config.ignored) == ((), ("theme", "mcpServers.a.color"))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limits", {"connect_seconds": "5"}),
        ("limits", []),
        ("logLevel", "loud"),
        ("logFormat", "xml"),
        ("notices", "${TOKEN}"),
        ("nativeElicitation", 1),
        ("searchVectors", "no-such-file"),
        ("searchVectors", "a\0b"),
    ],
)
def test_an_error_in_a_harmless_setting_keeps_its_default_and_all_servers(key: str, value: Any) -> None:
    config = parsed({"mcpServers": {"a": HTTP}, key: value})
    (problem,) = config.problems
    assert (problem.key.partition(".")[0], problem.server, problem.is_fatal) == (key, None, False)
    assert replace(config, problems=()) == parsed({"mcpServers": {"a": HTTP}})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("state", "${TOKEN}"),
        ("stateSync", "often"),
        ("secrets", "keyrin"),
        ("surface", "small"),
        ("roots", "/srv"),
        ("roots", ["${TOKEN}"]),
        ("servers", "x"),
        ("mcpServers", []),
    ],
)
def test_an_error_in_a_protective_setting_is_fatal_and_reported_with_all_others(key: str, value: Any) -> None:
    """The default could store or expose data against the intent of the operator."""
    document = {"mcpClients": {"a": {}}, "notices": "some", key: value}
    with pytest.raises(ConfigError, match=rf"^file\.json: {key}"):
        parsed(document)
    found = inspect(json.dumps(document), source="file.json", references=References(environment={})).problems
    assert {problem.key.partition("[")[0] for problem in found} == {"mcpClients.a", "notices", key}
    assert [problem.key.partition("[")[0] for problem in found if problem.is_fatal] == [key]


def test_disabled_servers_are_distinguished_from_used_ones() -> None:
    config = parsed(
        {
            "servers": [{"name": "twice", **HTTP, "disabled": True}],
            "mcpServers": {"off": {**HTTP, "disabled": True, "tags": ["slow"]}, "twice": {"command": "x"}},
        }
    )
    assert names(config) == ["twice"]
    (off,) = config.disabled
    assert (off.name, off.tags, off.target.label) == ("off", ("slow",), HTTP["url"])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 300 + "1" + "}" * 300, "{" + "/* " * 100_000])
def test_a_configuration_with_excessive_nesting_or_an_unclosed_comment_is_rejected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^file\.json: not valid JSON: (it is nested deeper|the comment)"):
        parse(text, source="file.json", references=References(environment={}))


def test_a_configuration_that_is_not_a_regular_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is not a regular file"):
        load("/dev/zero", {})

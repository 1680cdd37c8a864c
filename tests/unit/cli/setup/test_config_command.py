"""`emceepee config`: validation of the file, and its schema."""

import json
from pathlib import Path

import pytest

from emceepee.cli.main import main
from emceepee.config import settings as config
from emceepee.paths import CONFIG_VARIABLE, NO_CODEMODE_VARIABLE, STATE_VARIABLE
from emceepee.store.platform_keyring import NoKeyring


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for variable in (CONFIG_VARIABLE, STATE_VARIABLE, NO_CODEMODE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def a_file(home: Path, document: object) -> str:
    path = home / "config.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return str(path)


def test_config_check_accepts_a_usable_file_and_lists_unknown_keys(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"command": "no-such-program", "env": {"API_KEY": "0123456789abcdef0123"}, "color": "red"}
    file = a_file(home, {"$schema": "./config.schema.json", "mcpServers": {"one": entry}})
    assert main(["config", "check", "--config", file]) == 0
    out, err = capsys.readouterr()
    assert f"{file} can be used: 1 server\n" in out
    assert "unknown to emceepee: mcpServers.one.color\n" in out
    assert "mcpServers.one.env.API_KEY" in out
    assert "0123456789abcdef0123" not in out
    assert err == ""


def test_config_check_shows_a_limit_of_an_earlier_version_as_a_warning(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = a_file(home, {"limits": {"list_pages": 5}})
    assert main(["config", "check", "--config", file]) == 0
    out, err = capsys.readouterr()
    words = "this setting no longer has an effect, so remove it; the limit is always 1,000"
    assert f"  limits.list_pages: {words}\n" in out
    assert err == ""
    assert main(["config", "check", "--json", "--config", file]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["isUsable"], report["problems"]) == (True, [])
    assert report["warnings"] == [{"key": "limits.list_pages", "message": words}]


def test_config_check_fails_for_an_unusable_file_and_names_the_error_position(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = a_file(home, {"limits": {"no_such_limit": 1}})
    assert main(["--config", file, "config", "check"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{file}: limits.no_such_limit: no such limit" in err


@pytest.mark.parametrize("document", ["{", '{"roots": 1}', "[]"])
def test_config_check_reports_an_unusable_file_as_json(
    home: Path, capsys: pytest.CaptureFixture[str], document: str
) -> None:
    assert main(["config", "check", "--json", "--config", a_file(home, document)]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["isUsable"], told["servers"]) == (False, [])
    assert told["config"] == str(home / "config.json")
    assert "config.json" in told["problem"]


def test_config_check_reports_every_error_with_its_key_and_effect(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = {
        "tracker": {"url": "https://host/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_TOKEN}"}, "mode": "odd"},
        "files": {"command": 3, "color": "red"},
        "time": {"command": "time-server"},
    }
    file = a_file(home, {"mcpServers": servers, "limits": {"connect_seconds": 0}})
    assert main(["config", "check", "--config", file]) == 1
    out, err = capsys.readouterr()
    lines = err.splitlines()
    for key in (
        "limits.connect_seconds",
        "mcpServers.tracker.headers.Authorization",
        "mcpServers.tracker.mode",
        "mcpServers.files.command",
    ):
        assert len([line for line in lines if line.startswith(f"emceepee: {file}: {key}: ")]) == 1
    assert lines[4:] == ["emceepee: 1 server can be used; disabled until their entries are fixed: tracker, files"]
    assert out == "  unknown to emceepee: mcpServers.files.color\n"
    assert main(["config", "check", "--json", "--config", file]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["isUsable"], told["problem"], told["servers"]) == (True, None, ["time"])
    assert [(problem["key"], problem.get("server")) for problem in told["problems"]] == [
        ("limits.connect_seconds", None),
        ("mcpServers.tracker.headers.Authorization", "tracker"),
        ("mcpServers.tracker.mode", "tracker"),
        ("mcpServers.files.command", "files"),
    ]


def test_a_fatal_configuration_error_is_reported_with_all_others(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = a_file(home, {"mcpServers": {"one": {}}, "secrets": "keyrin", "stateSync": 1})
    assert main(["config", "check", "--config", file]) == 1
    lines = capsys.readouterr().err.splitlines()
    keys = [line.removeprefix(f"emceepee: {file}: ").partition(":")[0] for line in lines[:-1]]
    assert sorted(keys) == ["mcpServers.one", "secrets", "stateSync"]
    assert lines[-1] == "emceepee: cannot start with this configuration"
    assert main(["config", "check", "--json", "--config", file]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["isUsable"], len(told["problems"])) == (False, 3)
    assert "secrets: expected one of" in told["problem"]
    assert "stateSync: expected one of" in told["problem"]


def no_keyring() -> None:
    raise NoKeyring("there is none here")


def test_config_check_rejects_what_the_start_would_reject(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "check_keyring", no_keyring)
    monkeypatch.setenv(NO_CODEMODE_VARIABLE, "1")
    for document, words in (
        ({"state": "nonsense"}, "state: expected memory"),
        ({"secrets": "keyring"}, "there is none here"),
        ({"secrets": "keyring", "state": "memory"}, "also pass --state sqlite"),
        ({"surface": "lite"}, "lists codemode_search"),
    ):
        file = a_file(home, document)
        assert main(["config", "check", "--json", "--config", file]) == 1
        told = json.loads(capsys.readouterr().out)
        assert (told["config"], told["isUsable"]) == (file, False)
        assert words in told["problem"]
        assert main(["config", "check", "--config", file]) == 1
        assert words in capsys.readouterr().err


def test_config_check_reports_every_fatal_setting_at_once(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "check_keyring", no_keyring)
    monkeypatch.setenv(NO_CODEMODE_VARIABLE, "1")
    file = a_file(home, {"stateSync": 1, "state": "nonsense", "secrets": "keyring", "surface": "lite"})
    mistakes = ("stateSync: expected one of", "state: expected memory", "there is none here", "lists codemode_search")
    assert main(["config", "check", "--config", file]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [words in line for words, line in zip(mistakes, lines, strict=False)] == [True] * 4
    assert lines[4:] == ["emceepee: cannot start with this configuration"]
    assert main(["config", "check", "--json", "--config", file]) == 1
    told = json.loads(capsys.readouterr().out)
    assert [words in told["problem"] for words in mistakes] == [True] * 4


def test_config_check_names_the_commands_that_do_not_support_a_setting(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(config, "check_keyring", lambda: None)
    file = a_file(home, {"secrets": "keyring"})
    assert main(["config", "check", "--config", file]) == 0
    assert "not on standard input and output: --secrets keyring keeps tokens after" in capsys.readouterr().out
    assert main(["config", "check", "--json", "--config", file]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["isUsable"], "pass --state sqlite" in told["problemOnStdio"]) == (True, True)
    assert main(["--state", "sqlite", "config", "check", "--config", file]) == 0
    assert "not on standard input" not in capsys.readouterr().out


def test_config_check_reads_the_config_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CONFIG_VARIABLE, '{"mcpServers": {"one": {"command": "x"}}}')
    assert main(["config", "check", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["config"], told["servers"]) == (CONFIG_VARIABLE, ["one"])


def test_config_check_without_a_file_explains_how_to_create_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 1
    assert "emceepee import" in capsys.readouterr().err


def test_config_schema_prints_the_full_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"$schema", "mcpServers", "limits"} <= schema["properties"].keys()

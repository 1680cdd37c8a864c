"""Errors of the command line before anything is loaded. Process tests cover the rest."""

import json
from pathlib import Path

import pytest

from emceepee.cli.main import USAGE_ERROR, build_parser, main
from emceepee.cli.terminal import FAILED
from emceepee.paths import CONFIG_VARIABLE, STATE_VARIABLE


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (STATE_VARIABLE, CONFIG_VARIABLE, "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(variable, raising=False)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == USAGE_ERROR
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_a_named_session_requires_stored_state(capsys: pytest.CaptureFixture[str]) -> None:
    words = "emceepee: --session resumes a stored session: also pass --state sqlite\n"
    assert refused(capsys, "--session", "mine") == words
    assert refused(capsys, "--session", "mine", "--state", "memory") == words


def test_the_session_flag_is_rejected_for_serve(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "--session", "mine", "serve")
    words = "--session is for standard input and output; callers of serve add ?session=NAME to the URL"
    assert said == f"emceepee: {words}\n"


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_an_invalid_state_location_is_reported_in_one_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = "expected memory, sqlite, sqlite:PATH or redis://HOST, found 'tape'\n"
    assert refused(capsys, *command, "--state", "tape") == f"emceepee: --state: {expected}"
    file = tmp_path / "emceepee.json"
    file.write_text(json.dumps({"state": "tape"}))
    assert refused(capsys, *command, "--config", str(file)) == f"emceepee: state: {expected}"
    monkeypatch.setenv(STATE_VARIABLE, "tape")
    assert refused(capsys, *command) == f"emceepee: {STATE_VARIABLE}: {expected}"


@pytest.mark.parametrize("arguments", [["--state-sync", "often"], ["serve", "--state-sync", "often"]])
def test_an_invalid_state_sync_is_rejected_with_the_choices(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE_ERROR
    assert "'normal', 'full'" in capsys.readouterr().err


def test_a_global_flag_is_accepted_before_and_after_the_command() -> None:
    parse = build_parser().parse_args
    assert parse(["--state", "memory", "--root", "/a", "serve"]).state == "memory"
    assert parse(["--state", "memory", "serve", "--state", "sqlite"]).state == "sqlite"
    assert parse(["serve"]).state is None
    assert parse(["--root", "/a", "serve"]).root == ["/a"]


# Workers.


def test_workers_require_shared_state(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "serve", "--workers", "2", "--state", "memory")
    assert said == "emceepee: --workers needs state that its processes share: also pass --state sqlite\n"


@pytest.mark.parametrize("count", ["0", "65", "-1", "many", "", "1.5"])
def test_an_invalid_number_of_workers_is_rejected(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", f"--workers={count}"])
    assert ended.value.code == USAGE_ERROR
    assert "expected a number from 1 to 64" in capsys.readouterr().err


def test_workers_are_rejected_for_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--workers=2"])
    assert ended.value.code == USAGE_ERROR
    assert "--workers" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["serve"]])
def test_an_unusable_ca_bundle_is_named_in_the_error(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, junk = tmp_path / "missing.pem", tmp_path / "junk.pem"
    junk.write_text("junk")
    words = f"emceepee: --ca-bundle: {missing}: No such file or directory\n"
    assert refused(capsys, *command, "--ca-bundle", str(missing)) == words
    said = refused(capsys, *command, "--ca-bundle", str(junk))
    assert said.startswith(f"emceepee: --ca-bundle: {junk}: expected certificates of CAs in PEM form")


def test_an_invalid_proxy_is_reported_by_its_variable_without_its_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://ada:s3cret@proxy.example:1080")
    said = refused(capsys)
    assert said.startswith("emceepee: HTTPS_PROXY: expected http://[USER:PASSWORD@]HOST[:PORT]")
    assert "socks5:// are not supported" in said
    assert "s3cret" not in said


def test_an_early_interrupt_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("emceepee.cli.main.run_state", interrupted)
    assert main(["state"]) == FAILED
    assert capsys.readouterr().err == "emceepee: stopped\n"

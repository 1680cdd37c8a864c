"""`emceepee state` without a state file, and the durations that it accepts. Process tests use real files."""

import argparse
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.keep.state_command import _changed, _size, duration
from emceepee.cli.main import build_parser, main
from emceepee.paths import CONFIG_VARIABLE, STATE_VARIABLE
from support.fakes.clock import START


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (STATE_VARIABLE, CONFIG_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["state", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("45s", timedelta(seconds=45)),
        ("30m", timedelta(minutes=30)),
        ("12h", timedelta(hours=12)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        ("0s", timedelta()),
    ],
)
def test_an_age_is_parsed_as_a_number_with_a_unit(text: str, meant: timedelta) -> None:
    assert duration(text) == meant


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "1.5h", "7 d", "7D", "1h30m", "9999999d", "٣d"])
def test_an_invalid_age_is_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number and s, m, h, d or w"):
        duration(text)


def test_a_missing_state_file_is_reported_and_not_created(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none" / "state.db"
    code, out, err = said(capsys, "--state", f"sqlite:{path}")
    assert (code, err) == (0, "")
    assert out.startswith(f"There is no state at {path} yet.")
    code, out, err = said(capsys, "--state", f"sqlite:{path}", "--json")
    assert (code, json.loads(out), err) == (0, {"path": str(path), "exists": False}, "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("work", [["check"], ["compact"], ["forget", "x"], ["forget", "--older-than", "7d"]])
def test_other_state_commands_fail_for_a_missing_state_file(
    work: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "none" / "state.db"
    code, out, err = said(capsys, *work, "--state", f"sqlite:{path}")
    assert (code, out) == (2, "")
    assert err.startswith(f"emceepee: The state file {path} does not exist. ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_state_in_memory_cannot_be_inspected(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--state", "memory")
    assert (code, out) == (0, "State is stored in memory and ends with the process.\n")
    code, out, err = said(capsys, "check", "--state", "memory")
    assert (code, out) == (2, "")
    assert "specify a file with --state" in err


@pytest.mark.parametrize("work", [["check"], ["compact"], ["forget", "x"], ["export", "-"]])
def test_file_commands_are_refused_for_redis(work: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, *work, "--state", "redis://:s3cret@host")
    place = "redis://host:6379"
    words = f"{work[0]} is for state files; state is stored in Redis at {place}, which has its own tools"
    assert (code, out, err) == (2, "", f"emceepee: {words}\n")


def test_the_state_command_finds_its_location_like_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*arguments: str) -> Any:
        code, out, _ = said(capsys, "--json", *arguments)
        assert code == 0
        return json.loads(out)["path"]

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert shown() == str(tmp_path / "emceepee" / "state.db")
    file = tmp_path / "emceepee.json"
    file.write_text(json.dumps({"state": f"sqlite:{tmp_path}/file.db"}))
    assert shown("--config", str(file)) == str(tmp_path / "file.db")
    monkeypatch.setenv(STATE_VARIABLE, f"sqlite:{tmp_path}/variable.db")
    assert shown("--config", str(file)) == str(tmp_path / "variable.db")
    assert shown("--config", str(file), "--state", f"sqlite:{tmp_path}/flag.db") == str(tmp_path / "flag.db")
    code, _, err = said(capsys, "--state", "tape")
    expected = "expected memory, sqlite, sqlite:PATH or redis://HOST, found 'tape'"
    assert (code, err) == (2, f"emceepee: --state: {expected}\n")


@pytest.mark.parametrize("work", [["forget"], ["forget", "x", "--older-than", "7d"], ["export"], ["tidy"]])
def test_missing_arguments_of_the_state_command_are_a_usage_error(
    work: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(["state", *work])
    assert ended.value.code == 2


def test_the_json_flag_is_accepted_before_and_after_the_subcommand() -> None:
    parse = build_parser().parse_args
    assert parse(["state", "--json", "check"]).json
    assert parse(["state", "check", "--json"]).json
    assert not parse(["state", "check"]).json
    assert parse(["--state", "memory", "state", "check"]).state == "memory"


def test_sizes_and_ages_of_the_state_are_human_readable() -> None:
    assert [_size(count) for count in (12, 2048, 5 << 20, 3 << 30)] == ["12 bytes", "2.0 KiB", "5.0 MiB", "3.0 GiB"]
    ages = [_changed(START, START + timedelta(seconds=count)).split(",")[0] for count in (-5, 59, 60, 7200, 200_000)]
    assert ages == [f"changed {age} ago" for age in ("0 s", "59 s", "1 min", "2 h", "2 d")]
    assert _changed(None, START) == "none"


def test_help_is_printed_without_importing_a_database() -> None:
    names = ("sqlite3", "redis", "hiredis")
    program = f"import sys; import emceepee.cli.main; print(*(name in sys.modules for name in {names}))"
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["False"] * len(names)

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emceepee.telemetry.logs import FORMATS, LEVELS, EventLog, configure, tell_operator

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(autouse=True)
def _logging_as_it_was() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("emceepee")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    root.handlers.clear()  # so that `configure` does not close the handlers of pytest
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    logging.captureWarnings(capture=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log"


def written(file: Path) -> bytes:
    """Wait for the writer thread, and return everything that it wrote."""
    for handler in logging.getLogger().handlers:
        handler.flush()
    return file.read_bytes()


def lines(file: Path) -> list[str]:
    return written(file).decode().splitlines()


def entries(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(file)]


def test_a_json_log_line_has_level_event_timestamp_and_data(file: Path) -> None:
    configure(style="json", file=file)
    EventLog("sessions").info("server_connected", server="github", tools=3)
    [entry] = entries(file)
    assert TIMESTAMP.fullmatch(entry.pop("timestamp"))
    assert entry == {
        "level": "info",
        "event": "server_connected",
        "logger": "emceepee.sessions",
        "data": {"server": "github", "tools": 3},
    }


def test_a_json_log_line_is_one_line_for_any_content(file: Path) -> None:
    configure(style="json", file=file)
    EventLog("x").info("odd", text="a\nb\u2028c\ud800", thing=Path("/tmp"), number=float("inf"))
    [line] = written(file).splitlines()
    assert json.loads(line)["data"]["text"] == "a\nb\u2028c\ud800"
    assert json.loads(line)["data"]["thing"] == "/tmp"


def test_a_text_log_line_has_time_level_event_and_fields(file: Path) -> None:
    configure(style="text", file=file)
    EventLog("x").warning("server_lost", server="github", reason="it exited", attempt=2, empty="")
    [line] = lines(file)
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d\.\d{3} warn  server_lost server=github reason="it exited" attempt=2 empty=""', line
    )


@pytest.mark.parametrize("nasty", ["a\nb", "\x1b[31mred", "a\rb", "\ud800", "\u2028"])
def test_server_output_cannot_break_or_color_a_text_log_line(file: Path, nasty: str) -> None:
    configure(style="text", file=file)
    EventLog("x").info("said", line=nasty)
    [line] = lines(file)
    assert line.isprintable()
    assert line.endswith(f"line={json.dumps(nasty)}")


@pytest.mark.parametrize("nasty", ["a\nb", "\x1b[31mred", "a\rb", "\u2028", "\x9b31m", "\u202eback"])
def test_library_messages_and_exceptions_cannot_break_or_color_a_text_log_line(file: Path, nasty: str) -> None:
    """Libraries put text from others into their log messages and exceptions."""
    configure(style="text", file=file)
    logging.getLogger("somelibrary").warning("said: %s", nasty)
    try:
        raise ValueError(nasty)
    except ValueError:
        logging.getLogger("somelibrary").exception("failed")
    first, second, *traceback = lines(file)
    assert first.endswith(f"warn  said: {json.dumps(nasty)[1:-1]}")
    assert second.endswith("error failed")
    assert all(line.isprintable() and line.startswith("  ") for line in traceback)


@pytest.mark.parametrize("style", FORMATS)
def test_long_texts_in_logs_are_truncated(file: Path, style: str) -> None:
    configure(style=style, file=file)
    EventLog("x").info("said", line="a" * 100_000, nested={"list": ["b" * 100_000]}, rest=["c"] * 100_000)
    logging.getLogger("somelibrary").warning("d" * 100_000)
    try:
        raise ValueError("e" * 100_000 + "the end")
    except ValueError:
        logging.getLogger("somelibrary").exception("failed")
    text = written(file).decode()
    assert len(text) < 40_000
    assert "the end" in text


@pytest.mark.parametrize("level", LEVELS)
def test_a_log_level_passes_entries_of_at_least_its_severity(file: Path, level: str) -> None:
    configure(level=level, style="json", file=file)
    log = EventLog("x")
    log.debug("debug")
    log.info("info")
    log.warning("warn")
    log.error("error")
    assert [entry["level"] for entry in entries(file)] == list(LEVELS[LEVELS.index(level) :])
    assert log.is_debugging() is (level == "debug")


def test_libraries_log_only_warnings_and_errors_even_at_debug_level(file: Path) -> None:
    configure(level="debug", style="json", file=file)
    logging.getLogger("somelibrary").info("chatter")
    logging.getLogger("somelibrary").warning("careful: %s", "x")
    assert [(entry["event"], entry["level"]) for entry in entries(file)] == [("careful: x", "warn")]


@pytest.mark.parametrize("style", FORMATS)
def test_no_secret_is_written_to_the_log_in_any_field(file: Path, style: str) -> None:
    configure(level="debug", style=style, file=file)
    EventLog("x").info(
        "connecting",
        url="https://user:s3cret@host/mcp?key=s3cret",
        headers={"Authorization": "Bearer s3cret"},
        nested=[{"env": {"API_TOKEN": "s3cret"}}],
        password="s3cret",
        reason="https://s3cret@host cannot be reached",
    )
    logging.getLogger("somelibrary").warning("cannot reach %s", "https://user:s3cret@host/?key=s3cret")
    try:
        raise ValueError("bad address https://user:s3cret@host/")
    except ValueError:
        logging.getLogger("emceepee.x").exception("failed")
    text = written(file).decode()
    assert "s3cret" not in text
    assert text.count("host") >= 4


@pytest.mark.parametrize("style", FORMATS)
def test_a_failure_is_logged_with_its_traceback(file: Path, style: str) -> None:
    configure(style=style, file=file)
    try:
        raise ValueError("what went wrong")
    except ValueError:
        logging.getLogger("emceepee.x").exception("failed")
    text = written(file).decode()
    assert "Traceback" in text
    assert "ValueError: what went wrong" in text


def test_without_a_file_the_log_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    configure()
    EventLog("x").info("hello")
    tell_operator("come in")
    logging.getLogger().handlers[0].flush()
    out, err = capfd.readouterr()
    assert out == ""
    assert err.endswith("info  hello\ncome in\n")


def test_a_log_line_that_cannot_be_formatted_is_reported_in_one_line(file: Path) -> None:
    configure(file=file)
    logging.getLogger("somelibrary").warning("%d lines", "no number")
    [line] = lines(file)
    assert line.startswith("a log line of somelibrary could not be written: TypeError")


def test_configuring_the_log_again_replaces_the_earlier_configuration(file: Path, tmp_path: Path) -> None:
    configure(file=file)
    configure(file=tmp_path / "other")
    EventLog("x").info("hello")
    assert lines(file) == []
    assert len(lines(tmp_path / "other")) == 1

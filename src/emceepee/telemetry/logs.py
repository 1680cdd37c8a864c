"""Structured logs: an event name and fields, one line each, as JSON or for reading."""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from emceepee.telemetry.redaction import public_url, redacted

LEVELS = ("debug", "info", "warn", "error")
FORMATS = ("text", "json")
_PYTHON_LEVEL = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_LEVEL_NAME = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn", logging.ERROR: "error"}


class EventLog:
    """`log.info("server_connected", server="github")`: the first word is for machines, the fields for both."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(f"emceepee.{name}")

    def debug(self, event: str, **fields: Any) -> None:
        self._emit(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._emit(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._emit(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._emit(logging.ERROR, event, fields)

    def is_debugging(self) -> bool:
        return self._logger.isEnabledFor(logging.DEBUG)

    def _emit(self, level: int, event: str, fields: Mapping[str, Any]) -> None:
        if self._logger.isEnabledFor(level):
            self._logger.log(level, event, extra={"fields": fields})


def configure(*, level: str = "info", style: str = "text", file: Path | None = None) -> None:
    """Send all logs to stderr, or to `file`. Libraries are heard from warnings on."""
    handler = logging.StreamHandler(sys.stderr) if file is None else logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(JsonLines() if style == "json" else ReadableLines())
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("emceepee").setLevel(_PYTHON_LEVEL[level])
    logging.captureWarnings(capture=True)


class JsonLines(logging.Formatter):
    """One JSON object a line: `level`, `event`, `timestamp`, `data`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "level": _level(record),
            "event": public_url(record.getMessage()),
            "timestamp": _timestamp(record),
            "logger": record.name,
        }
        if data := _data(record, self):
            entry["data"] = data
        return json.dumps(entry, default=str, ensure_ascii=True)


class ReadableLines(logging.Formatter):
    """`12:00:00.000 info  server_connected server=github`."""

    def format(self, record: logging.LogRecord) -> str:
        data = _data(record, self)
        error = data.pop("traceback", None)
        fields = "".join(f" {key}={_readable(value)}" for key, value in data.items())
        line = f"{_timestamp(record)[11:23]} {_level(record):5} {public_url(record.getMessage())}{fields}"
        return line if error is None else f"{line}\n{error}"


def _level(record: logging.LogRecord) -> str:
    return _LEVEL_NAME.get(record.levelno, record.levelname.lower())


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _data(record: logging.LogRecord, formatter: logging.Formatter) -> dict[str, Any]:
    data = {key: redacted(value, name=key) for key, value in getattr(record, "fields", {}).items()}
    if record.exc_info and record.exc_info[0] is not None:
        data["traceback"] = public_url(formatter.formatException(record.exc_info))
    return data


def _readable(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    # Quoted also if a terminal would obey it: backends' own words stand in here.
    plain = bool(text) and text.isprintable() and not any(c in ' "' for c in text)
    return text if plain else json.dumps(text)

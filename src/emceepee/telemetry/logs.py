"""Structured logs: an event name and fields, one line each, as JSON or as readable text."""

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from emceepee.paths import LOG_FORMATS, LOG_LEVELS
from emceepee.telemetry.log_writer import LogWriter, open_log_file
from emceepee.telemetry.redaction import public_url, redacted
from emceepee.telemetry.value_preview import preview
from emceepee.terminal_text import printable

LEVELS, FORMATS = LOG_LEVELS, LOG_FORMATS
STANDARD_ERROR = 2
TEXT_LENGTH = 4096  # characters of one message or field; the rest is cut
_PYTHON_LEVEL = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_LEVEL_NAME = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn", logging.ERROR: "error"}


class EventLog:
    """`log.info("server_connected", server="github")`: programs read the event name, programs and people the fields."""

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


def configure(
    *, level: str = "info", style: str = "text", file: Path | None = None, fields: Mapping[str, Any] | None = None
) -> None:
    """Send all logs to stderr, or to `file`. Libraries log from level warning. `fields` are added to every line.

    Raises:
        OSError: the file cannot be opened.
    """
    handler = QueuedLines(JsonLines(fields) if style == "json" else ReadableLines(fields), file)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    set_level(level)
    logging.captureWarnings(capture=True)


def set_level(level: str) -> None:
    """Set emceepee's log level from now on. The level of libraries stays."""
    logging.getLogger("emceepee").setLevel(_PYTHON_LEVEL[level])


def tell_operator(words: str) -> None:
    """Write one line for the operator to standard error, even if the log goes to a file. Never waits."""
    _standard_error().put(printable(words))


@cache
def _standard_error() -> LogWriter:
    return LogWriter(STANDARD_ERROR, dropped_line=_line_dropped_on_stderr)


def _line_dropped_on_stderr(count: int) -> str:
    """Return the line in the format of the log, if the log goes to standard error."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, QueuedLines) and handler.file is None:
            return handler.dropped_line(count)
    return f"{count} lines were dropped here"


class QueuedLines(logging.Handler):
    """Passes each line to a writer. `flush`, which Python calls at exit, waits briefly for the writer."""

    def __init__(self, formatter: logging.Formatter, file: Path | None) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.file = file
        if file is None:
            self._writer = _standard_error()
        else:
            self._writer = LogWriter(open_log_file(file), dropped_line=self.dropped_line, on_failure=self._failed)

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # a defect of the logging code; Python's own traceback would not be one line
            line = f"a log line of {record.name} could not be written: {error!r}"
        self._writer.put(line)

    def flush(self) -> None:
        self._writer.flush()
        if self.file is not None:
            _standard_error().flush()

    def close(self) -> None:
        if self.file is not None:
            self._writer.close()
        super().close()

    def _failed(self, error: OSError) -> None:
        words = "cannot be written"
        tell_operator(f"emceepee: the log file {self.file} {words}: {error.strerror}; lines are dropped until it can")

    def dropped_line(self, count: int) -> str:
        record = logging.LogRecord("emceepee.logs", logging.WARNING, "", 0, "log_lines_dropped", (), None)
        record.fields = {"count": count}
        return self.format(record)


class _EventLines(logging.Formatter):
    def __init__(self, common_fields: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self.common_fields = common_fields or {}


class JsonLines(_EventLines):
    """One JSON object per line: `level`, `event`, `timestamp`, `data`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "level": _level(record),
            "event": _message(record),
            "timestamp": _timestamp(record),
            "logger": record.name,
        }
        if data := _data(record, self):
            entry["data"] = data
        return json.dumps(entry, default=str, ensure_ascii=True)


class ReadableLines(_EventLines):
    """`12:00:00.000 info  server_connected server=github`."""

    def format(self, record: logging.LogRecord) -> str:
        data = _data(record, self)
        error = data.pop("traceback", None)
        fields = "".join(f" {key}={_readable(value)}" for key, value in data.items())
        line = f"{_timestamp(record)[11:23]} {_level(record):5} {_escaped(_message(record))}{fields}"
        if error is None:
            return line
        # Indented: a traceback may contain foreign text, which must not look like a log line.
        return "\n".join([line, *(f"  {_escaped(part)}" for part in error.split("\n"))])


def _level(record: logging.LogRecord) -> str:
    return _LEVEL_NAME.get(record.levelno, record.levelname.lower())


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    return public_url(_cut(record.getMessage()))


def _data(record: logging.LogRecord, formatter: _EventLines) -> dict[str, Any]:
    """Return the fields, cut before they are redacted: a server may control the amount of work of both."""
    fields: Mapping[str, Any] = {**formatter.common_fields, **getattr(record, "fields", {})}
    data = {key: redacted(preview(_plain(value), TEXT_LENGTH)[0], name=key) for key, value in fields.items()}
    if record.exc_info and record.exc_info[0] is not None:
        data["traceback"] = public_url(_cut(formatter.formatException(record.exc_info)))
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, str | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else str(value)


def _cut(text: str) -> str:
    """Cut the middle of a long text: a traceback ends with the error itself."""
    half = TEXT_LENGTH // 2
    return text if len(text) <= TEXT_LENGTH else f"{text[:half]} ... ({len(text)} characters) ... {text[-half:]}"


def _escaped(text: str) -> str:
    """Escape control characters, so that a terminal executes nothing and the text stays on one line."""
    return text if text.isprintable() else json.dumps(text)[1:-1]


def _readable(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    # Quote text with control characters as well: it may come from a backend.
    plain = bool(text) and text.isprintable() and not any(c in ' "' for c in text)
    return text if plain else json.dumps(text)

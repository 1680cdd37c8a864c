"""The audit log: one line of JSON per request, with its principal, target, time, and outcome.

A digest stands for the arguments, so that a request can later be proven without storing its arguments.
"""

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import orjson

from emceepee.clock import Clock, iso
from emceepee.telemetry.journal import BegunRequest, SpanObserver, SpanOwner
from emceepee.telemetry.log_writer import LogWriter, open_log_file
from emceepee.telemetry.logs import tell_operator
from emceepee.telemetry.redaction import public_url, redacted
from emceepee.telemetry.spans import Span, SpanKind, SpanWatch
from emceepee.telemetry.value_preview import preview
from emceepee.wire.codec import encode, encode_text
from emceepee.wire.json_types import JsonObject

LOOK_SECONDS = 1.0  # between checks for log rotation
ARGUMENT_BYTES = 64 << 10  # of one request's arguments, if logged; the rest is cut
MOST_BYTES = 16 << 20  # waiting to be written: a disk may be slow for a while
_encode_in_order = msgspec.json.Encoder(order="deterministic").encode
_UNSEEN = SpanWatch()  # for requests that only list or query


class AuditLog(SpanObserver):
    """Observes all requests of a process and writes in its own thread. `close` waits briefly for the thread."""

    def __init__(self, path: Path, clock: Clock, *, with_arguments: bool = False) -> None:
        """Raises: OSError."""
        self._path, self._clock, self._with_arguments = path, clock, with_arguments
        self._file: tuple[int, int] | None = None
        self._is_lost = False  # whether the loss of the file has been reported
        self._looked_at = clock.monotonic()
        self._writer = self._open()

    def begin(self, begun: BegunRequest) -> SpanWatch:
        if begun.span.kind is SpanKind.PROTOCOL:
            return _UNSEEN
        shown = redacted(preview(begun.arguments, ARGUMENT_BYTES)[0]) if self._with_arguments else None
        return _AuditedRequest(self, begun.owner, digest(begun.arguments), shown)

    def write(self, line: JsonObject) -> None:
        self._follow_file()
        self._writer.put(encode_text(line))

    def flush(self) -> bool:
        """Wait until all lines are written, with a time limit. Return whether they were."""
        return self._writer.flush()

    def close(self) -> None:
        self.flush()
        self._writer.close()

    def _follow_file(self) -> None:
        """If the file was renamed or removed, as in log rotation, open a new one under the old name."""
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        if _identity(self._path) == self._file:
            return
        try:
            fresh = self._open()
        except OSError as error:
            if not self._is_lost:
                self._failed(error)
            self._is_lost = True
            return
        self._is_lost = False
        self._writer.close()
        self._writer = fresh

    def _open(self) -> LogWriter:
        """Raises: OSError."""
        descriptor = open_log_file(self._path)
        found = os.fstat(descriptor)
        self._file = found.st_dev, found.st_ino
        return LogWriter(descriptor, dropped_line=self._dropped_line, on_failure=self._failed, most_bytes=MOST_BYTES)

    def _failed(self, error: OSError) -> None:
        words = "lines are missing until it can, and calls go on"
        tell_operator(f"emceepee: the audit log {self._path} cannot be written: {error.strerror}; {words}")

    def _dropped_line(self, count: int) -> str:
        return encode_text({"time": iso(self._clock.now()), "event": "audit_lines_dropped", "count": count})


class _AuditedRequest(SpanWatch):
    __slots__ = ("_arguments", "_digest", "_log", "_owner")

    def __init__(self, log: AuditLog, owner: SpanOwner, digested: str, arguments: Any) -> None:
        self._log, self._owner, self._digest, self._arguments = log, owner, digested, arguments

    def ended(self, span: Span, result: JsonObject | None) -> None:
        line: JsonObject = {
            "time": iso(span.at),
            "principal": self._owner.principal,
            "session": self._owner.session_id,
            "kind": str(span.kind),
            "name": public_url(span.name),  # a resource's name is a URL
        }
        if span.server is not None:
            line["server"] = span.server
        line |= {
            "outcome": str(span.status),
            "durationMs": round((span.ended or 0.0) * 1000, 1),
            "argumentsSha256": self._digest,
        }
        if span.task_id is not None:
            line["task"] = span.task_id
        if self._arguments is not None:
            line["arguments"] = self._arguments
        self._log.write(line)


def digest(arguments: JsonObject) -> str:
    """Return the digest of the arguments as compact JSON with sorted keys."""
    try:
        data = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # an integer beyond 64 bits, or the like
        data = _encoded_in_order(arguments)
    return hashlib.sha256(data).hexdigest()


def _encoded_in_order(arguments: JsonObject) -> bytes:
    try:
        return _encode_in_order(arguments)
    except UnicodeEncodeError:  # a lone surrogate, written as the replacement character
        return _encode_in_order(msgspec.json.decode(encode(arguments)))


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat(follow_symlinks=False)
    except OSError:
        return None
    return found.st_dev, found.st_ino

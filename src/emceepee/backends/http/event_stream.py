"""Parser for server-sent events: converts bytes to events."""

from collections.abc import Iterator
from dataclasses import dataclass

from emceepee.backends.http1.http_failures import ResponseTooLarge

TURN_BYTES = 32 << 10  # handled per turn of the event loop: a flood must not delay timers and other callers
_LINE_BYTES = 8  # overhead of a line of data
_RETRY_DIGITS = 9  # more than eleven days in milliseconds is a mistake


def turns(chunk: bytes) -> Iterator[bytes]:
    """Split incoming data into parts. The caller yields to the event loop between them."""
    if len(chunk) <= TURN_BYTES:
        yield chunk
    else:
        for start in range(0, len(chunk), TURN_BYTES):
            yield chunk[start : start + TURN_BYTES]


@dataclass(slots=True)
class Cursor:
    """The position in a stream, needed to resume it after an interruption."""

    last_id: str | None = None
    retry: float = 1.0  # seconds; the server may request a different delay


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    name: str
    data: bytes


class EventParser:
    """Splits lines at LF, CRLF, or CR only (never U+2028). A long line is joined once, not once per chunk."""

    def __init__(self, cursor: Cursor, *, largest: int) -> None:
        self._cursor, self._largest = cursor, largest
        self._unfinished: list[bytes] = []
        self._name = b""
        self._last_id = cursor.last_id  # as last read; valid once its event is complete
        self._data: list[bytes] = []
        self._unfinished_size = self._data_size = 0
        self._after_cr = False

    def feed(self, chunk: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that `chunk` completes. An event without data only moves the cursor.

        Raises:
            ResponseTooLarge: an event exceeds the limit.
        """
        if not chunk:
            return
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._unfinished.append(chunk)
            self._unfinished_size += len(chunk)
        else:
            lines = b"".join([*self._unfinished, chunk]).splitlines(keepends=True)  # bytes: CR, LF, and CRLF only
            self._unfinished = [] if lines[-1].endswith((b"\r", b"\n")) else [lines.pop()]
            self._unfinished_size = sum(map(len, self._unfinished))
            for line in lines:
                if event := self._parse_line(line.rstrip(b"\r\n")):
                    yield event
        if self._unfinished_size + self._data_size > self._largest:
            raise ResponseTooLarge(self._largest)

    def _parse_line(self, line: bytes) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._data_size += len(value) + _LINE_BYTES
        elif name == b"event":
            self._name = value
        elif name == b"id" and b"\0" not in value:
            self._last_id = value.decode("utf-8", "replace") or None
        elif name == b"retry" and value.isdigit() and len(value) <= _RETRY_DIGITS:
            self._cursor.retry = int(value) / 1000
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        data, self._data, self._data_size = b"\n".join(self._data), [], 0
        name, self._name = self._name.decode("utf-8", "replace") or "message", b""
        self._cursor.last_id = self._last_id
        return ServerSentEvent(name, data) if data else None

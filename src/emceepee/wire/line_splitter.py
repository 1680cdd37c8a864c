"""Splits a byte stream into lines, in linear time for any line length."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENDS_KEPT = 256  # bytes stored from each end of a line that is too long
_ID = rb'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{0,100})")'
ANSWERED = re.compile(rb'"(?:result|error)"\s*:')
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
# Programs write the id first or last. Without a full parse, only these positions distinguish it from an id in the
# result.
_AT_HEAD = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID)
_AT_TAIL = re.compile(rb"[,{]\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*\Z")


@dataclass(frozen=True, slots=True)
class TooLongLine:
    """The two ends of a line over the limit, from which its message is identified."""

    head: bytes
    tail: bytes

    @classmethod
    def of(cls, line: bytes) -> "TooLongLine":
        """Return the ends of a line that is complete but unreadable."""
        return cls(line[:ENDS_KEPT], line[-ENDS_KEPT:])

    @property
    def message_id(self) -> int | str | None:
        found = _AT_HEAD.match(self.head) or _AT_TAIL.search(self.tail)
        if found is None:
            return None
        return int(found[1]) if found[1] is not None else found[2].decode("utf-8", "replace")

    @property
    def may_be_an_answer(self) -> bool:
        return self.head.lstrip().startswith((b"{", b"[")) and not self.is_a_request

    @property
    def is_an_answer(self) -> bool:
        """Return whether its ends show an id and a result or an error."""
        answered = ANSWERED.search(self.head) or ANSWERED.search(self.tail)
        return self.may_be_an_answer and self.message_id is not None and answered is not None

    @property
    def is_a_request(self) -> bool:
        """Return whether its head names a method before any result: then it is a request or notification."""
        method, answered = self.head.find(b'"method"'), ANSWERED.search(self.head)
        return method >= 0 and (answered is None or method < answered.start())


class LineSplitter:
    """Splits chunks into lines without their line ends. Of a line over the limit, it stores only the two ends."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self._head: bytes | None = None  # of a line over the limit
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLongLine]:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield self._finish(chunk[start:end])
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:])

    def rest(self) -> bytes | TooLongLine:
        """Return the bytes after the last line end, at the end of the stream."""
        return self._finish(b"")

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._longest:
            self._parts.append(part)
        else:
            self._skip(part)

    def _skip(self, part: bytes) -> None:
        if self._head is None:
            self._parts.append(part)
            self._head, part = _ends(self._parts)
            self._parts.clear()
        self._tail = (self._tail + part[-ENDS_KEPT:])[-ENDS_KEPT:]

    def _finish(self, last: bytes) -> bytes | TooLongLine:
        line: bytes | TooLongLine
        if self._head is not None or self._size + len(last) > self._longest:
            self._skip(last)
            line = TooLongLine(self._head or b"", self._tail)
        else:
            line = (b"".join([*self._parts, last]) if self._parts else last).removesuffix(b"\r")
        self._parts, self._size, self._head, self._tail = [], 0, None, b""
        return line


def _ends(parts: list[bytes]) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a line that is too long to join."""
    head = tail = b""
    for part in parts:
        head += part[: ENDS_KEPT - len(head)]
        if len(head) == ENDS_KEPT:
            break
    for part in reversed(parts):
        tail = part[-ENDS_KEPT:] + tail
        if len(tail) >= ENDS_KEPT:
            break
    return head, tail[-ENDS_KEPT:]

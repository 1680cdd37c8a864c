"""Lines out of a stream of bytes, in linear time however long a line is."""

from collections.abc import Iterator


class LineSplitter:
    """Feed it chunks, get whole lines without their end. A line over the limit comes out as None, and is not kept."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | None]:
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            yield self._finish(chunk[start:end])
            start = end + 1
        if start < len(chunk):
            self._keep(chunk[start:])

    def rest(self) -> bytes | None:
        """What came after the last line end, once nothing more will come."""
        return self._finish(b"")

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._longest:
            self._skipping = True
            self._parts.clear()
        else:
            self._parts.append(part)

    def _finish(self, last: bytes) -> bytes | None:
        too_long = self._skipping or self._size + len(last) > self._longest
        line = b"".join([*self._parts, last]) if self._parts else last
        self._parts, self._size, self._skipping = [], 0, False
        return None if too_long else line.removesuffix(b"\r")

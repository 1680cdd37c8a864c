"""Finds the lines of a long text that match a pattern, while the text is read in pieces."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from emceepee.clock import Clock
from emceepee.state.regex import LineRegex
from emceepee.wire.json_types import JsonObject

MOST_SECONDS = 2.0  # per call; after that, the reply contains the offset from which to continue
LONGEST_SHOWN = 400  # bytes of a line; of a longer line, only the part around the match is shown
AROUND = 120  # bytes before and after the match
LONGEST_LINE = 64 << 10  # bytes that are buffered until a line is complete
OVERLAP = 4 << 10  # bytes of a longer line that are searched twice, for a match across two pieces
ENTRY_BYTES = 48  # approximate size of a match besides its text


@dataclass(slots=True)
class GrepOutcome:
    """The matches, and the offset from which to continue if the search stopped early."""

    matches: list[JsonObject] = field(default_factory=list)
    next_offset: int | None = None


class _Full(Exception):
    """There is no room for another match."""


class LineSearch:
    """A search for matches from byte `start` on, with at most `room` bytes of matches."""

    def __init__(self, regex: LineRegex, *, start: int, room: int, clock: Clock) -> None:
        self._regex, self._room, self._clock = regex, room, clock
        self._data = b""
        self._base = 0  # the offset of `data` in the text
        self._seen = 0  # searched bytes at the beginning of `data`, which anchors still need
        self._line = 1  # the number of the line at the first unsearched byte
        self._from = start  # the first offset in the text at which the next match may begin
        self.outcome = GrepOutcome()

    async def run(self, parts: AsyncIterator[bytes]) -> GrepOutcome:
        from anyio.lowlevel import checkpoint  # imported here, because only grep needs it

        until = self._clock.monotonic() + MOST_SECONDS
        try:
            async for part in parts:
                for at in range(0, len(part), self._regex.window_bytes):
                    await checkpoint()
                    self._take(part[at : at + self._regex.window_bytes])
                    if self._clock.monotonic() > until:
                        self.outcome.next_offset = max(self._base + self._seen, self._from)
                        return self.outcome
            self._search(len(self._data))
        except _Full:
            self.outcome.next_offset = self._from
        return self.outcome

    def _take(self, piece: bytes) -> None:
        self._data += piece
        end = self._data.rfind(b"\n") + 1
        if end <= self._seen:  # the piece contains no line end
            if len(self._data) - self._seen <= LONGEST_LINE:
                return
            end = max(len(self._data) - OVERLAP, self._seen)
        self._search(end)
        self._line += self._data.count(b"\n", self._seen, end)
        self._data = self._data[end - 1 :]
        self._base += end - 1
        self._seen = 1

    def _search(self, end: int) -> None:
        """Add the matches that begin before `end`. Raises: _Full."""
        data, position = self._data, max(self._from - self._base, self._seen)
        while position < end and (found := self._regex.search(data, position)) is not None and found[0] < end:
            first, last = found
            self._from = self._base + first
            text, position = _shown(data, first, last)
            self._add(first, text)
            self._from = self._base + position
        self._from = max(self._from, self._base + end)

    def _add(self, first: int, text: str) -> None:
        size = len(text.encode()) + ENTRY_BYTES
        if self.outcome.matches and size > self._room:
            raise _Full
        self._room -= size
        line = self._line + self._data.count(b"\n", self._seen, first)
        self.outcome.matches.append({"line": line, "offset": self._base + first, "text": text})


def _shown(data: bytes, first: int, last: int) -> tuple[str, int]:
    """Return the line of a match, or the part of it around the match, and the position from which to search on."""
    begin = data.rfind(b"\n", 0, first) + 1
    end = data.find(b"\n", last)
    end = len(data) if end < 0 else end
    if end - begin <= LONGEST_SHOWN:
        return data[begin:end].decode("utf-8", "ignore"), end + 1
    left, right = max(begin, first - AROUND), min(end, min(last, first + AROUND) + AROUND)
    words = data[left:right].decode("utf-8", "ignore")
    return f"{'…' if left > begin else ''}{words}{'…' if right < end else ''}", max(right, first + 1)

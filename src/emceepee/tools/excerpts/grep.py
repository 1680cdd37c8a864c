"""Lines of a long text that match a pattern, found while it is read piece by piece."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from emceepee.clock import Clock
from emceepee.state.regex import LineRegex
from emceepee.wire.json_types import JsonObject

MOST_SECONDS = 2.0  # of one call; then the reply names the line to continue from
LONGEST_SHOWN = 400  # bytes of a line; of a longer one what is around the match
AROUND = 120  # bytes
LONGEST_LINE = 64 << 10  # bytes that are held to have a line whole
OVERLAP = 4 << 10  # bytes of a longer line that are searched twice, for a match across two pieces
ENTRY_BYTES = 48  # of a match besides its text, about


@dataclass(slots=True)
class GrepOutcome:
    """`next_offset`: the search did not come to the end, and goes on there."""

    matches: list[JsonObject] = field(default_factory=list)
    next_offset: int | None = None


class _Full(Exception):
    """There is no room for another match."""


class LineSearch:
    """`start` is the byte from which on matches count, `room` how many bytes they may take."""

    def __init__(self, regex: LineRegex, *, start: int, room: int, clock: Clock) -> None:
        self._regex, self._room, self._clock = regex, room, clock
        self._data = b""
        self._base = 0  # where `data` begins in the text
        self._seen = 0  # bytes of it that were searched, and are there for anchors to see
        self._line = 1  # in which what is not searched begins
        self._from = start  # where in the text the next match may begin
        self.outcome = GrepOutcome()

    async def run(self, parts: AsyncIterator[bytes]) -> GrepOutcome:
        from anyio.lowlevel import checkpoint  # here: nothing else needs it

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
        if end <= self._seen:  # no line ends in it
            if len(self._data) - self._seen <= LONGEST_LINE:
                return
            end = max(len(self._data) - OVERLAP, self._seen)
        self._search(end)
        self._line += self._data.count(b"\n", self._seen, end)
        self._data = self._data[end - 1 :]
        self._base += end - 1
        self._seen = 1

    def _search(self, end: int) -> None:
        """Matches that begin before `end`. Raises: _Full."""
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
    """The line of a match, or what is around it; and where to look for the next one."""
    begin = data.rfind(b"\n", 0, first) + 1
    end = data.find(b"\n", last)
    end = len(data) if end < 0 else end
    if end - begin <= LONGEST_SHOWN:
        return data[begin:end].decode("utf-8", "ignore"), end + 1
    left, right = max(begin, first - AROUND), min(end, min(last, first + AROUND) + AROUND)
    words = data[left:right].decode("utf-8", "ignore")
    return f"{'…' if left > begin else ''}{words}{'…' if right < end else ''}", max(right, first + 1)

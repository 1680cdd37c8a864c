"""What went out to one caller as server-sent events, kept a while. Replay and live reading are one list: no gap between
them can lose a message, and none is written before it is kept.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass

from emceepee.clock import Clock, within
from emceepee.ids import Ulids
from emceepee.state.limits import Limits
from emceepee.web.streams import PING_SECONDS

PUSH = ""  # the stream that belongs to no request
FRESH_SECONDS = 10.0  # however large it is, a message stays this long: its reader may be just about to take it


@dataclass(frozen=True, slots=True)
class Kept:
    """One message. Empty data only gives the caller an id to come back with."""

    number: int
    event_id: str
    stream: str
    data: bytes
    is_final: bool
    at: float


class MessageLog:
    """Ids are looked up, never parsed: a caller can come back only with one that it was given here."""

    def __init__(self, clock: Clock, ids: Ulids, limits: Limits) -> None:
        self._clock, self._ids = clock, ids
        self._most, self._keep, self._most_bytes = limits.replay_messages, limits.replay_seconds, limits.replay_bytes
        self._kept: deque[Kept] | None = None  # most sessions never stream
        self._bytes = 0
        self._newest: dict[str, Kept] = {}  # of each stream that goes on: a silent one can be taken up after hours
        self._evicted: dict[str, int] = {}  # the newest number let go, of each stream whose end is kept
        self._pausing: set[str] = set()
        self._next = 1
        self._grown: asyncio.Future[None] | None = None

    @property
    def last_number(self) -> int:
        return self._next - 1

    def append(self, stream: str, data: bytes, *, is_final: bool = False) -> Kept:
        if self._kept is None:
            self._kept = deque()
        entry = Kept(self._next, self._ids.new(), stream, data, is_final, self._clock.monotonic())
        self._next += 1
        self._kept.append(entry)
        self._bytes += len(data)
        self._evict(self._kept, entry.at)
        if is_final:
            self._newest.pop(stream, None)
        else:
            self._newest[stream] = entry
        self._wake()
        return entry

    def find(self, event_id: str) -> Kept | None:
        """The message with that id, if it is still kept."""
        for entries in (self._kept or (), self._newest.values()):
            for entry in entries:
                if entry.event_id == event_id:
                    return entry
        return None

    def pause(self, stream: str) -> None:
        """Its reader ends as soon as it has read what there is, and is expected to come back for the rest."""
        self._pausing.add(stream)
        self._wake()

    async def follow(self, stream: str, after: int) -> AsyncIterator[Kept | None]:
        """All of `stream` behind `after`, then what comes, up to its final message; None now and then when idle.

        A reader so slow that messages are let go which it has not seen is let go too: better an end than a gap.
        """
        after = max(after, self._evicted.get(stream, 0))
        while True:
            if self._evicted.get(stream, 0) > after:
                return
            batch = [entry for entry in self._kept or () if entry.number > after and entry.stream == stream]
            for entry in batch:
                yield entry
                after = entry.number
                if entry.is_final:
                    return
            if batch:
                continue  # more may have come while the reader took these
            if stream != PUSH and stream not in self._newest:
                return  # it is over, and its end was read or is not kept any more
            if stream in self._pausing:
                self._pausing.discard(stream)
                return
            after = max(after, self.last_number)
            try:
                await within(self._clock, PING_SECONDS, self._growth())
            except TimeoutError:
                yield None

    def _evict(self, kept: deque[Kept], now: float) -> None:
        while len(kept) > self._most or kept[0].at + self._keep < now or self._is_heavy(kept[0], now):
            gone = kept.popleft()
            self._bytes -= len(gone.data)
            if gone.is_final:
                self._evicted.pop(gone.stream, None)
            else:
                self._evicted[gone.stream] = gone.number

    def _is_heavy(self, oldest: Kept, now: float) -> bool:
        return self._bytes > self._most_bytes and oldest.at + FRESH_SECONDS < now

    def _wake(self) -> None:
        if self._grown is not None:
            grown, self._grown = self._grown, None
            grown.set_result(None)

    def _growth(self) -> "asyncio.Future[None]":
        if self._grown is None:
            self._grown = asyncio.get_running_loop().create_future()
        return self._grown

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

PUSH = ""  # the stream that belongs to no request
PING_SECONDS = 15.0  # so that nobody on the way takes a silent stream for a dead one


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
        self._most, self._keep = limits.replay_messages, limits.replay_seconds
        self._kept: deque[Kept] | None = None  # most sessions never stream
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
        while len(self._kept) > self._most or self._kept[0].at + self._keep < entry.at:
            self._kept.popleft()
        if self._grown is not None:
            grown, self._grown = self._grown, None
            grown.set_result(None)
        return entry

    def find(self, event_id: str) -> Kept | None:
        """The message with that id, if it is still kept."""
        return next((entry for entry in self._kept or () if entry.event_id == event_id), None)

    async def follow(self, stream: str, after: int) -> AsyncIterator[Kept | None]:
        """All of `stream` behind `after`, then what comes, up to its final message; None now and then when idle."""
        while True:
            batch = [entry for entry in self._kept or () if entry.number > after and entry.stream == stream]
            for entry in batch:
                yield entry
                after = entry.number
                if entry.is_final:
                    return
            if batch:
                continue  # more may have come while the reader took these
            after = max(after, self.last_number)
            try:
                await within(self._clock, PING_SECONDS, self._growth())
            except TimeoutError:
                yield None

    def _growth(self) -> "asyncio.Future[None]":
        if self._grown is None:
            self._grown = asyncio.get_running_loop().create_future()
        return self._grown

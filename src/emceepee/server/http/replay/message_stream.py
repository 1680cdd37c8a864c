"""One stream of a caller: its stored messages, and how far its reader has read."""

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from emceepee.wire.json_rpc import RequestId


@dataclass(frozen=True, slots=True)
class Kept:
    """One message. A message with empty data only gives the caller an id for resuming."""

    number: int
    event_id: str
    stream: str
    data: bytes
    is_final: bool
    at: float
    request_id: RequestId | None = None  # in the first message of a request's stream

    @property
    def sent_id(self) -> str:
        """The id that callers get. It names the stream, so it still leads there after this message was evicted."""
        return f"{self.event_id}-{suffix_of(self.stream)}"


def suffix_of(stream: str) -> str:
    """Return the part of a message id that names its stream: the number of a request's stream, else 0."""
    return stream.rpartition(" ")[2] or "0"


@dataclass(slots=True, eq=False)
class Stream:
    """The oldest message is first. An evicted message can still mark where the caller stopped reading."""

    kept: deque[Kept] = field(default_factory=deque)
    newest: Kept | None = None  # of an open stream, so that it can be resumed even after eviction
    taken: int = 0  # the number of the newest message that a reader took
    missed: int = 0
    readers: int = 0
    grown: "asyncio.Future[None] | None" = None

    @property
    def answer(self) -> Kept | None:
        """The final message, if it exists and was not evicted."""
        return self.kept[-1] if self.kept and self.kept[-1].is_final else None

    def add(self, entry: Kept) -> None:
        self.kept.append(entry)
        self.newest = None if entry.is_final else entry

    def remove(self, entry: Kept) -> None:
        """Evict a message. An unread message counts as missed."""
        if self.kept[0] is entry:  # the usual case
            self.kept.popleft()
        else:
            self.kept.remove(entry)
        if self.newest is entry:
            self.newest = replace(entry, data=b"")
        if entry.number > self.taken and entry.data:
            self.missed += 1

    def after(self, number: int) -> list[Kept]:
        found: list[Kept] = []
        for entry in reversed(self.kept):
            if entry.number <= number:
                break
            found.append(entry)
        return found[::-1]

    def number_before(self, event_id: str) -> int:
        """Return the number after which to resume, for an event id of this stream whose message was evicted."""
        later = next((entry for entry in self.kept if entry.event_id > event_id), None)
        return self.taken if later is None else later.number - 1

    def wake(self) -> None:
        if self.grown is not None:
            grown, self.grown = self.grown, None
            grown.set_result(None)

    def growth(self) -> "asyncio.Future[None]":
        if self.grown is None:
            self.grown = asyncio.get_running_loop().create_future()
        return self.grown

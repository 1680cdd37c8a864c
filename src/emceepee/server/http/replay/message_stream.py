"""One stream of a caller: the messages that are kept of it, and what its reader took."""

import asyncio
from collections import deque
from dataclasses import dataclass, field, replace

from emceepee.wire.json_rpc import RequestId


@dataclass(frozen=True, slots=True)
class Kept:
    """One message. Empty data only gives the caller an id to come back with."""

    number: int
    event_id: str
    stream: str
    data: bytes
    is_final: bool
    at: float
    request_id: RequestId | None = None  # of the first one: whose stream this is

    @property
    def sent_id(self) -> str:
        """The id that callers get. It names the stream, and so leads there even after this message was evicted."""
        return f"{self.event_id}-{suffix_of(self.stream)}"


def suffix_of(stream: str) -> str:
    """What names a stream in the ids of its messages: the number of a request's stream, else 0."""
    return stream.rpartition(" ")[2] or "0"


@dataclass(slots=True, eq=False)
class Stream:
    """The oldest message is first. One that is not kept can still be where the caller stopped reading."""

    kept: deque[Kept] = field(default_factory=deque)
    newest: Kept | None = None  # of an open stream, so that it can be resumed even after eviction
    taken: int = 0  # the number of the newest message that a reader took
    missed: int = 0
    readers: int = 0
    grown: "asyncio.Future[None] | None" = None

    @property
    def answer(self) -> Kept | None:
        """The final message, if it is there and kept."""
        return self.kept[-1] if self.kept and self.kept[-1].is_final else None

    def add(self, entry: Kept) -> None:
        self.kept.append(entry)
        self.newest = None if entry.is_final else entry

    def remove(self, entry: Kept) -> None:
        """Evict it. An unread message counts as missed."""
        if self.kept[0] is entry:  # as nearly always
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
        """Where reading goes on behind an id of this stream whose message is not kept any more."""
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

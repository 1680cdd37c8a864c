"""What went out to one caller as server-sent events, kept a while. Replay and live reading are one list per stream: no
gap between them can lose a message, and none is written before it is kept.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from emceepee.clock import Clock, within
from emceepee.ids import Ulids
from emceepee.json_rpc import RequestId
from emceepee.state.limits import Limits
from emceepee.web.streams import PING_SECONDS

PUSH = ""  # the stream that belongs to no request
FRESH_SECONDS = 10.0  # however large it is, a message stays this long: its reader may be just about to take it
SPARE_SHARE = 0.1  # evicted beyond what is needed, so that eviction does not run for every message


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


@dataclass(frozen=True, slots=True)
class Gap:
    """So many messages were evicted before their reader took them."""

    count: int


class MessageRecords(Protocol):
    """Where messages are kept besides."""

    def mark(self, number: int) -> None:
        """It is new, or gone."""
        ...

    @property
    def is_unsaved(self) -> bool: ...

    @property
    def is_lost(self) -> bool:
        """Whether nothing is kept here any more, because another process has the session, or may have it."""
        ...

    async def save(self) -> None:
        """Returns when all that was marked is saved, or cannot be."""
        ...


@dataclass(slots=True, eq=False)
class _Stream:
    kept: deque[Kept] = field(default_factory=deque)
    newest: Kept | None = None  # of an open stream, so that it can be resumed even after eviction
    taken: int = 0  # the number of the newest message that a reader took
    missed: int = 0
    readers: int = 0
    grown: "asyncio.Future[None] | None" = None

    def after(self, number: int) -> list[Kept]:
        found: list[Kept] = []
        for entry in reversed(self.kept):
            if entry.number <= number:
                break
            found.append(entry)
        return found[::-1]

    def wake(self) -> None:
        if self.grown is not None:
            grown, self.grown = self.grown, None
            grown.set_result(None)

    def growth(self) -> "asyncio.Future[None]":
        if self.grown is None:
            self.grown = asyncio.get_running_loop().create_future()
        return self.grown


class MessageLog:
    """Ids are looked up, never parsed: a caller can come back only with one that it was given here.

    With `records`, what is kept here outlives the process, and no message is read before it is saved.
    """

    def __init__(self, clock: Clock, ids: Ulids, limits: Limits, records: MessageRecords | None = None) -> None:
        self._clock, self._ids, self._records = clock, ids, records
        self._most, self._keep, self._most_bytes = limits.replay_messages, limits.replay_seconds, limits.replay_bytes
        self._streams: dict[str, _Stream] = {}
        self._entries: dict[int, Kept] = {}  # of all streams, by their numbers
        self._bytes = 0
        self._spare_count = int(self._most * SPARE_SHARE)
        self._full_at = self._most  # how many messages there may be before any is evicted
        self._tidy_at = 0.0  # when to look for what is old
        self._next = 1

    @property
    def last_number(self) -> int:
        return self._next - 1

    def append(self, stream: str, data: bytes, *, is_final: bool = False, request_id: RequestId | None = None) -> Kept:
        entry = Kept(self._next, self._ids.new(), stream, data, is_final, self._clock.monotonic(), request_id)
        written = self._enter(entry)
        if self._records is not None and (is_final or not data or stream == PUSH):
            self._records.mark(entry.number)  # what is on the way to an answer is kept once it is about to be read
        if len(self._entries) > self._full_at or entry.at >= self._tidy_at:
            self._make_room(entry.at)
        written.wake()
        return entry

    def _enter(self, entry: Kept) -> _Stream:
        self._next = entry.number + 1
        stream = self._stream(entry.stream)
        stream.kept.append(entry)
        stream.newest = None if entry.is_final else entry
        self._entries[entry.number] = entry
        self._bytes += len(entry.data)
        return stream

    def find(self, event_id: str) -> Kept | None:
        """The message with that id, if it is still kept."""
        for stream in self._streams.values():
            for entry in (*stream.kept, stream.newest):
                if entry is not None and entry.event_id == event_id:
                    return entry
        return None

    def unread(self, name: str) -> int:
        """How many messages of a stream its reader has still to take."""
        stream = self._streams.get(name)
        return 0 if stream is None else len(stream.after(stream.taken))

    async def follow(self, name: str, after: int) -> AsyncIterator[Kept | Gap | None]:
        """All of a stream behind `after`, then what comes, up to its final message; None now and then when idle.

        A reader so slow that messages were evicted which it has not seen gets a Gap, and goes on with what is kept.
        """
        stream = self._stream(name)
        stream.readers += 1
        try:
            while True:
                if stream.missed:
                    missed, stream.missed = stream.missed, 0
                    yield Gap(missed)
                entries = stream.after(after)
                for entry in entries:
                    if self._records is not None:
                        if entry.number > stream.taken and not entry.is_final:
                            self._records.mark(entry.number)
                        if self._records.is_unsaved:
                            await self._records.save()
                        if self._records.is_lost and not entry.is_final:
                            after = entry.number  # nobody could come back with its id
                            continue
                    after = entry.number
                    if entry.is_final:
                        yield entry
                        stream.taken = after  # not before it is written: until then nothing may take its place
                        return
                    stream.taken = max(stream.taken, after)
                    yield entry
                    if stream.missed:
                        break
                if entries:
                    continue  # more may have come while the reader took these
                if name != PUSH and stream.newest is None:
                    return  # it is over, and its end was read or is not kept any more
                try:
                    await within(self._clock, PING_SECONDS, stream.growth())
                except TimeoutError:
                    yield None
        finally:
            stream.readers -= 1

    # At rest.

    @property
    def numbers(self) -> list[int]:
        return list(self._entries)

    def message(self, number: int) -> Kept | None:
        """The message of that number, if it is still kept."""
        return self._entries.get(number)

    def restore(self, entries: Iterable[Kept]) -> list[tuple[str, RequestId | None]]:
        """Of a process that has ended; returns the streams that were open, and whose request each belongs to."""
        requests: dict[str, RequestId | None] = {}
        for entry in sorted(entries, key=lambda entry: entry.number):
            self._enter(entry).taken = entry.number
            self._ids.continue_after(entry.event_id)
            requests.setdefault(entry.stream, entry.request_id)
        is_open = {name for name, stream in self._streams.items() if stream.newest is not None}
        return [(name, request_id) for name, request_id in requests.items() if name in is_open and name != PUSH]

    def _stream(self, name: str) -> _Stream:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = _Stream()
        return stream

    def _make_room(self, now: float) -> None:
        """Evict what is old, then what is too much."""
        self._tidy_at = now + FRESH_SECONDS
        for entry, stream in self._all():
            if entry.at + self._keep < now:
                self._evict(entry, stream)
        if len(self._entries) > self._most or self._bytes > self._most_bytes:
            enough = self._most - self._spare_count
            for entry, stream in self._spare():
                if len(self._entries) > enough or (self._bytes > self._most_bytes and entry.at + FRESH_SECONDS < now):
                    self._evict(entry, stream)
        self._full_at = max(self._most, len(self._entries) + self._spare_count)
        over = [name for name, stream in self._streams.items() if not (stream.kept or stream.newest or stream.readers)]
        for name in over:
            del self._streams[name]

    def _all(self) -> list[tuple[Kept, _Stream]]:
        everything = [(entry, stream) for stream in self._streams.values() for entry in stream.kept]
        return sorted(everything, key=lambda pair: pair[0].number)

    def _spare(self) -> Iterator[tuple[Kept, _Stream]]:
        """What can be spared, in this order; an answer that its reader is about to take never can."""
        everything = self._all()
        yield from ((entry, stream) for entry, stream in everything if entry.number <= stream.taken)
        unread = [(entry, stream) for entry, stream in everything if entry.number > stream.taken]
        yield from self._flooding([(entry, stream) for entry, stream in unread if not entry.is_final])
        yield from ((entry, stream) for entry, stream in unread if entry.is_final and not stream.readers)

    def _flooding(self, unread: list[tuple[Kept, _Stream]]) -> Iterator[tuple[Kept, _Stream]]:
        """Always the oldest of the stream that has most: no stream's flood takes another's place."""
        waiting: dict[_Stream, deque[Kept]] = {}
        for entry, stream in unread:
            waiting.setdefault(stream, deque()).append(entry)
        while waiting:
            fullest = max(waiting, key=lambda stream: len(waiting[stream]))
            yield waiting[fullest].popleft(), fullest
            if not waiting[fullest]:
                del waiting[fullest]

    def _evict(self, entry: Kept, stream: _Stream) -> None:
        stream.kept.remove(entry)
        if self._records is not None:
            self._records.mark(entry.number)
        del self._entries[entry.number]
        self._bytes -= len(entry.data)
        if entry.number > stream.taken and entry.data:
            stream.missed += 1

"""What went out to one caller as server-sent events, kept a while. Replay and live reading are one list per stream: no
gap between them can lose a message, and none is written before it is kept.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Protocol

from emceepee.clock import Clock, Handle, within
from emceepee.ids import ULID_LENGTH, Ulids
from emceepee.server.http.replay.message_eviction import FRESH_SECONDS, Room, surplus
from emceepee.server.http.replay.message_stream import Kept, Stream, suffix_of
from emceepee.state.limits import Limits
from emceepee.web.streams import PING_SECONDS
from emceepee.wire.json_rpc import RequestId

PUSH = ""  # the stream that belongs to no request
BATCH_MESSAGES, BATCH_BYTES = 100, 256 << 10  # of one stream saved at once: a commit for each would take seconds
SPARE_SHARE = 0.1  # evicted beyond what is needed, so that eviction does not run for every message


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


class MessageLog:
    """A caller can come back only with an id of a stream that is kept here.

    With `records`, what is kept here outlives the process, and no message is read before it is saved.
    """

    def __init__(self, clock: Clock, ids: Ulids, limits: Limits, records: MessageRecords | None = None) -> None:
        self._clock, self._ids, self._records = clock, ids, records
        self._most, self._keep, self._most_bytes = limits.replay_messages, limits.replay_seconds, limits.replay_bytes
        self._spare_count, self._spare_bytes = int(self._most * SPARE_SHARE), int(self._most_bytes * SPARE_SHARE)
        self._streams: dict[str, Stream] = {}
        self._entries: dict[int, Kept] = {}  # of all streams, by their numbers
        self._bytes = 0
        self._full_at = self._most  # how many messages there may be before any is evicted
        self._heavy_at = self._most_bytes  # and of how many bytes
        self._tidy_at = 0.0  # when to look for what is old
        self._tidying: Handle | None = None  # while there is too much, all of it fresh
        self._next = 1

    @property
    def last_number(self) -> int:
        return self._next - 1

    def append(self, stream: str, data: bytes, *, is_final: bool = False, request_id: RequestId | None = None) -> Kept:
        entry = Kept(self._next, self._ids.new(), stream, data, is_final, self._clock.monotonic(), request_id)
        written = self._enter(entry)
        if self._records is not None and (is_final or not data or stream == PUSH):
            self._records.mark(entry.number)  # what is on the way to an answer is kept once it is about to be read
        if len(self._entries) > self._full_at or self._bytes > self._heavy_at or entry.at >= self._tidy_at:
            self._make_room(entry.at)
        self._tidy_soon()
        written.wake()
        return entry

    def _enter(self, entry: Kept) -> Stream:
        self._next = entry.number + 1
        stream = self._stream(entry.stream)
        stream.add(entry)
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

    def position(self, sent_id: str) -> tuple[str, int] | None:
        """The stream of an id, and the number to read it from behind; None if its answer is not kept.

        An id of an earlier version names no stream.
        """
        event_id, _, suffix = sent_id.partition("-")
        found = self.find(event_id)
        for name, stream in self._streams.items():
            is_named = suffix == suffix_of(name) if found is None or suffix else name == found.stream
            if is_named and len(event_id) == ULID_LENGTH and (stream.newest is not None or stream.answer is not None):
                return name, stream.number_before(event_id) if found is None else found.number
        return None

    def hold(self, name: str) -> None:
        """A reader is about to follow the stream: its answer stays until `release`."""
        self._stream(name).readers += 1

    def release(self, name: str) -> None:
        if (stream := self._streams.get(name)) is not None:
            stream.readers -= 1

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
                entries = _batch(stream.after(after))
                if self._records is not None and entries:
                    await self._save(self._records, entries, stream)
                for entry in entries:
                    after = entry.number
                    if self._records is not None and self._records.is_lost and not entry.is_final:
                        continue  # nobody could come back with its id
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

    async def _save(self, records: MessageRecords, entries: list[Kept], stream: Stream) -> None:
        """Returns when they can be read."""
        for entry in entries:
            if entry.number > stream.taken and not entry.is_final:
                records.mark(entry.number)
        if records.is_unsaved:
            await records.save()

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

    def _stream(self, name: str) -> Stream:
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream()
        return stream

    def _tidy_soon(self) -> None:
        """Nothing else may ever be written here."""
        if self._bytes > self._most_bytes and self._tidying is None:
            self._tidying = self._clock.call_later(FRESH_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._tidying = None
        self._make_room(self._clock.monotonic())
        self._tidy_soon()

    def _make_room(self, now: float) -> None:
        """Evict what is old, then what is too much."""
        self._tidy_at = now + FRESH_SECONDS
        for stream in self._streams.values():
            while stream.kept and stream.kept[0].at + self._keep < now:
                oldest = stream.kept[0]
                if oldest.is_final and oldest.number > stream.taken and stream.readers:
                    break  # its reader is slow, and gets it
                self._evict(oldest, stream)
        if len(self._entries) > self._most or self._bytes > self._most_bytes:
            enough = self._most - self._spare_count if len(self._entries) > self._most else self._most
            room = Room(messages=enough, bytes=self._most_bytes)
            for entry, stream in surplus(self._streams.values(), room, now):
                self._evict(entry, stream)
        self._full_at = max(self._most, len(self._entries) + self._spare_count)
        self._heavy_at = max(self._most_bytes, self._bytes + self._spare_bytes)
        over = [name for name, stream in self._streams.items() if not (stream.kept or stream.newest or stream.readers)]
        for name in over:
            del self._streams[name]

    def _evict(self, entry: Kept, stream: Stream) -> None:
        stream.remove(entry)
        if self._records is not None:
            self._records.mark(entry.number)
        del self._entries[entry.number]
        self._bytes -= len(entry.data)


def _batch(entries: list[Kept]) -> list[Kept]:
    """The first of them, which are saved and then written together."""
    size = 0
    for count, entry in enumerate(entries[:BATCH_MESSAGES]):
        size += len(entry.data)
        if size > BATCH_BYTES:
            return entries[: count + 1]
    return entries[:BATCH_MESSAGES]

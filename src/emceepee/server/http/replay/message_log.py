"""A log of the recent server-sent events for one caller. Replay and live reading use the same list per stream, so no
message can be lost between them. Every message is logged before it is written.
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

REPLAY_BYTES = 32 << 20  # per log
PUSH = ""  # the stream that belongs to no request
BATCH_MESSAGES, BATCH_BYTES = 100, 256 << 10  # of one stream saved together: a commit per message would take seconds
SPARE_SHARE = 0.1  # evicted beyond the need, so that eviction does not run for every message


@dataclass(frozen=True, slots=True)
class Gap:
    """Marks messages that were evicted before their reader took them."""

    count: int


class MessageRecords(Protocol):
    """Persistent storage of messages."""

    def mark(self, number: int) -> None:
        """Mark the message as new or removed."""
        ...

    @property
    def is_unsaved(self) -> bool: ...

    @property
    def is_lost(self) -> bool:
        """Whether storing has ended here, because another process holds the session, or may hold it."""
        ...

    async def save(self) -> None:
        """Return when all marked messages are saved, or cannot be."""
        ...


class MessageLog:
    """A caller can resume only with an event id of a stream in this log.

    With `records`, the log outlives the process, and no message is read before it is saved.
    """

    def __init__(
        self,
        clock: Clock,
        ids: Ulids,
        limits: Limits,
        records: MessageRecords | None = None,
        *,
        most_bytes: int = REPLAY_BYTES,
    ) -> None:
        self._clock, self._ids, self._records = clock, ids, records
        self._most, self._keep, self._most_bytes = limits.replay_messages, limits.replay_seconds, most_bytes
        self._spare_count, self._spare_bytes = int(self._most * SPARE_SHARE), int(self._most_bytes * SPARE_SHARE)
        self._streams: dict[str, Stream] = {}
        self._entries: dict[int, Kept] = {}  # of all streams, by number
        self._bytes = 0
        self._full_at = self._most  # the number of messages that triggers eviction
        self._heavy_at = self._most_bytes  # the number of bytes that triggers eviction
        self._tidy_at = 0.0  # when to evict old messages next
        self._tidying: Handle | None = None  # set while the messages exceed their room and all are fresh
        self._next = 1

    @property
    def last_number(self) -> int:
        return self._next - 1

    def append(self, stream: str, data: bytes, *, is_final: bool = False, request_id: RequestId | None = None) -> Kept:
        entry = Kept(self._next, self._ids.new(), stream, data, is_final, self._clock.monotonic(), request_id)
        written = self._enter(entry)
        if self._records is not None and (is_final or not data or stream == PUSH):
            self._records.mark(entry.number)  # messages before an answer are marked once a reader is about to take them
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
        """Return the message with that id, or None if it was evicted."""
        for stream in self._streams.values():
            for entry in (*stream.kept, stream.newest):
                if entry is not None and entry.event_id == event_id:
                    return entry
        return None

    def position(self, sent_id: str) -> tuple[str, int] | None:
        """Return the stream of an id, and the number after which to read it. None if its answer was evicted.

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
        """Protect a stream's answer from eviction until `release`, because a reader is about to follow the stream."""
        self._stream(name).readers += 1

    def release(self, name: str) -> None:
        if (stream := self._streams.get(name)) is not None:
            stream.readers -= 1

    def unread(self, name: str) -> int:
        """Return how many messages of a stream its reader has not taken yet."""
        stream = self._streams.get(name)
        return 0 if stream is None else len(stream.after(stream.taken))

    async def follow(self, name: str, after: int) -> AsyncIterator[Kept | Gap | None]:
        """Yield the messages of a stream after `after`, then new ones up to its final message, and None when idle.

        A slow reader whose unread messages were evicted gets a Gap, and continues with the remaining messages.
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
                        continue  # no caller could resume with its id
                    if entry.is_final:
                        yield entry
                        stream.taken = after  # only after it was written: until then it must not be evicted
                        return
                    stream.taken = max(stream.taken, after)
                    yield entry
                    if stream.missed:
                        break
                if entries:
                    continue  # more messages may have arrived while the reader took these
                if name != PUSH and stream.newest is None:
                    return  # the stream is complete, and its end was read or evicted
                try:
                    await within(self._clock, PING_SECONDS, stream.growth())
                except TimeoutError:
                    yield None
        finally:
            stream.readers -= 1

    async def _save(self, records: MessageRecords, entries: list[Kept], stream: Stream) -> None:
        """Return when the messages are saved and can be read."""
        for entry in entries:
            if entry.number > stream.taken and not entry.is_final:
                records.mark(entry.number)
        if records.is_unsaved:
            await records.save()

    # Persistence.

    @property
    def numbers(self) -> list[int]:
        return list(self._entries)

    def message(self, number: int) -> Kept | None:
        """Return the message with that number, or None if it was evicted."""
        return self._entries.get(number)

    def restore(self, entries: Iterable[Kept]) -> list[tuple[str, RequestId | None]]:
        """Restore the messages of an ended process. Return the open streams and the ids of their requests."""
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
        """Schedule an eviction: perhaps no further message ever triggers one."""
        if self._bytes > self._most_bytes and self._tidying is None:
            self._tidying = self._clock.call_later(FRESH_SECONDS, self._tidy)

    def _tidy(self) -> None:
        self._tidying = None
        self._make_room(self._clock.monotonic())
        self._tidy_soon()

    def _make_room(self, now: float) -> None:
        """Evict old messages, then surplus messages."""
        self._tidy_at = now + FRESH_SECONDS
        for stream in self._streams.values():
            while stream.kept and stream.kept[0].at + self._keep < now:
                oldest = stream.kept[0]
                if oldest.is_final and oldest.number > stream.taken and stream.readers:
                    break  # its slow reader still receives it
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
    """Return the first messages, to be saved and then written together."""
    size = 0
    for count, entry in enumerate(entries[:BATCH_MESSAGES]):
        size += len(entry.data)
        if size > BATCH_BYTES:
            return entries[: count + 1]
    return entries[:BATCH_MESSAGES]

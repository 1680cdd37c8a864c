"""Chooses the messages of a connection to evict when there are too many, or when together they are too large.

    notifications   first delivered ones, then the others; always the oldest of the stream that uses the
                    most room; until notifications use no more than a quarter of the room
    answers         too many: the oldest; too large: the largest. An answer with a reader is never evicted
    notifications   the rest, if no answer can be evicted

A flood therefore evicts its own messages first, and no number of notifications evicts an answer. A fresh message,
however large, stays while all messages together take no more than twice their room, because its reader may be about
to take it.
"""

import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from emceepee.server.http.replay.message_stream import Kept, Stream

FRESH_SECONDS = 10.0
FRESH_ROOM = 2  # times the room in bytes: beyond it, even a fresh message is evicted
NOTIFICATIONS_SHARE = 0.25  # of the room: notifications within this share outlast the answers
Evicted = tuple[Kept, Stream]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The limits on the number and the bytes of messages."""

    messages: int
    bytes: int

    def share(self, entry: Kept) -> float:
        """Return the fraction of the room that a message takes."""
        return 1 / self.messages + len(entry.data) / self.bytes


class _Totals:
    """The totals that would remain if eviction stopped here."""

    def __init__(self, streams: Collection[Stream], room: Room, now: float) -> None:
        entries = [entry for stream in streams for entry in stream.kept]
        notifications = [entry for entry in entries if not entry.is_final]
        self._room, self._stale_before = room, now - FRESH_SECONDS
        self.count, self.bytes = len(entries), sum(len(entry.data) for entry in entries)
        self._notifications, self._notification_bytes = len(notifications), sum(len(one.data) for one in notifications)

    @property
    def has_too_many(self) -> bool:
        return self.count > self._room.messages

    @property
    def is_too_large(self) -> bool:
        return self.bytes > self._room.bytes

    @property
    def is_over(self) -> bool:
        return self.has_too_many or self.is_too_large

    @property
    def notifications_have_more_than_their_share(self) -> bool:
        return (self.has_too_many and self._notifications > NOTIFICATIONS_SHARE * self._room.messages) or (
            self.is_too_large and self._notification_bytes > NOTIFICATIONS_SHARE * self._room.bytes
        )

    def may_go(self, entry: Kept) -> bool:
        if self.has_too_many:
            return True
        return self.is_too_large and (entry.at <= self._stale_before or self.bytes > FRESH_ROOM * self._room.bytes)

    def remove(self, entry: Kept) -> None:
        self.count -= 1
        self.bytes -= len(entry.data)
        if not entry.is_final:
            self._notifications -= 1
            self._notification_bytes -= len(entry.data)


def surplus(streams: Collection[Stream], room: Room, now: float) -> list[Evicted]:
    """Return the messages to evict, in this order."""
    totals = _Totals(streams, room, now)
    if not totals.is_over:
        return []
    notifications = _notifications(streams, room, totals)
    gone: list[Evicted] = []
    while totals.notifications_have_more_than_their_share and (evicted := next(notifications, None)) is not None:
        gone.append(evicted)
    return [*gone, *_answers(streams, room, totals), *notifications]


def _notifications(streams: Collection[Stream], room: Room, totals: _Totals) -> Iterator[Evicted]:
    for is_taken in (True, False):
        parts = [(_part(stream, is_taken=is_taken), stream) for stream in streams]
        yield from _of_the_fullest(parts, room, totals)


def _part(stream: Stream, *, is_taken: bool) -> list[Kept]:
    """Return the notifications of a stream that its reader took, or the others."""
    return [entry for entry in stream.kept if not entry.is_final and (entry.number <= stream.taken) is is_taken]


def _of_the_fullest(candidates: list[tuple[list[Kept], Stream]], room: Room, totals: _Totals) -> Iterator[Evicted]:
    """Yield the oldest message of the stream that takes the most room, while there is too much."""
    fullest = [
        (-sum(map(room.share, entries)), entries[0].number, entries[::-1], stream)
        for entries, stream in candidates
        if entries
    ]
    heapq.heapify(fullest)
    while fullest and totals.is_over:
        share, _, entries, stream = fullest[0]
        if not totals.may_go(entries[-1]):
            heapq.heappop(fullest)
            continue
        entry = entries.pop()
        if entries:
            heapq.heapreplace(fullest, (share + room.share(entry), entries[-1].number, entries, stream))
        else:
            heapq.heappop(fullest)
        totals.remove(entry)
        yield entry, stream


def _answers(streams: Collection[Stream], room: Room, totals: _Totals) -> Iterator[Evicted]:
    """Yield the oldest answers if there are too many, then the largest if all messages are too large."""
    answers = [(answer, stream) for stream in streams if (answer := stream.answer) is not None and not stream.readers]
    # An unread answer has no priority over a read one, because it is also stored as a finished task.
    answers.sort(key=lambda pair: pair[0].number, reverse=True)
    while answers and totals.has_too_many:
        totals.remove(answers[-1][0])
        yield answers.pop()
    answers.sort(key=lambda pair: len(pair[0].data))  # stable sort: among answers of equal size, the oldest is last
    for answer, stream in reversed(answers):
        if totals.may_go(answer):
            totals.remove(answer)
            yield answer, stream

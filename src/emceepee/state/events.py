"""Events of one session: each is stored for a limited time, delivered once, and never skipped while it is stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from emceepee.state.ring import NO_LIMIT
from emceepee.wire.json_types import JsonObject

EVICTED_SHARE = 0.1
SPARED_SHARE = 0.01
WARNING_SHARE = 0.8


class EventType(StrEnum):
    """The types of events; each value's docstring is its entry in the reference."""

    NOTIFICATION = "notification"
    """A server sent a notification."""
    ELICITATION_REQUEST = "elicitation_request"
    """A server asks the user a question; answer with respond_to_elicitation."""
    ELICITATION_EXPIRED = "elicitation_expired"
    """A question no longer waits for an answer; `reason` is the cause."""
    SAMPLING_REQUEST = "sampling_request"
    """A server asks for a completion; answer with respond_to_sampling."""
    SAMPLING_EXPIRED = "sampling_expired"
    """A sampling request no longer waits for an answer; `reason` is the cause."""
    TASK_CREATED = "task_created"
    """A slow call became a task."""
    TASK_COMPLETED = "task_completed"
    """A task has its result; get_task_result returns it."""
    TASK_FAILED = "task_failed"
    """A task's call failed."""
    TASK_CANCELLED = "task_cancelled"
    """A task was cancelled."""
    TASK_EXPIRED = "task_expired"
    """A task reached the end of its time to live; its call was cancelled."""
    TIMER_EXPIRED = "timer_expired"
    """A timer fired."""
    SERVER_ADDED = "server_added"
    """Another session of yours added a server."""
    SERVER_REMOVED = "server_removed"
    """A server was removed, by you or another session of yours; its calls failed and its questions are gone."""
    SERVER_CONNECTED = "server_connected"
    """A server is ready for calls."""
    SERVER_DISCONNECTED = "server_disconnected"
    """A server was lost; its calls failed and its questions are gone."""
    SERVER_RECONNECTING = "server_reconnecting"
    """A server could not be reached; emceepee retries the connection."""
    SERVER_RECONNECTED = "server_reconnected"
    """A server is connected again; `kind` says whether it was restarted, `invalidated` what was lost."""
    SERVER_HEALTH_DEGRADED = "server_health_degraded"
    """A connected server no longer answers checks."""
    SERVER_HEALTH_RESTORED = "server_health_restored"
    """The server answers its checks again."""
    PROCESS_STARTED = "process_started"
    """A server's process was started."""
    PROCESS_CRASHED = "process_crashed"
    """A server's process ended by itself."""
    RESTARTING = "restarting"
    """A crashed process will be started again."""
    RESTARTED = "restarted"
    """A crashed process was started again."""
    RESTART_FAILED = "restart_failed"
    """A process crashed too often and is not restarted; reconnect_server tries again."""
    PROCESS_STOPPED = "process_stopped"
    """A server's process was stopped on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event."""

    event_id: str
    type: EventType
    server: str
    created_at: datetime
    data: JsonObject
    size: int = field(default=0, compare=False)  # approximate bytes of memory


@dataclass(frozen=True, slots=True)
class Delivery:
    """Events that a reply may carry, and how many were lost before them.

    `returned` has the numbers of the first events if an earlier reply was not read. The numbers of the others begin at
    `start`. `before` is the id of the stored event just before the first.
    """

    events: list[Event]
    dropped: int = 0
    cursor_lost: bool = False
    start: int = field(default=0, compare=False)
    before: str | None = field(default=None, compare=False)
    returned: tuple[int, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, eq=False)
class DeliveryReceipt:
    """The contents of a reply: the numbers of its events, and its count of lost events."""

    numbers: Sequence[int]
    dropped: int

    def __bool__(self) -> bool:
        return bool(self.numbers or self.dropped)


class OutboxMark(NamedTuple):
    """The position of the delivered events. Events in flight count as returned: after a crash, they are redelivered."""

    cursor: int
    returned: tuple[int, ...]
    dropped: int


class Outbox:
    """The events of one session in order, and one cursor between delivered and other events.

    Every event has a number that eviction does not change. The cursor is such a number, so eviction never invalidates
    it. The events of an unread reply are returned, and the next reply delivers them first.
    """

    def __init__(
        self,
        *,
        most: int,
        keep: timedelta,
        most_bytes: int = NO_LIMIT,
        on_forgotten: Callable[[range], None] = lambda _: None,
    ) -> None:
        """`on_forgotten` is called with the numbers of events that were evicted or have expired."""
        self._most, self._keep, self._most_bytes, self._on_forgotten = most, keep, most_bytes, on_forgotten
        self.budget: EventBudget | None = None
        self.bytes = 0
        self._events: list[Event] = []  # not a deque: even an empty one takes nearly a kilobyte
        self._first = 0  # the number of the oldest stored event
        self._cursor = 0  # the number of the oldest event that no reply has carried yet
        self._returned: list[int] = []  # numbers before the cursor, of events whose reply was not read
        self._dropped = 0
        self._unconfirmed: set[DeliveryReceipt] = set()  # of replies that are not written yet
        self._warned = False

    def __len__(self) -> int:
        return len(self._events)

    @property
    def has_news(self) -> bool:
        return self._cursor < self._first + len(self._events) or self._dropped > 0 or bool(self._returned)

    @property
    def last_id(self) -> str | None:
        return self._events[-1].event_id if self._events else None

    @property
    def delivered(self) -> int:
        """Return the number of oldest stored events that were delivered and need no redelivery."""
        first_wanted = self._returned[0] if self._returned else self._cursor
        return max(first_wanted - self._first, 0)

    @property
    def is_crowded(self) -> bool:
        """Whether the outbox is at least four fifths full."""
        return len(self._events) >= self._most * WARNING_SHARE

    def take_warning(self) -> bool:
        """Return True once each time the outbox becomes crowded, so that the caller reports it."""
        was_warned, self._warned = self._warned, self.is_crowded
        return self._warned and not was_warned

    def append(self, event: Event) -> int:
        """Add the event, and return the number of evicted ones."""
        self._events.append(event)
        self.bytes += event.size
        if self.budget is not None:
            self.budget.used += 1
            self.budget.used_bytes += event.size
        evicted = self.evict() if len(self._events) > self._most else 0
        while self.bytes > self._most_bytes:
            evicted += self.evict(1)
        return evicted

    def evict(self, count: int | None = None) -> int:
        """Evict the oldest events, a tenth unless `count` sets the number.

        Undelivered events among them are counted, and the count is delivered.
        """
        count = max(int(self._most * EVICTED_SHARE), 1) if count is None else count
        count = min(count, len(self._events))
        self._forget(count)
        return count

    def expire(self, now: datetime) -> int:
        """Delete delivered events that are older than the retention. Undelivered ones stay."""
        count, delivered = 0, self.delivered
        while count < delivered and self._events[count].created_at + self._keep <= now:
            count += 1
        self._forget(count)
        return count

    def undelivered(self) -> Delivery:
        """Return the undelivered events. They stay undelivered until `deliver`."""
        return self._from(self._cursor)

    def after(self, event_id: str) -> Delivery:
        """Return the returned events and all events after that one, delivered or not. If it is unknown, return all."""
        for index, event in enumerate(self._events):
            if event.event_id == event_id:
                return self._from(self._first + index + 1)
        return self._from(self._first, cursor_lost=True)

    def deliver(self, found: Delivery, count: int) -> DeliveryReceipt:
        """Put the first `count` of the found events, and the number of lost ones, into a reply.

        The other found events count as undelivered, even if an earlier reply carried them.
        """
        again = found.returned[:count]
        fresh = range(found.start, found.start + count - len(again))
        end = found.start + len(found.events) - len(found.returned)
        if fresh.stop < min(end, self._cursor):
            self._returned = sorted({*self._returned, *range(fresh.stop, min(end, self._cursor))})
        if self._returned:
            carried = {*again, *fresh}
            self._returned = [number for number in self._returned if number not in carried]
        self._cursor = max(self._cursor, fresh.stop)
        self._dropped -= found.dropped
        receipt = DeliveryReceipt((*again, *fresh) if again else fresh, found.dropped)
        if receipt:
            self._unconfirmed.add(receipt)
        return receipt

    def confirm(self, receipt: DeliveryReceipt) -> bool:
        """Record that the reply was written. Return False if that is known already."""
        was_open = receipt in self._unconfirmed
        self._unconfirmed.discard(receipt)
        return was_open

    def redeliver(self, receipt: DeliveryReceipt) -> list[Event]:
        """Make the events of an unread reply undelivered again. Return the events that are still stored."""
        self._unconfirmed.discard(receipt)
        kept = [number for number in receipt.numbers if number >= self._first]
        self._dropped += receipt.dropped + len(receipt.numbers) - len(kept)
        self._returned = sorted({*self._returned, *kept})
        return [self._events[number - self._first] for number in kept]

    @property
    def is_on_the_way(self) -> bool:
        """Whether a reply carries events and has not been confirmed as written."""
        return bool(self._unconfirmed)

    # Stored state.

    @property
    def mark(self) -> OutboxMark:
        on_the_way = {number for receipt in self._unconfirmed for number in receipt.numbers if number >= self._first}
        dropped = self._dropped + sum(receipt.dropped for receipt in self._unconfirmed)
        return OutboxMark(self._cursor, tuple(sorted({*self._returned, *on_the_way})), dropped)

    @property
    def numbers(self) -> range:
        return range(self._first, self._first + len(self._events))

    def event(self, number: int) -> Event | None:
        return self._events[number - self._first] if number in self.numbers else None

    def restore(self, events: Mapping[int, Event], mark: OutboxMark) -> None:
        """Fill an empty outbox. Numbers have no gaps: events before a missing one are lost."""
        first = end = max(max(events, default=-1) + 1, mark.cursor)  # delivered events may be missing in the store
        while first - 1 in events:
            first -= 1
        self._first, self._cursor, self._dropped = first, max(mark.cursor, first), mark.dropped
        self._returned = [number for number in mark.returned if number >= first]
        for number in range(first, end):
            self.append(events[number])

    def peek(self, number: int) -> tuple[list[Event], int]:
        """Return the stored events from this number on, and the next number. Deliver nothing."""
        start = max(number - self._first, 0)
        return self._events[start:], self._first + len(self._events)

    def _from(self, number: int, *, cursor_lost: bool = False) -> Delivery:
        index = max(number - self._first, 0)
        events, start = self._events[index:], self._first + index
        returned = tuple(number for number in self._returned if number < start)
        if returned:
            index = returned[0] - self._first
            events = [*(self._events[number - self._first] for number in returned), *events]
        before = self._events[index - 1].event_id if index else None
        return Delivery(events, self._dropped, cursor_lost, start, before, returned)

    def clear(self) -> None:
        """Drop all events from memory without calling `on_forgotten`: stored events stay in the store."""
        self._drop(len(self._events))

    def _forget(self, count: int) -> None:
        self._drop(count)
        if count:
            self._on_forgotten(range(self._first - count, self._first))

    def _drop(self, count: int) -> None:
        unseen = max(self._first + count - max(self._cursor, self._first), 0)
        freed = sum(event.size for event in self._events[:count])
        del self._events[:count]
        self.bytes -= freed
        if self.budget is not None:
            self.budget.used -= count
            self.budget.used_bytes -= freed
        self._first += count
        if self._returned:
            unseen += sum(number < self._first for number in self._returned)
            self._returned = [number for number in self._returned if number >= self._first]
        self._dropped += unseen
        self._cursor = max(self._cursor, self._first)


class EventBudget:
    """The memory budget of all sessions. When it is used up, delivered events are evicted first, in every session.

    The outboxes update `used` and `used_bytes` themselves, because counting thousands of them per event takes too long.
    """

    def __init__(self, most: int, most_bytes: int = NO_LIMIT) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._boxes: dict[Outbox, None] = {}
        self.used = self.used_bytes = 0

    def join(self, box: Outbox) -> None:
        self._boxes[box] = None
        box.budget = self
        self.used += len(box)
        self.used_bytes += box.bytes

    def leave(self, box: Outbox) -> None:
        if box in self._boxes:
            del self._boxes[box]
            box.budget = None
            self.used -= len(box)
            self.used_bytes -= box.bytes

    def enforce(self) -> int:
        """Evict events above the limit, and return their number."""
        if not self._is_over():
            return 0
        evicted = self._evict_delivered()
        while self._is_over() and self.used:
            too_many = self.used > self._most
            evicted += max(self._boxes, key=lambda box: len(box) if too_many else box.bytes).evict()
        return evicted

    def _is_over(self, share: float = 1.0) -> bool:
        return self.used > self._most * share or self.used_bytes > self._most_bytes * share

    def _evict_delivered(self) -> int:
        """Evict a little more than necessary, so that the next event need not search all outboxes again."""
        evicted = 0
        for box in sorted(self._boxes, key=lambda box: box.delivered, reverse=True):
            while box.delivered and self._is_over(1 - SPARED_SHARE):
                evicted += box.evict(max(box.delivered // 10, 1))
            if not self._is_over(1 - SPARED_SHARE):
                break
        return evicted

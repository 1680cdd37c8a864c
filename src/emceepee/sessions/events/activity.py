"""The events of a session, kept until delivery, and the signal that wakes waiting requests."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.futures import resolve
from emceepee.ids import Ulids
from emceepee.sessions.events.buffers import measured
from emceepee.sessions.events.change_signal import ChangeSignal
from emceepee.sessions.records import RecordKind, event_record_id
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.events import Delivery, DeliveryReceipt, Event, EventBudget, EventType, Outbox, OutboxMark
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("sessions")
EVENT_BYTES = 500  # approximate size of an event besides its data
EVENT_BYTES_PER_SESSION = 8 << 20
# One waiting request receives all events. The others would only hold connections open.
WAITING_PER_SESSION = 2000
EVICTION_LOG_INTERVAL = 1.0  # seconds; a backend that floods events must not flood the log


@dataclass(slots=True)
class Wake:
    """One wake-up: the next event resolves `next_event`. `events` has all events of that turn of the event loop."""

    next_event: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    events: list[Event] = field(default_factory=list)


class Activity:
    """The session's events. `emit` is synchronous: it never waits for listeners."""

    def __init__(self, clock: Clock, ids: Ulids, limits: Limits, budget: EventBudget, unsaved: Unsaved) -> None:
        self._clock, self._ids, self._limits, self._budget, self._unsaved = clock, ids, limits, budget, unsaved
        self.event_signal = ChangeSignal()
        keep = timedelta(seconds=limits.event_seconds)
        most, most_bytes = limits.events_per_session, EVENT_BYTES_PER_SESSION
        self._outbox = Outbox(most=most, keep=keep, most_bytes=most_bytes, on_forgotten=self._mark_all)
        self._wake: Wake | None = None
        self._waiting = 0  # requests that wait for an event
        self._evicted = 0  # evictions that are not in the log yet
        self._quiet_until = 0.0
        budget.join(self._outbox)

    def close(self) -> None:
        self._budget.leave(self._outbox)
        self._outbox.clear()

    @property
    def has_news(self) -> bool:
        return self._outbox.has_news

    @property
    def last_event_id(self) -> str | None:
        return self._outbox.last_id

    def emit(self, kind: EventType, server: str, /, **data: object) -> Event:
        kept: JsonObject = {}
        size = EVENT_BYTES
        for key, value in data.items():
            kept[key], weight = measured(value, self._limits.buffered_item_bytes)
            size += weight
        now = self._clock.now()
        event = Event(event_id=self._ids.new(), type=kind, server=server, created_at=now, data=kept, size=size)
        self._outbox.expire(now)
        evicted = self._outbox.append(event)
        self._unsaved.mark(RecordKind.EVENT, event_record_id(self._outbox.numbers.stop - 1))
        if evicted or (evicted := self._budget.enforce()):
            self._warn_of_eviction(evicted)
        elif self._outbox.take_warning():
            count, most = len(self._outbox), self._limits.events_per_session
            share = round(100 * count / most)
            log.warning("event_store_approaching_limit", totalCount=count, maxEvents=most, percentFull=share)
        self._wake_waiters(event)
        return event

    def _warn_of_eviction(self, evicted: int) -> None:
        self._evicted += evicted
        if (now := self._clock.monotonic()) >= self._quiet_until:
            log.warning("event_store_eviction", evictedCount=self._evicted, reason="full")
            self._evicted, self._quiet_until = 0, now + EVICTION_LOG_INTERVAL

    def next_wake(self) -> Wake:
        """Return the current wake-up. Await its `next_event`; many waiters may share it."""
        if self._wake is None or self._wake.next_event.done():
            self._wake = Wake()
        return self._wake

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a request that only waits for an event. Raises: EmceepeeError if too many do already."""
        if self._waiting >= WAITING_PER_SESSION:
            raise EmceepeeError(
                f"{self._waiting} requests wait in this session already, which is the limit. One that waits is enough.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def end_waits(self) -> None:
        """Wake all waiters without an event."""
        if self._wake is not None:
            resolve(self._wake.next_event, None)

    def seen_since(self, number: int) -> tuple[list[Event], int]:
        """Return the kept events from that number on, and the next number. This delivers nothing."""
        return self._outbox.peek(number)

    def undelivered(self) -> Delivery:
        return self._outbox.undelivered()

    def after(self, event_id: str) -> Delivery:
        return self._outbox.after(event_id)

    def deliver(self, found: Delivery, count: int) -> DeliveryReceipt:
        """Put the first `count` events of `found` into a reply. If nobody reads it, call `redeliver`."""
        return self._outbox.deliver(found, count)

    def confirm(self, receipt: DeliveryReceipt) -> None:
        """Record that the reply was written. Its events count as delivered, even after a restart."""
        if self._outbox.confirm(receipt):
            self._unsaved.mark(RecordKind.DELIVERY)

    def redeliver(self, receipt: DeliveryReceipt) -> None:
        """Redeliver the events of an unread reply to the next waiter or request."""
        if events := self._outbox.redeliver(receipt):
            self._unsaved.mark(RecordKind.DELIVERY)
            self._wake_waiters(*events)

    @property
    def is_on_the_way(self) -> bool:
        """Whether a reply carries events and has not been confirmed as written."""
        return self._outbox.is_on_the_way

    # Storage.

    @property
    def delivery_mark(self) -> OutboxMark:
        return self._outbox.mark

    def event(self, number: int) -> Event | None:
        return self._outbox.event(number)

    def restore(self, events: Mapping[int, Event], mark: OutboxMark) -> None:
        self._outbox.restore(events, mark)

    def _mark_all(self, numbers: range) -> None:
        for number in numbers:
            self._unsaved.mark(RecordKind.EVENT, event_record_id(number))
        self._unsaved.mark(RecordKind.DELIVERY)

    def _wake_waiters(self, *events: Event) -> None:
        self.event_signal.notify()
        if self._wake is not None:
            self._wake.events += events
            if not self._wake.next_event.done():
                self._wake.next_event.set_result(None)
                # Waiters resume in the next turn of the loop, and also see events emitted until then.
                asyncio.get_running_loop().call_soon(self._renew, self._wake)

    def _renew(self, wake: Wake) -> None:
        if self._wake is wake:
            self._wake = None

"""The timers of one session."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.context import SessionContext
from emceepee.sessions.records import RecordKind
from emceepee.state.events import EventType
from emceepee.state.timer import Timer
from emceepee.surface import call_to

OWN_EVENTS = "emceepee"  # the server name in events that come from no backend


class Timers:
    """Set, list, and delete timers. A timer that fires emits an event."""

    def __init__(self, context: SessionContext) -> None:
        self._activity, self._schedule_by = context.activity, context.schedule_by
        self._notify_change = context.notify_change
        self._clock, self._ids, self._limits = context.clock, context.ids, context.limits
        self._unsaved, self._why_foreign = context.unsaved, context.why_foreign
        self._timers: dict[str, Timer] = {}

    def set(self, duration: timedelta, message: str, *, repeats: bool) -> Timer:
        """Raises: EmceepeeError if there are too many."""
        if sum(timer.is_active for timer in self._timers.values()) >= self._limits.timers_per_session:
            raise EmceepeeError(
                f"{self._limits.timers_per_session} timers are active already, which is the limit. "
                f"Delete one with {call_to('delete_timer')}.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        now = self._clock.now()
        timer = Timer(
            timer_id=self._ids.new(),
            message=message,
            duration=duration,
            repeats=repeats,
            created_at=now,
            expires_at=now + duration,
            retention=timedelta(seconds=self._limits.timer_retention_seconds),
        )
        self._put(timer)
        self._schedule_by(timer.next_deadline)
        self._notify_change()
        return timer

    def all(self, *, include_inactive: bool) -> list[Timer]:
        return [timer for timer in self._timers.values() if include_inactive or timer.is_active]

    def get(self, timer_id: str) -> Timer:
        """Raises: EmceepeeError."""
        timer = self._timers.get(timer_id)
        if timer is None:
            why = self._why_foreign(timer_id) or f"{call_to('list_timers')} shows all timers."
            raise EmceepeeError(f'No timer has the id "{timer_id[:60]}" here. {why}', code=ErrorCode.TIMER_NOT_FOUND)
        return timer

    def delete(self, timer_id: str) -> Timer:
        """Raises: EmceepeeError if the timer is unknown or has ended already."""
        timer = self.get(timer_id)
        if not timer.is_active:
            raise EmceepeeError(
                f'Timer "{timer_id}" is {timer.status} already; there is nothing to delete.',
                code=ErrorCode.TIMER_NOT_FOUND,
            )
        deleted = timer.deleted(self._clock.now())
        self._put(deleted)
        self._forget_oldest_done()
        self._schedule_by(deleted.next_deadline)
        self._notify_change()
        return deleted

    def _forget_oldest_done(self) -> None:
        """Keep no more inactive timers than may be active: repeated set and delete calls must not fill the memory."""
        done = [timer for timer in self._timers.values() if not timer.is_active]
        for timer in done[: max(len(done) - self._limits.timers_per_session, 0)]:
            self._forget(timer)

    def _put(self, timer: Timer) -> None:
        self._timers[timer.timer_id] = timer
        self._unsaved.mark(RecordKind.TIMER, timer.timer_id)

    def _forget(self, timer: Timer) -> None:
        del self._timers[timer.timer_id]
        self._unsaved.mark(RecordKind.TIMER, timer.timer_id)

    # Storage.

    def find(self, timer_id: str) -> Timer | None:
        return self._timers.get(timer_id)

    @property
    def next_firing(self) -> datetime | None:
        return min((timer.expires_at for timer in self._timers.values() if timer.is_active), default=None)

    def restore(self, timers: Iterable[Timer]) -> None:
        self._timers |= {timer.timer_id: timer for timer in timers}

    def tick(self, now: datetime) -> datetime | None:
        """Fire due timers. Return the next deadline, if any."""
        for timer in list(self._timers.values()):
            later = timer.tick(now)
            if later is None:
                self._forget(timer)
                self._notify_change()
            elif later is not timer:
                self._put(later)
                repeated = {"fireCount": later.fire_count, "interval": True} if later.repeats else {}
                self._activity.emit(
                    EventType.TIMER_EXPIRED, OWN_EVENTS, timerId=later.timer_id, message=later.message, **repeated
                )
        self._forget_oldest_done()
        return min((timer.next_deadline for timer in self._timers.values()), default=None)

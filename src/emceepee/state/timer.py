"""A timer that delivers a message later, once or repeatedly, as a table and a record."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from emceepee.state.machine import Machine, Move


class TimerStatus(StrEnum):
    """The status of a timer."""

    ACTIVE = "active"
    """The timer will fire."""
    EXPIRED = "expired"
    """The timer has fired and will not fire again."""
    DELETED = "deleted"
    """The timer was deleted."""


_S = TimerStatus
TIMER = Machine(
    "timer_states",
    "A timer of a session",
    begins=(_S.ACTIVE, "set_timer"),
    moves=[
        Move(_S.ACTIVE, _S.EXPIRED, "It fires and does not repeat"),
        Move(_S.ACTIVE, _S.DELETED, "delete_timer"),
    ],
    ends="Forgotten after the retention",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer record. It is frozen: every transition returns the next record."""

    timer_id: str
    message: str
    duration: timedelta
    repeats: bool
    created_at: datetime
    expires_at: datetime
    retention: timedelta
    status: TimerStatus = TimerStatus.ACTIVE
    fire_count: int = 0
    ended_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.status is TimerStatus.ACTIVE

    @property
    def next_deadline(self) -> datetime:
        """Return when the timer fires, or for an ended timer, when it is removed."""
        return self.expires_at if self.ended_at is None else self.ended_at + self.retention

    def deleted(self, at: datetime) -> "Timer":
        TIMER.check(self.status, TimerStatus.DELETED)
        return replace(self, status=TimerStatus.DELETED, ended_at=at)

    def tick(self, now: datetime) -> "Timer | None":
        """Fire once if it is due, however late: after a laptop's sleep, one message arrives, not a hundred.

        Return the same timer if nothing happens, None if it is to be removed.
        """
        if now < self.next_deadline:
            return self
        if not self.is_active:
            return None
        fired = replace(self, fire_count=self.fire_count + 1)
        if self.repeats:
            missed = (now - self.expires_at) // self.duration
            return replace(fired, expires_at=self.expires_at + self.duration * (missed + 1))
        TIMER.check(self.status, TimerStatus.EXPIRED)
        return replace(fired, status=TimerStatus.EXPIRED, ended_at=now)

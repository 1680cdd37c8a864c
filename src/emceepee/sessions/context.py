"""What the parts of a session (calls, tasks, questions, timers) share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from emceepee.clock import Clock
from emceepee.ids import Ulids
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.results.results import ResultBudget
from emceepee.sessions.sealing import Sealing
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """`schedule_by` asks the session to let time pass for its records at that moment at the latest.

    `notify_change` is the session's signal, for what is no event. `why_foreign` tells of an id that is unknown here why
    another session has it, if it must be so.
    """

    activity: Activity
    clock: Clock
    ids: Ulids
    limits: Limits
    results: ResultBudget
    unsaved: Unsaved
    sealing: Sealing
    schedule_by: Callable[[datetime], None]
    notify_change: Callable[[], None]
    why_foreign: Callable[[str], str | None]

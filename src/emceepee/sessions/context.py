"""The objects that the parts of a session (calls, tasks, questions, timers) share."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from emceepee.clock import Clock
from emceepee.ids import Ulids
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.sealing_key import Sealing
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.limits import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionContext:
    """`schedule_by` asks the session to check its deadlines no later than at that time.

    `notify_change` is the session's signal for changes that are no events. `why_foreign` explains an unknown id that
    must belong to another session, or returns None.
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

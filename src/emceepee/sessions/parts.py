"""The objects that all sessions of an installation share."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock
from emceepee.sessions.call import Call, Callee
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.results.stored_results import ResultStorage
from emceepee.sessions.sealing_key import Sealing
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.events import EventBudget
from emceepee.state.limits import Limits
from emceepee.state.notice_options import NoticeOptions
from emceepee.state.task import Task
from emceepee.telemetry.journal import SpanBudget

if TYPE_CHECKING:
    from emceepee.sessions.lists.entry_search import SharedVectors


class Scripts(Protocol):
    """The interface of code mode for sessions: the scripts of all sessions, which can be stored and resumed."""

    def record(self, call: Call) -> bytes | None:
        """Return the current state of a script for another process to resume, or None if it cannot be stored."""
        ...

    def restore(self, session: Any, task: Task, record: bytes) -> Callee | None:
        """Return a stored script as a callee for the session, or None if this process cannot read it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """The dependencies of every session of an installation."""

    registry: ServerRegistry
    dialer: Dialer
    clock: Clock
    limits: Limits
    budget: EventBudget
    journals: SpanBudget
    results: ResultBudget
    large_results: ResultStorage
    sealing: Sealing = field(default_factory=Sealing)
    logins: ServerLogins | None = None  # to servers; without it, sessions log in to no server
    scripts: Scripts | None = None  # code mode; without it, no script runs
    notice_options: NoticeOptions = NoticeOptions()
    vectors: "SharedVectors | None" = None  # for searches, if configured
    spread: Callable[[], float] = field(default=lambda: random.uniform(-1, 1))  # jitter, not a secret

"""The parts of a test's session, assembled in one place."""

from typing import cast

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock
from emceepee.codemode.engine import CodeMode
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.results.stored_results import ResultStorage
from emceepee.sessions.sealing_key import Sealing
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.events import EventBudget
from emceepee.state.limits import Limits
from emceepee.store.store import Store
from emceepee.telemetry.journal import SpanBudget, SpanObserver
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.tools_for_scripts import ToolsForScripts
from support.backends.scripted_backend import ScriptedDialer


def session_parts(
    registry: ServerRegistry,
    dialer: Dialer | ScriptedDialer,
    clock: Clock,
    limits: Limits | None = None,
    store: Store | None = None,
    observers: tuple[SpanObserver, ...] = (),
) -> SessionParts:
    """Budgets as the limits have them, and attempts to reconnect without jitter."""
    limits = limits or Limits()
    return SessionParts(
        registry=registry,
        dialer=cast(Dialer, dialer),
        clock=clock,
        limits=limits,
        budget=EventBudget(limits.events_in_all),
        journals=SpanBudget(limits.requests_in_all, observers),
        results=ResultBudget(limits.task_bytes_in_all, limits.task_bytes_per_session),
        sealing=Sealing(store),
        large_results=ResultStorage(ResultBudget(limits.result_bytes_in_all, limits.result_bytes_per_session), store),
        scripts=CodeMode(limits, ToolsForScripts(TOOLS)),
        spread=lambda: 0.0,
    )


async def close_scripts(parts: SessionParts) -> None:
    """End what the scripts of these sessions ran in."""
    if isinstance(parts.scripts, CodeMode):
        await parts.scripts.close()

"""Progress for a caller that waits long, so that an impatient client does not give up."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from emceepee.clock import Clock, Handle
from emceepee.json_types import JsonObject
from emceepee.tools.request_context import RequestContext

BEAT_SECONDS = 10.0  # well under the minute after which many clients give up
NUDGE = 1e-6  # progress must grow with every message, and must not overtake the server's own


@contextmanager
def heartbeat(caller: RequestContext, clock: Clock, total: float | None) -> Iterator[None]:
    """While the block waits, tell a caller that asked for progress how long it has waited."""
    send_progress, started = caller.on_progress, clock.monotonic()
    if send_progress is None:
        yield
        return
    pending: Handle

    def beat() -> None:
        nonlocal pending
        waited = round(clock.monotonic() - started, 3)
        send_progress({"progress": waited, "message": "waiting"} | ({} if total is None else {"total": total}))
        pending = clock.call_later(BEAT_SECONDS, beat)

    pending = clock.call_later(BEAT_SECONDS, beat)
    try:
        yield
    finally:
        pending.cancel()


_NO_PROGRESS: AbstractContextManager[None] = nullcontext()


def relay_progress(caller: RequestContext, clock: Clock) -> AbstractContextManager[Callable[[JsonObject], None] | None]:
    """Gives where a server's progress goes: on to the caller. While the server is silent, a beat goes out instead."""
    return _NO_PROGRESS if caller.on_progress is None else _relay_with_heartbeat(caller.on_progress, clock)


@contextmanager
def _relay_with_heartbeat(
    send_progress: Callable[[JsonObject], None], clock: Clock
) -> Iterator[Callable[[JsonObject], None]]:
    latest: JsonObject = {"progress": 0}
    pending: Handle

    def pass_on(params: JsonObject) -> None:
        nonlocal latest, pending
        latest = params
        pending.cancel()
        pending = clock.call_later(BEAT_SECONDS, beat)
        send_progress(params)

    def beat() -> None:
        value = latest.get("progress")
        pass_on(latest | {"progress": value + NUDGE if isinstance(value, int | float) else NUDGE})

    pending = clock.call_later(BEAT_SECONDS, beat)
    try:
        yield pass_on
    finally:
        pending.cancel()

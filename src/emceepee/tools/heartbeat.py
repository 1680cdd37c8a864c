"""Progress for a caller that waits long, so that an impatient client stays on the line."""

from collections.abc import Iterator
from contextlib import contextmanager

from emceepee.clock import Clock, Handle
from emceepee.tools.declaration import Caller

BEAT_SECONDS = 10.0  # well under the minute after which many clients give up


@contextmanager
def heartbeat(caller: Caller, clock: Clock, total: float | None) -> Iterator[None]:
    """While the block waits, tell a caller that asked for progress how long it has waited."""
    tell, started = caller.on_progress, clock.monotonic()
    if tell is None:
        yield
        return
    pending: Handle

    def beat() -> None:
        nonlocal pending
        waited = round(clock.monotonic() - started, 3)
        tell({"progress": waited, "message": "waiting"} | ({} if total is None else {"total": total}))
        pending = clock.call_later(BEAT_SECONDS, beat)

    pending = clock.call_later(BEAT_SECONDS, beat)
    try:
        yield
    finally:
        pending.cancel()

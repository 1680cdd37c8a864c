"""Progress notifications during a long wait, so that an impatient client does not time out.

The timers call methods of objects: a function that schedules itself would form a reference cycle with the request.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from emceepee.clock import Clock, Handle
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject

BEAT_SECONDS = 10.0  # well under the minute after which many clients give up
NUDGE = 1e-6  # progress must grow with every message, and must not overtake the server's own
Send = Callable[[JsonObject], None]


@contextmanager
def heartbeat(caller: RequestContext, clock: Clock, total: float | None) -> Iterator[None]:
    """Inside the context, send the waiting time periodically to a caller that requested progress."""
    if caller.on_progress is None:
        yield
        return
    waiting = _Waiting(caller.on_progress, clock, total)
    try:
        yield
    finally:
        waiting.pending.cancel()


class _Waiting:
    """Sends the elapsed seconds."""

    __slots__ = ("_clock", "_send", "_started", "_total", "pending")

    def __init__(self, send: Send, clock: Clock, total: float | None) -> None:
        self._send, self._clock, self._total, self._started = send, clock, total, clock.monotonic()
        self.pending: Handle = clock.call_later(BEAT_SECONDS, self._beat)

    def _beat(self) -> None:
        waited = round(self._clock.monotonic() - self._started, 3)
        total: JsonObject = {} if self._total is None else {"total": self._total}
        self._send({"progress": waited, "message": "waiting"} | total)
        self.pending = self._clock.call_later(BEAT_SECONDS, self._beat)


_NO_PROGRESS: AbstractContextManager[None] = nullcontext()


def relay_progress(caller: RequestContext, clock: Clock) -> AbstractContextManager[Send | None]:
    """Yield the function that passes a server's progress on to the caller. While the server is silent, send beats."""
    return _NO_PROGRESS if caller.on_progress is None else _relay_with_heartbeat(caller.on_progress, clock)


@contextmanager
def _relay_with_heartbeat(send_progress: Send, clock: Clock) -> Iterator[Send]:
    relay = _Relay(send_progress, clock)
    try:
        yield relay.pass_on
    finally:
        relay.pending.cancel()


class _Relay:
    """Passes progress on, and repeats the last progress while the server is silent."""

    __slots__ = ("_clock", "_latest", "_send", "pending")

    def __init__(self, send: Send, clock: Clock) -> None:
        self._send, self._clock = send, clock
        self._latest: JsonObject = {"progress": 0}
        self.pending: Handle = clock.call_later(BEAT_SECONDS, self._beat)

    def pass_on(self, params: JsonObject) -> None:
        self._latest = params
        self.pending.cancel()
        self.pending = self._clock.call_later(BEAT_SECONDS, self._beat)
        self._send(params)

    def _beat(self) -> None:
        value = self._latest.get("progress")
        self.pass_on(self._latest | {"progress": value + NUDGE if isinstance(value, int | float) else NUDGE})

"""Checks that a connected backend still answers. Failures are reported but never cause a reconnect."""

from collections.abc import Callable

from emceepee.backends.connection_events import ConnectionEvents
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.clock import Clock, Handle, give_up_after
from emceepee.lifecycle import TaskOwner
from emceepee.state.connection.health import Health, HealthStatus
from emceepee.state.connection.retry import JITTER
from emceepee.state.events import EventType
from emceepee.state.limits import Limits

HEALTH_ANSWER_SECONDS = 10.0


class HealthCheck:
    """Checks a link periodically, unless requests keep it busy."""

    def __init__(
        self,
        events: ConnectionEvents,
        tasks: TaskOwner,
        *,
        clock: Clock,
        limits: Limits,
        spread: Callable[[], float],
    ) -> None:
        self._events, self._tasks, self._clock, self._limits, self._spread = events, tasks, clock, limits, spread
        self._link: Link | None = None
        self._next: Handle | None = None
        self.state = Health()

    def attach(self, link: Link) -> None:
        self._link, self.state = link, Health()
        self._schedule()

    def detach(self) -> None:
        self._link = None
        if self._next is not None:
            self._next.cancel()

    def record_success(self) -> None:
        """Record an answer to a check or to a call. Any answer proves that the backend is alive."""
        was = self.state.status
        self.state = self.state.answered()
        if was is HealthStatus.DEGRADED:
            self._events.emit(EventType.SERVER_HEALTH_RESTORED)

    def _schedule(self) -> None:
        if self._limits.health_check_seconds:
            delay = self._limits.health_check_seconds * (1 + JITTER * self._spread())
            self._next = self._clock.call_later(delay, self._check)

    def _check(self) -> None:
        link = self._link
        if link is None:
            return
        self._schedule()
        if not link.is_busy:
            self._tasks.spawn(self._send_check(link), name="health")

    async def _send_check(self, link: Link) -> None:
        method = "server/discover" if link.facts.is_modern else "ping"
        try:
            async with give_up_after(self._clock, HEALTH_ANSWER_SECONDS):
                await link.request(method, {} if link.facts.is_modern else None)
        except RpcError:
            self.record_success()  # an error response is an answer
        except (LinkError, TimeoutError) as error:
            self._record_failure(link, str(error) or f"no answer within {HEALTH_ANSWER_SECONDS:g} s")
        else:
            self.record_success()

    def _record_failure(self, link: Link, error: str) -> None:
        if link is not self._link:
            return
        was = self.state.status
        self.state = self.state.failed(error)
        if was is HealthStatus.HEALTHY and self.state.status is HealthStatus.DEGRADED:
            self._events.emit(
                EventType.SERVER_HEALTH_DEGRADED, consecutiveFailures=self.state.failures, lastError=error
            )

"""All connections of callers over HTTP: how many there may be, and for how long one may be waited for."""

import resource
from math import ceil
from typing import Protocol

from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

log = EventLog("http")
TICK_SECONDS = 0.5  # how exact deadlines are
SPARE_SHARE = 0.25  # of the descriptors that the process may have: for servers, files and refused connections
BODY_SLACK = 1 << 20  # beyond the largest body, so that whoever reads it can refuse it in its own words
CALM_SHARE = 0.9  # of the limit: below it, reaching the limit is logged again


class Waiting(Protocol):
    """A connection from which no whole request is being served."""

    def tick(self) -> None: ...

    def give_way(self) -> None: ...


class ConnectionTable:
    """One per listening server. Counts ticks, so that a request need not look at a clock."""

    def __init__(self, limits: Limits) -> None:
        self.head_bytes, self.headers, self.pipelined = (
            limits.request_head_bytes,
            limits.request_headers,
            limits.pipelined_requests,
        )
        self.most_body_bytes = limits.request_body_bytes + BODY_SLACK
        self.head_ticks = _ticks(limits.request_head_seconds)
        self.body_ticks = _ticks(limits.request_body_seconds)
        self.idle_ticks = _ticks(limits.idle_connection_seconds)
        self.first_ticks = min(self.head_ticks, self.idle_ticks)  # who connects has something to ask
        self._most = min(limits.caller_connections, _affordable())
        self._count = 0
        self._is_limit_logged = False
        self.waiting: dict[Waiting, None] = {}  # the one that waits longest is first

    def tick(self) -> None:
        for connection in list(self.waiting):
            connection.tick()

    def enter(self, connection: Waiting) -> bool:
        """Count it. Where there are too many, the one that waits longest gives way; False if there is none."""
        self._count += 1
        if self._count > self._most:
            if not self._is_limit_logged:
                self._is_limit_logged = True
                log.warning("too_many_connections", most=self._most, waiting=len(self.waiting))
            longest = next(iter(self.waiting), None)
            if longest is None:
                return False
            del self.waiting[longest]
            longest.give_way()
        self.waiting[connection] = None
        return True

    def leave(self, connection: Waiting) -> None:
        self._count -= 1
        self.waiting.pop(connection, None)
        if self._count < self._most * CALM_SHARE:
            self._is_limit_logged = False


def _ticks(seconds: float) -> int:
    return ceil(seconds / TICK_SECONDS)


def _affordable() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return round(soft * (1 - SPARE_SHARE)) if soft != resource.RLIM_INFINITY else 1 << 30

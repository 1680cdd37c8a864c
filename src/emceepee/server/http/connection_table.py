"""All HTTP connections of callers: limits on their number, on waiting time, and on unread responses."""

import asyncio
import resource
from collections.abc import Mapping
from math import ceil
from typing import Protocol, TypeVar

from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

log = EventLog("http")
TICK_SECONDS = 0.5  # precision of deadlines
MOST_TICKS_AT_ONCE = 4  # after a suspension of this process, during which callers may have sent and read data
SPARE_SHARE = 0.25  # of the process's file descriptors: reserved for servers, files, and refused connections
BODY_SLACK = 1 << 20  # beyond the largest body, so that the code that reads it can reject it with its own message
CALM_SHARE = 0.9  # of the limit: below it, the next overflow is logged again
QUIET_SHARE = 0.5  # like CALM_SHARE, for unread bytes: one response may be a large part of them


_Key = TypeVar("_Key")


class Waiting(Protocol):
    """A connection without a complete request in service."""

    def tick(self) -> None: ...

    def give_way(self) -> None: ...


class Unread(Protocol):
    """A connection whose caller reads more slowly than we write."""

    @property
    def unread_bytes(self) -> int: ...

    @property
    def stalled_ticks(self) -> int:
        """Return the number of ticks since the caller last read any data."""
        ...

    def tick_writing(self) -> None: ...

    def give_way(self) -> None: ...


class ConnectionTable:
    """The connections of one listening server. It counts ticks, so that a request need not read a clock.

    `catch_up` is called often, but at irregular times while the process is busy.
    """

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
        self.write_ticks = _ticks(limits.unread_answer_seconds)
        self.first_ticks = min(self.head_ticks, self.idle_ticks)  # a caller that connects has a request to send
        self._most = min(limits.caller_connections, _affordable())
        self._count = 0
        self._is_limit_logged = False
        self.waiting: dict[Waiting, None] = {}  # the connection that has waited longest is first
        self._unread: dict[Unread, None] = {}
        self._most_unread_bytes = limits.unread_bytes_in_all
        self._unread_bytes = 0  # an upper bound: it includes bytes that were read since the last count
        self._is_shedding = self._is_budget_logged = False
        self._ticked_at: float | None = None

    def catch_up(self, now: float) -> None:
        """Run the ticks that are due."""
        if self._ticked_at is None:
            self._ticked_at = now
        due = int((now - self._ticked_at) / TICK_SECONDS)
        self._ticked_at += due * TICK_SECONDS
        for _ in range(min(due, MOST_TICKS_AT_ONCE)):
            self.tick()

    def tick(self) -> None:
        for connection in list(self.waiting):
            connection.tick()
        for unread in list(self._unread):
            unread.tick_writing()
        if self._unread_bytes:
            self._shed()

    # Unread responses.

    def begin_unread(self, connection: Unread) -> None:
        self._unread[connection] = None
        self.hold(connection.unread_bytes)

    def end_unread(self, connection: Unread) -> None:
        self._unread.pop(connection, None)

    def hold(self, size: int) -> None:
        """Add to the count of unread bytes."""
        self._unread_bytes += size
        self._shed_soon()  # the transport may be inside a write

    def _shed_soon(self) -> None:
        if self._unread_bytes > self._most_unread_bytes and not self._is_shedding:
            self._is_shedding = True
            asyncio.get_running_loop().call_soon(self._shed)

    def _shed(self) -> None:
        """Close one connection if necessary. Storing its response takes time, so other tasks run in between."""
        self._is_shedding = False
        unread = {connection: (connection.unread_bytes, connection.stalled_ticks) for connection in self._unread}
        self._unread_bytes = sum(size for size, _ in unread.values())
        if (surplus := choose_surplus(unread, self._most_unread_bytes)) is not None:
            size, ticks = unread[surplus]
            self._unread_bytes -= size
            self.end_unread(surplus)
            if not self._is_budget_logged:
                self._is_budget_logged = True
                log.warning("too_many_unread_answers", bytes=size, seconds=ticks * TICK_SECONDS, of=len(unread))
            surplus.give_way()
            self._shed_soon()
        elif self._unread_bytes < self._most_unread_bytes * QUIET_SHARE:
            self._is_budget_logged = False

    def enter(self, connection: Waiting) -> bool:
        """Count a connection. At the limit, close the longest waiting connection; return False if none waits."""
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

    # Leaving.

    def leave(self, connection: Waiting) -> None:
        self._count -= 1
        self.waiting.pop(connection, None)
        if self._count < self._most * CALM_SHARE:
            self._is_limit_logged = False


def choose_surplus(unread: Mapping[_Key, tuple[int, int]], most_bytes: int) -> _Key | None:
    """Choose the connection to close if all of them hold more than `most_bytes`. Each has its bytes and stalled ticks.

    The bytes of a connection count once more for each tick in which its caller read nothing.
    """
    if sum(size for size, _ in unread.values()) <= most_bytes:
        return None
    return max(unread, key=lambda key: unread[key][0] * (1 + unread[key][1]))


def _ticks(seconds: float) -> int:
    return ceil(seconds / TICK_SECONDS)


def _affordable() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return round(soft * (1 - SPARE_SHARE)) if soft != resource.RLIM_INFINITY else 1 << 30

"""Limits the number of connections per origin and in total. A caller without a free slot waits up to WAIT_SECONDS."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from emceepee.backends.http1.http_failures import NotConnected
from emceepee.clock import Clock, within

WAIT_SECONDS = 10.0


class SlotHolder(Protocol):
    """The connections to one origin. `occupied` is the number of slots that they occupy."""

    occupied: int


H = TypeVar("H", bound=SlotHolder)
C = TypeVar("C")


@dataclass(slots=True, eq=False)
class _Waiting(Generic[H, C]):
    holder: H
    outcome: "asyncio.Future[C | None]"


class ConnectionSlots(Generic[H, C]):
    """The slots. `make_room` closes an idle connection, if any, which frees its slot soon afterward."""

    def __init__(self, clock: Clock, *, per_origin: int, in_all: int, make_room: Callable[[], None]) -> None:
        self._clock, self._per_origin, self._in_all, self._make_room = clock, per_origin, in_all, make_room
        self._waiting: deque[_Waiting[H, C]] = deque()
        self.occupied = 0

    async def take(self, holder: H, put_back: Callable[[C], None]) -> C | None:
        """Reserve a slot, or return a connection that became free during the wait. Raises: NotConnected.

        None means that the caller may open a new connection. `put_back` receives a freed connection if the waiting
        caller is canceled at the same time.
        """
        if self._has_room(holder):
            self._occupy(holder)
            return None
        if holder.occupied < self._per_origin:
            self._make_room()
        waiting: _Waiting[H, C] = _Waiting(holder, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            return await within(self._clock, WAIT_SECONDS, waiting.outcome)
        except TimeoutError:
            self._waiting.remove(waiting)
            raise NotConnected(self._reason(holder)) from None
        except BaseException:
            if not waiting.outcome.done():
                self._waiting.remove(waiting)
            elif (connection := waiting.outcome.result()) is not None:
                put_back(connection)
            else:
                self.leave(holder)
            raise

    def leave(self, holder: H) -> None:
        """Free the slot of a connection that has closed or failed to open."""
        holder.occupied -= 1
        self.occupied -= 1
        for waiting in self._waiting:
            if self._has_room(waiting.holder):
                self._waiting.remove(waiting)
                self._occupy(waiting.holder)
                waiting.outcome.set_result(None)
                return

    def offer(self, holder: H, connection: C) -> bool:
        """Pass an idle connection to a waiting caller. Return False if no caller waits for it."""
        for waiting in self._waiting:
            if waiting.holder is holder:
                self._waiting.remove(waiting)
                waiting.outcome.set_result(connection)
                return True
        return False

    @property
    def is_wanted(self) -> bool:
        """Return whether closing a connection to any origin would help a waiting caller."""
        return any(waiting.holder.occupied < self._per_origin for waiting in self._waiting)

    def _has_room(self, holder: H) -> bool:
        return holder.occupied < self._per_origin and self.occupied < self._in_all

    def _occupy(self, holder: H) -> None:
        holder.occupied += 1
        self.occupied += 1

    def _reason(self, holder: H) -> str:
        if holder.occupied >= self._per_origin:
            return f"{holder.occupied} connections to it are in use, which is the limit (connections_per_origin)"
        return f"{self.occupied} connections to servers are in use, which is the limit (connections_in_all)"

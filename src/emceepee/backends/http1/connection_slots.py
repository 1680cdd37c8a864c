"""How many connections there may be, to one origin and in all. Who finds no place waits for one, but not for ever."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from emceepee.backends.http1.errors import NotConnected
from emceepee.clock import Clock, within

WAIT_SECONDS = 10.0


class SlotHolder(Protocol):
    """The connections to one origin; `taken` is how many places they have."""

    taken: int


H = TypeVar("H", bound=SlotHolder)
C = TypeVar("C")


@dataclass(slots=True, eq=False)
class _Waiting(Generic[H, C]):
    holder: H
    outcome: "asyncio.Future[C | None]"


class ConnectionSlots(Generic[H, C]):
    """`make_room` closes a connection that nobody uses, if there is one; its place is given back soon after."""

    def __init__(self, clock: Clock, *, per_origin: int, in_all: int, make_room: Callable[[], None]) -> None:
        self._clock, self._per_origin, self._in_all, self._make_room = clock, per_origin, in_all, make_room
        self._waiting: deque[_Waiting[H, C]] = deque()
        self.taken = 0

    async def take(self, holder: H, put_back: Callable[[C], None]) -> C | None:
        """A place for a new connection, or the connection that became free meanwhile. Raises: NotConnected.

        `put_back` gets the connection if whoever waited for it has just left.
        """
        if self._has_room(holder):
            self._occupy(holder)
            return None
        if holder.taken < self._per_origin:
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
        """A connection is gone, or did not come about."""
        holder.taken -= 1
        self.taken -= 1
        for waiting in self._waiting:
            if self._has_room(waiting.holder):
                self._waiting.remove(waiting)
                self._occupy(waiting.holder)
                waiting.outcome.set_result(None)
                return

    def offer(self, holder: H, connection: C) -> bool:
        """A connection is free: whether someone has waited for it, and has it now."""
        for waiting in self._waiting:
            if waiting.holder is holder:
                self._waiting.remove(waiting)
                waiting.outcome.set_result(connection)
                return True
        return False

    @property
    def is_wanted(self) -> bool:
        """Whether someone waits who would be helped by any connection's end."""
        return any(waiting.holder.taken < self._per_origin for waiting in self._waiting)

    def _has_room(self, holder: H) -> bool:
        return holder.taken < self._per_origin and self.taken < self._in_all

    def _occupy(self, holder: H) -> None:
        holder.taken += 1
        self.taken += 1

    def _reason(self, holder: H) -> str:
        if holder.taken >= self._per_origin:
            return f"{holder.taken} connections to it are in use, which is the limit (connections_per_origin)"
        return f"{self.taken} connections to servers are in use, which is the limit (connections_in_all)"

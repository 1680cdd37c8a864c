"""Fair access to script workers: each principal has a share, and waiting principals take turns."""

import asyncio
from collections import Counter, deque

from emceepee.futures import resolve


class WorkerSlots:
    """Grant at most `in_all` slots, and `per_principal` per principal. No principal gets all of several slots."""

    def __init__(self, in_all: int, per_principal: int) -> None:
        self._in_all, self._share = in_all, max(1, min(per_principal, in_all - 1))
        self._taken: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by principal
        self._turns = 0
        self._last_turn: dict[str, int] = {}  # of principals that have a worker or wait for one

    @property
    def taken(self) -> int:
        return self._taken.total()

    async def take(self, principal: str) -> None:
        """Wait for a slot. The caller returns it with `give_back`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._last_turn.setdefault(principal, 0)
        self._waiting.setdefault(principal, deque()).append(turn)
        self._give_out()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(principal)
            else:
                self._leave(principal, turn)
            raise

    def give_back(self, principal: str) -> None:
        self._taken[principal] -= 1
        self._give_out()
        self._forget(principal)

    def _give_out(self) -> None:
        while self.taken < self._in_all and (principal := self._next_principal()) is not None:
            turns = self._waiting[principal]
            turn = turns.popleft()
            if not turns:
                del self._waiting[principal]
            if not turn.cancelled():  # its waiter was cancelled and does not expect this turn
                self._turns += 1
                self._last_turn[principal] = self._turns
                self._taken[principal] += 1
                resolve(turn, None)

    def _next_principal(self) -> str | None:
        """Return the waiting principal with the fewest workers; among equals, the least recently served one."""
        below = [principal for principal in self._waiting if self._taken[principal] < self._share]
        return min(below, key=lambda principal: (self._taken[principal], self._last_turn[principal]), default=None)

    def _leave(self, principal: str, turn: "asyncio.Future[None]") -> None:
        turns = self._waiting.get(principal, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[principal]
        self._forget(principal)

    def _forget(self, principal: str) -> None:
        if not self._taken[principal]:
            del self._taken[principal]
            if principal not in self._waiting:
                self._last_turn.pop(principal, None)

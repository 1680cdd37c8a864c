"""Several installations that share a store, as replicas do, and a clock that only the test moves."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock
from support.sessions.installation import Installation, an_installation


class Replicas:
    """Several installations with one store and one clock."""

    def __init__(self, first: MemoryStore | None = None) -> None:
        self.clock = FakeClock()
        self._first = first or MemoryStore(is_durable=True)
        self.stores: list[MemoryStore] = []

    @asynccontextmanager
    async def start(self, count: int, **settings: Any) -> AsyncIterator[list[Installation]]:
        self._first.die()
        async with AsyncExitStack() as stack:
            self.stores = [self._first.another_process(f"unix:/replica/{number}") for number in range(count)]
            places = [
                await stack.enter_async_context(an_installation(store=store, clock=self.clock, **settings))
                for store in self.stores
            ]
            yield places

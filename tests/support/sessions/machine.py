"""A clock and a store that outlive the processes of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock
from support.sessions.installation import Installation, an_installation


class Machine:
    """Processes come and go on it; its disk and its clock stay."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(is_durable=True)

    @asynccontextmanager
    async def process(self, *, dies: bool = True, **settings: Any) -> AsyncIterator[Installation]:
        """Run a process that is killed at the end and loses unsaved changes, or that shuts down gracefully."""
        self.store = store = self.store.another_process()
        async with an_installation(store=store, clock=self.clock, **settings) as place:
            yield place
            if dies:
                store.die()
        await store.close()

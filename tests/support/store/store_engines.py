"""The engines of the store, and processes that come and go. In a test a process is a store of its own."""

from pathlib import Path
from typing import Protocol

from emceepee.clock import SystemClock
from emceepee.store.memory import MemoryStore
from emceepee.store.sqlite import SqliteStore
from emceepee.store.store import Store


class Engine(Protocol):
    """One place where state is kept."""

    async def open(self) -> Store:
        """A process that begins to use it."""
        ...

    async def kill(self, store: Store) -> None:
        """End one without its closing anything."""
        ...

    async def close(self) -> None: ...


class MemoryEngine:
    def __init__(self) -> None:
        self._first = MemoryStore(is_durable=True)

    async def open(self) -> Store:
        return self._first.another_process()

    async def kill(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        store.die()

    async def close(self) -> None: ...


class SqliteEngine:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: list[SqliteStore] = []

    async def open(self) -> Store:
        store = await SqliteStore.open(self._path, SystemClock())
        self._opened.append(store)
        return store

    async def kill(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        store._database.owners.vanish()  # as the system lets go of a dead process's locks
        await store._queue.close(store._database.close)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

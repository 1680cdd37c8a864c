"""The engines of the store, and processes that come and go. In a test a process is a store of its own."""

import base64
from pathlib import Path
from typing import Protocol

from emceepee.clock import SystemClock
from emceepee.store.memory_store import MemoryStore
from emceepee.store.redis.connection.redis_address import CLUSTER, parse_address
from emceepee.store.redis.keys import CLUSTER_PARTITIONS, KeyNames
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Store
from support.fakes.clock import FakeClock
from support.store.stored_sessions import HOUR, NOW
from support.system.redis_server import RedisServer

STATE_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()
LEASE_SECONDS = 600.0  # by Redis's clock nothing lapses while a test runs; by the test's, when it says so


class Engine(Protocol):
    """One place where state is kept."""

    async def open(self, address: str = "") -> Store:
        """A process that begins to use it. The others reach it at the address."""
        ...

    async def kill(self, store: Store) -> None:
        """End one without its closing anything."""
        ...

    async def close(self) -> None: ...


class MemoryEngine:
    def __init__(self) -> None:
        self._memory = MemoryStore(is_durable=True)
        self._memory.die()  # it counts for no process

    async def open(self, address: str = "") -> Store:
        return self._memory.another_process(address)

    async def kill(self, store: Store) -> None:
        assert isinstance(store, MemoryStore)
        store.die()

    async def close(self) -> None: ...


class SqliteEngine:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: list[SqliteStore] = []

    async def open(self, address: str = "") -> Store:
        store = await SqliteStore.open(self._path, SystemClock(), address=address)
        self._opened.append(store)
        return store

    async def kill(self, store: Store) -> None:
        assert isinstance(store, SqliteStore)
        await kill_sqlite_store(store)

    async def close(self) -> None:
        for store in self._opened:
            await store.close()


async def kill_sqlite_store(store: SqliteStore) -> None:
    """Lose the locks, as the system releases those of a dead process, and write nothing more."""
    store._database.owners.vanish()
    await store._queue.close(store._database.close)


class RedisEngine:
    """Time is the test's. What Redis lets lapse or expire by its own clock, it does not in a test's time."""

    state_key = STATE_KEY

    def __init__(self, server: RedisServer, url: str | None = None) -> None:
        self.address = parse_address(url or server.url())
        self.names = KeyNames(self.address.prefix, CLUSTER_PARTITIONS if self.address.kind == CLUSTER else 1)
        self.clock = FakeClock(NOW - HOUR)
        self.server = server
        self._opened: list[RedisStore] = []

    async def open(self, address: str = "") -> Store:
        store = await RedisStore.open(
            self.address, self.clock, key=STATE_KEY, address=address, lease_seconds=LEASE_SECONDS
        )
        self._opened.append(store)
        await self._let_leases_go_on()
        return store

    async def kill(self, store: Store) -> None:
        """Kill the store, and wait until its lease has expired and others may take over."""
        assert isinstance(store, RedisStore)
        self._opened.remove(store)
        await vanish(store)
        self.let_lapse(store)
        await self._let_leases_go_on()

    async def close(self) -> None:
        for store in self._opened:
            await store.close()

    def let_lapse(self, store: RedisStore) -> None:
        """Expire the lease of the store in Redis, as happens after its time."""
        assert store.replica is not None
        self.server.command("DEL", self.names.slot(store.replica.slot))

    async def _let_leases_go_on(self) -> None:
        """Advance time until every lease of a killed store can be taken over."""
        for _ in range(2):
            self.clock.jump(LEASE_SECONDS / 3)
            for each in self._opened:
                if not each._is_closed:
                    await each.confirm({})


async def vanish(store: RedisStore) -> None:
    """As a process that is killed: its connections end, and it renews nothing any more."""
    store._is_closed = True
    await store._tasks.close()
    await store._listener.close()
    await store._commands.close()

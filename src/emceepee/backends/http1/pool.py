"""The connection pool of all links, grouped by origin and owner."""

import asyncio
import resource
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from weakref import WeakValueDictionary

from emceepee.backends.http1.client_connection import ClientConnection
from emceepee.backends.http1.connect_errors import describe
from emceepee.backends.http1.connection_slots import ConnectionSlots
from emceepee.backends.http1.connector import Connector, PoolKey
from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.origin import HttpOrigin
from emceepee.backends.http1.proxies import DIRECT, Proxy, ProxyRules
from emceepee.backends.http1.resolver import Resolver
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.http1.tls_contexts import TlsContexts, TlsSettings
from emceepee.clock import Clock, Handle, give_up_after
from emceepee.lifecycle import CLOSE_IDLE_SECONDS

CONNECT_SECONDS = 10.0  # timeout for opening a connection; the caller sets the timeout of the request itself
IDLE_SECONDS = 60.0  # after which an idle connection is closed
ROOM_SECONDS = 1.0  # margin before the server's keep-alive timeout: a request in flight at its expiry would be lost
DISCARD_SECONDS = 5.0  # to receive the rest of a discarded response; after that, a new connection is cheaper


class ConnectionPool:
    """The connections of all owners. Open it with `running`. Different owners never share a connection."""

    def __init__(
        self,
        clock: Clock,
        tls: ssl.SSLContext | None,
        *,
        per_origin: int,
        in_all: int,
        connect_seconds: float = CONNECT_SECONDS,
        proxies: ProxyRules = DIRECT,
        contexts: TlsContexts | None = None,
    ) -> None:
        self.clock, self.connect_seconds = clock, connect_seconds
        self.open: set[ClientConnection] = set()
        self.slots: ConnectionSlots[OriginPool, ClientConnection] = ConnectionSlots(
            clock, per_origin=per_origin, in_all=in_all, make_room=self._close_oldest_idle
        )
        self.connector = Connector(Resolver(clock), tls, contexts or TlsContexts(), proxies)
        self.is_closed = False
        self._origins: WeakValueDictionary[PoolKey, OriginPool] = WeakValueDictionary()  # alive while used or open
        self._sweeping: Handle | None = None
        self._all_gone: asyncio.Event | None = None

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        clock: Clock,
        tls: ssl.SSLContext | None,
        *,
        per_origin: int = 1000,
        in_all: int = 1000,
        connect_seconds: float = CONNECT_SECONDS,
        proxies: ProxyRules = DIRECT,
        contexts: TlsContexts | None = None,
    ) -> "AsyncIterator[ConnectionPool]":
        """Run a pool with limits on connections: `per_origin` for one owner and origin, and `in_all` in total.

        Both limits are lowered to fit the process's limit on open files. Without `tls`, TLS origins are unreachable.
        `contexts` are for origins with their own TLS settings.
        """
        in_all = min(in_all, most_descriptors() // 2)
        per_origin = min(per_origin, max(in_all * 3 // 4, 1))
        pool = cls(
            clock,
            tls,
            per_origin=per_origin,
            in_all=in_all,
            connect_seconds=connect_seconds,
            proxies=proxies,
            contexts=contexts,
        )
        try:
            yield pool
        finally:
            await pool.close()

    def of(
        self, origin: HttpOrigin, *, owner: str = "", is_public: bool = False, tls: TlsSettings | None = None
    ) -> "OriginPool":
        key = PoolKey(origin, owner, is_public, tls)
        found = self._origins.get(key)
        if found is None:
            found = self._origins[key] = OriginPool(self, key)
        return found

    def schedule_sweep(self) -> None:
        """Start the timer that closes idle connections, if it is not running."""
        if self._sweeping is None and not self.is_closed:
            self._sweeping = self.clock.call_later(IDLE_SECONDS, self._sweep)

    def forget(self, connection: ClientConnection, holder: "OriginPool") -> None:
        if connection in self.open:
            self.open.discard(connection)
            self.slots.leave(holder)
        if not self.open and self._all_gone is not None:
            self._all_gone.set()

    async def close(self) -> None:
        self.is_closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self.connector.resolver.close()
        if not self.open:
            return
        self._all_gone = asyncio.Event()
        for connection in list(self.open):
            connection.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_IDLE_SECONDS):
                await self._all_gone.wait()

    def _close_oldest_idle(self) -> None:
        idle = [one for one in self.open if one.good_until is not None]
        if idle:
            min(idle, key=lambda one: one.good_until or 0.0).abort()

    def _sweep(self) -> None:
        self._sweeping = None
        now = self.clock.monotonic()
        idle = {one: one.good_until for one in self.open if one.good_until is not None}
        for connection, until in idle.items():
            if until <= now:
                connection.abort()
        if later := [until for until in idle.values() if until > now]:
            self._sweeping = self.clock.call_later(min(later) - now, self._sweep)


class OriginPool:
    """One owner's connections to one origin. The most recently used one is reused first, so that the others expire."""

    def __init__(self, pool: ConnectionPool, key: PoolKey) -> None:
        self._pool, self._key = pool, key
        self.occupied = 0
        self._idle: list[ClientConnection] = []

    @property
    def forwarding_proxy(self) -> Proxy | None:
        """The proxy that forwards the requests, or None."""
        return self._pool.connector.forwarding_proxy(self._key)

    def take(self) -> ClientConnection | None:
        """Return an idle connection that appears to be open, or None."""
        while self._idle:
            connection = self._idle.pop()
            until, connection.good_until = connection.good_until, None
            is_young = until is not None and until > self._pool.clock.monotonic()
            if connection.is_open and is_young and connection.is_silent():
                return connection
            connection.abort()
        return None

    async def connect(self) -> ClientConnection:
        """Open a connection, or wait for one to become free if no slot is available. Raises: NotConnected."""
        freed = await self._pool.slots.take(self, self.put_back)
        if freed is not None:
            return freed
        try:
            return await self._connect()
        except BaseException:
            self._pool.slots.leave(self)
            raise

    async def _connect(self) -> ClientConnection:
        loop, connector = asyncio.get_running_loop(), self._pool.connector
        # Race: some proxies close the connection after each response without announcing it.
        needs_promise = self.forwarding_proxy is not None
        try:
            async with give_up_after(self._pool.clock, self._pool.connect_seconds):
                connection = await connector.open(
                    self._key, lambda: ClientConnection(self, loop, needs_promise=needs_promise)
                )
        except (OSError, UnicodeError) as error:  # a TimeoutError is an OSError
            seconds, proxy = self._pool.connect_seconds, connector.proxy_for(self._key)
            words = describe(
                error, seconds=seconds, is_tls=self._key.origin.is_tls, settings=self._key.tls, proxy=proxy
            )
            raise NotConnected(words) from error
        if not connection.is_open or self._pool.is_closed:
            connection.abort()
            raise NotConnected("the connection was closed at once")
        self._pool.open.add(connection)
        return connection

    # Callbacks of connections (`ConnectionOwner`).

    def put_back(self, connection: ClientConnection) -> None:
        if self._pool.slots.offer(self, connection):
            return
        if self._pool.slots.is_wanted:
            connection.abort()
            return
        patience = min(IDLE_SECONDS, connection.server_keeps - ROOM_SECONDS)
        connection.good_until = self._pool.clock.monotonic() + patience
        self._idle.append(connection)
        self._pool.schedule_sweep()

    def retire(self, connection: ClientConnection) -> None:
        if connection.good_until is not None:
            connection.good_until = None
            self._idle.remove(connection)

    def forget(self, connection: ClientConnection) -> None:
        self._pool.forget(connection, self)

    def close_soon(self, response: HttpResponse) -> Handle:
        return self._pool.clock.call_later(DISCARD_SECONDS, response.close)


def most_descriptors() -> int:
    """Return how many files and sockets this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else 1 << 20

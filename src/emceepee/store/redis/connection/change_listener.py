"""Listens for messages from replicas that changed the shared state or found another replica dead.

After a reconnect, it reports a change, because it may have missed messages.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence

from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.store.redis.connection.connect import OnMessage
from emceepee.store.redis.connection.redis_connection import ConnectionLost, RedisConnection
from emceepee.store.redis.connection.redis_link import CONNECTING, FIRST_PAUSE, LONGEST_PAUSE
from emceepee.store.store import StoreListener

GONE = b"gone"  # precedes epochs of dead replicas; any other message is the epoch of a replica that made a change


def gone_message(epochs: Collection[int]) -> bytes:
    return b" ".join([GONE, *(b"%d" % epoch for epoch in sorted(epochs))])


class ChangeListener:
    """Subscribes to a channel over a connection from `connect`. `listener` gets the changes of other replicas."""

    def __init__(
        self,
        connect: Callable[[OnMessage], Awaitable[RedisConnection]],
        clock: Clock,
        *,
        channel: str,
        teller: str,
        listener: StoreListener,
    ) -> None:
        self._connect, self._clock = connect, clock
        self._channel, self._teller, self._listener = channel, teller.encode(), listener
        self._tasks = TaskOwner("redis-listener")
        self._connection: RedisConnection | None = None
        self._is_closed = False

    async def open(self) -> None:
        """Raises: what connecting can raise."""
        await self._subscribe()

    async def close(self) -> None:
        self._is_closed = True
        if self._connection is not None:
            self._connection.close()
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    async def _subscribe(self) -> None:
        connection = await self._connect(self._receive)
        try:
            await connection.ask("SUBSCRIBE", self._channel)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        if not connection.is_open:
            raise ConnectionLost("the connection was closed")
        connection.when_lost(self._begin_again)

    def _receive(self, message: Sequence[bytes]) -> None:
        first, *rest = message[2].split(b" ")
        if first == GONE:
            self._listener.handle_replicas_gone([int(epoch) for epoch in rest])
        elif first != self._teller:
            self._listener.handle_shared_change()

    def _begin_again(self, why: str) -> None:
        if not self._is_closed:
            self._tasks.spawn(self._reconnect(), name="reconnect")

    async def _reconnect(self) -> None:
        pause = FIRST_PAUSE
        while True:
            await self._clock.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            try:
                await self._subscribe()
            except CONNECTING:
                continue
            self._listener.handle_shared_change()
            return

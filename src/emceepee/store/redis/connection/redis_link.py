"""The one connection for commands, which reconnects after a loss. While that fails, callers get an error at once."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import hiredis

from emceepee.clock import Clock
from emceepee.futures import resolve
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.store.redis.connection import redis_faults as faults
from emceepee.store.redis.connection.commands import ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_connection import ConnectionLost, RedisConnection, Word
from emceepee.store.store import StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25  # seconds between attempts to connect; a late replica loses its lease
# Errors from attempts to connect. An invalid host name raises UnicodeError.
CONNECTING = (OSError, asyncio.TimeoutError, ConnectionLost, hiredis.ReplyError, UnicodeError)


class RedisLink:
    """Sends commands over `connection`, and over a new connection from `connect` after each loss."""

    is_spread = False

    def __init__(
        self,
        address: RedisAddress,
        connection: RedisConnection,
        connect: Callable[[], Awaitable[RedisConnection]],
        clock: Clock,
    ) -> None:
        self._address, self._connect, self._clock = address, connect, clock
        self._tasks = TaskOwner("redis")
        self._is_closed = False
        self._connection = connection
        self._attempt: asyncio.Future[None] | None = None  # set until the first attempt to reconnect ends
        self._problem: str | None = None  # why the last attempt failed
        connection.when_lost(self._begin_again)

    async def run_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        connection = self._connection if self._connection.is_open else await self._wait_for_connection()
        commands = [("EVALSHA", call.script.sha, len(call.keys), *call.keys, *call.arguments) for call in calls]
        replies = await self._send(connection, commands)
        for number, reply in enumerate(replies):
            if isinstance(reply, hiredis.ReplyError):
                if faults.first_word(reply) != "NOSCRIPT":
                    raise self._refused(connection, reply, len(calls))
                call = calls[number]
                whole = ("EVAL", call.script.text, len(call.keys), *call.keys, *call.arguments)
                (replies[number],) = await self._send(connection, [whole])
                if isinstance(replies[number], hiredis.ReplyError):
                    raise self._refused(connection, replies[number], len(calls))
        return replies

    async def execute(self, *words: Word) -> Any:
        connection = self._connection if self._connection.is_open else await self._wait_for_connection()
        (reply,) = await self._send(connection, [words])
        if isinstance(reply, hiredis.ReplyError):
            raise self._refused(connection, reply, 1)
        return reply

    async def close(self) -> None:
        self._is_closed = True
        self._connection.close(faults.CLOSED)
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    async def _send(self, connection: RedisConnection, commands: Sequence[Sequence[Word]]) -> list[Any]:
        try:
            futures = connection.send(commands)
        except ConnectionLost as error:
            raise self._unavailable(error) from None
        try:
            return [await future for future in futures]
        except ConnectionLost as error:
            raise UnknownOutcome(self._unavailable(error)) from None

    async def _wait_for_connection(self) -> RedisConnection:
        """Wait for the first attempt to reconnect. If it has failed already, raise at once."""
        if self._attempt is not None:
            await asyncio.shield(self._attempt)
        if self._is_closed:
            raise StoreUnavailable(faults.CLOSED)
        if not self._connection.is_open:
            raise StoreUnavailable(self._problem or str(self._unavailable(ConnectionLost("it was lost"))))
        return self._connection

    def _begin_again(self, why: str) -> None:
        if not self._is_closed:
            log.warning("redis_lost", redis=str(self._address), error=why)
            self._attempt = asyncio.get_running_loop().create_future()
            self._tasks.spawn(self._reconnect(), name="reconnect")

    async def _reconnect(self) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                try:
                    self._connection = await self._connect()
                    break
                except CONNECTING as error:
                    self._problem = str(faults.unavailable(self._address, error))
                    self._end_attempt()
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._end_attempt()
        self._problem = None
        self._connection.when_lost(self._begin_again)
        log.info("redis_reconnected", redis=str(self._address))

    def _end_attempt(self) -> None:
        if self._attempt is not None:
            attempt, self._attempt = self._attempt, None
            resolve(attempt, None)

    def _refused(self, connection: RedisConnection, error: hiredis.ReplyError, calls: int) -> Exception:
        """Return the error for a refused call. If there were several calls, the others may have run."""
        if faults.first_word(error) in faults.RECONNECTING:
            connection.close(str(error))
        refused = faults.unavailable(self._address, error)
        return refused if calls == 1 else UnknownOutcome(refused)

    def _unavailable(self, error: ConnectionLost) -> StoreUnavailable:
        return StoreUnavailable(faults.CLOSED) if self._is_closed else faults.unavailable(self._address, error)

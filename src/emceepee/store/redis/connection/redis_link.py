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
from emceepee.store.redis.connection.redis_wire import ConnectionLost, Wire, Word
from emceepee.store.store import StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25  # seconds between attempts to connect; a late replica loses its lease
# Errors from attempts to connect. An invalid host name raises UnicodeError.
CONNECTING = (OSError, asyncio.TimeoutError, ConnectionLost, hiredis.ReplyError, UnicodeError)


class RedisLink:
    """Sends commands over `wire`, and over a new connection from `connect` after each loss."""

    is_spread = False

    def __init__(self, address: RedisAddress, wire: Wire, connect: Callable[[], Awaitable[Wire]], clock: Clock) -> None:
        self._address, self._connect, self._clock = address, connect, clock
        self._tasks = TaskOwner("redis")
        self._is_closed = False
        self._wire = wire
        self._attempt: asyncio.Future[None] | None = None  # set until the first attempt to reconnect ends
        self._problem: str | None = None  # why the last attempt failed
        self._follow(wire)

    async def run_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        wire = self._wire if self._wire.is_open else await self._wait_for_wire()
        commands = [("EVALSHA", call.script.sha, len(call.keys), *call.keys, *call.arguments) for call in calls]
        replies = await self._send(wire, commands)
        for number, reply in enumerate(replies):
            if isinstance(reply, hiredis.ReplyError):
                if faults.first_word(reply) != "NOSCRIPT":
                    raise self._refused(wire, reply, len(calls))
                call = calls[number]
                whole = ("EVAL", call.script.text, len(call.keys), *call.keys, *call.arguments)
                (replies[number],) = await self._send(wire, [whole])
                if isinstance(replies[number], hiredis.ReplyError):
                    raise self._refused(wire, replies[number], len(calls))
        return replies

    async def execute(self, *words: Word) -> Any:
        wire = self._wire if self._wire.is_open else await self._wait_for_wire()
        (reply,) = await self._send(wire, [words])
        if isinstance(reply, hiredis.ReplyError):
            raise self._refused(wire, reply, 1)
        return reply

    async def close(self) -> None:
        self._is_closed = True
        self._wire.close(faults.CLOSED)
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    async def _send(self, wire: Wire, commands: Sequence[Sequence[Word]]) -> list[Any]:
        try:
            futures = wire.send(commands)
        except ConnectionLost as error:
            raise self._unavailable(error) from None
        try:
            return [await future for future in futures]
        except ConnectionLost as error:
            raise UnknownOutcome(self._unavailable(error)) from None

    async def _wait_for_wire(self) -> Wire:
        """Wait for the first attempt to reconnect. If it has failed already, raise at once."""
        if self._attempt is not None:
            await asyncio.shield(self._attempt)
        if self._is_closed:
            raise StoreUnavailable(faults.CLOSED)
        if not self._wire.is_open:
            raise StoreUnavailable(self._problem or str(self._unavailable(ConnectionLost("it was lost"))))
        return self._wire

    def _follow(self, wire: Wire) -> None:
        wire.on_lost = self._begin_again
        if not wire.is_open:
            self._begin_again("the connection was closed")

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
                    self._wire = await self._connect()
                    break
                except CONNECTING as error:
                    self._problem = str(faults.unavailable(self._address, error))
                    self._end_attempt()
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        finally:
            self._end_attempt()
        self._problem = None
        self._follow(self._wire)
        log.info("redis_found_again", redis=str(self._address))

    def _end_attempt(self) -> None:
        if self._attempt is not None:
            attempt, self._attempt = self._attempt, None
            resolve(attempt, None)

    def _refused(self, wire: Wire, error: hiredis.ReplyError, calls: int) -> Exception:
        """Return the error for a refused call. If there were several calls, the others may have run."""
        if faults.first_word(error) in faults.RECONNECTING:
            wire.close(str(error))
        refused = faults.unavailable(self._address, error)
        return refused if calls == 1 else UnknownOutcome(refused)

    def _unavailable(self, error: ConnectionLost) -> StoreUnavailable:
        return StoreUnavailable(faults.CLOSED) if self._is_closed else faults.unavailable(self._address, error)

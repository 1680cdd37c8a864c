"""One pipelined connection to Redis: commands are sent without waiting, and replies arrive in the same order."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import hiredis

from emceepee.futures import reject, resolve

COMMAND_SECONDS = 2.0  # without a reply; after that, the connection counts as lost
Word = bytes | str | int


class ConnectionLost(Exception):
    """The connection is lost. It is unknown whether the commands in flight took effect."""


class RedisConnection(asyncio.Protocol):
    """Matches replies to callers. The reply for a cancelled caller is discarded, and never reaches another caller.

    `on_message` receives the messages of a subscription.
    """

    def __init__(self, on_message: Callable[[Sequence[bytes]], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._reader = hiredis.Reader()
        self._waiting: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._transport: asyncio.Transport | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._on_message = on_message
        self._why_lost: str | None = None
        self._report_loss: Callable[[str], None] | None = None

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self._why_lost is None

    def send(self, commands: Iterable[Sequence[Word]]) -> "list[asyncio.Future[Any]]":
        """Send commands at once and return a future per reply. Raises: ConnectionLost, and then nothing was sent."""
        if self._transport is None or self._why_lost is not None:
            raise ConnectionLost(self._why_lost or "it is not open")
        now = self._loop.time()
        futures: list[asyncio.Future[Any]] = []
        packed = []
        for words in commands:
            packed.append(hiredis.pack_command(tuple(words)))  # type: ignore[arg-type]  # its stub means any length
            future: asyncio.Future[Any] = self._loop.create_future()
            futures.append(future)
            self._waiting.append((now, future))
        self._transport.write(packed[0] if len(packed) == 1 else b"".join(packed))
        if self._watch is None:
            self._watch = self._loop.call_later(COMMAND_SECONDS, self._look_at_oldest)
        return futures

    async def ask(self, *words: Word) -> Any:
        """Raises: ConnectionLost, hiredis.ReplyError."""
        (future,) = self.send([words])
        reply = await future
        if isinstance(reply, hiredis.ReplyError):
            raise reply
        return reply

    def when_lost(self, report: Callable[[str], None]) -> None:
        """Call `report` once with the reason when the connection is lost; at once if it is lost already."""
        if self._why_lost is not None:
            report(self._why_lost)
        else:
            self._report_loss = report

    def close(self, why: str = "it was closed") -> None:
        self._end(why)

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's has the same methods but another class

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                self._receive(reply)
        except hiredis.ProtocolError:
            self._end("it does not answer as Redis does")

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("the connection was closed" if exc is None else str(exc) or type(exc).__name__)

    def _receive(self, reply: Any) -> None:
        if self._on_message is not None and isinstance(reply, list) and reply[:1] == [b"message"]:
            self._on_message(reply)
        elif self._waiting:
            resolve(self._waiting.popleft()[1], reply)

    def _look_at_oldest(self) -> None:
        self._watch = None
        if not self._waiting:
            return
        left = self._waiting[0][0] + COMMAND_SECONDS - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._look_at_oldest)
        else:
            self._end(f"it did not answer within {COMMAND_SECONDS:g} s")

    def _end(self, why: str) -> None:
        if self._why_lost is not None:
            return
        self._why_lost = why
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.abort()
        while self._waiting:
            reject(self._waiting.popleft()[1], ConnectionLost(why))
        if self._report_loss is not None:
            self._report_loss(why)

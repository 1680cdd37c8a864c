"""Requests and answers over one shared two-way channel (a child's pipes, the older SSE transport), matched by id."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from emceepee.backends.inbound import Inbound
from emceepee.backends.json_rpc import (
    NEVER_CANCELLED,
    cancel_message,
    number_of,
    outcome,
    request_message,
)
from emceepee.backends.link import LinkError, Listener
from emceepee.futures import reject
from emceepee.ids import request_numbers
from emceepee.json_rpc import notification_message
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner

SendMessage = Callable[[JsonObject], Awaitable[None]]
MOST_IN_BATCH = 1000  # messages


@dataclass(slots=True)
class _Waiting:
    answer: "asyncio.Future[JsonObject]"
    origin: object | None


class Duplex:
    """One conversation: our requests by number, the backend's by its own ids."""

    def __init__(
        self,
        send: SendMessage,
        listener: Listener,
        tasks: TaskOwner,
        *,
        most_requests: int,
        reply: SendMessage | None = None,
    ) -> None:
        """`most_requests` of the backend are served at once; `reply` sends our answers, if not as everything else."""
        self._send, self._tasks = send, tasks
        self.inbound = Inbound(listener, tasks, reply or send, most=most_requests)
        self._numbers = request_numbers()
        self._waiting: dict[int, _Waiting] = {}
        self._ended: LinkError | None = None
        self.envelope: JsonObject | None = None  # the 2026-07-28 era's `_meta`; None in the handshake era

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    async def request(
        self, method: str, params: JsonObject | None, *, origin: object | None, meta: JsonObject | None = None
    ) -> JsonObject:
        if self._ended is not None:
            raise LinkError(self._ended.failure, str(self._ended), may_have_run=False)
        number = next(self._numbers)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), origin)
        self._waiting[number] = waiting
        try:
            meta = meta if meta is not None else self.envelope
            await self._send(request_message(number, method, params, meta=meta, wants_progress=origin is not None))
            return outcome(await waiting.answer)
        except asyncio.CancelledError:
            if method not in NEVER_CANCELLED and self._ended is None:
                self._send_cancel(number)
            raise
        finally:
            del self._waiting[number], waiting  # which has the error that has this frame

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._send(notification_message(method, params))

    def receive(self, message: Any) -> bool:
        """Take one decoded message; False if it is none that JSON-RPC knows."""
        if isinstance(message, list):  # a batch, as 2025-03-26 allows
            if len(message) > MOST_IN_BATCH:
                return False
            understood = [not isinstance(part, list) and self.receive(part) for part in message]
            return bool(understood) and all(understood)
        if not isinstance(message, dict):
            return False
        if "method" in message:
            self.inbound.receive(message, self._origin_of(message))
            return True
        if "id" not in message or not ("result" in message or "error" in message):
            return False
        self._handle_answer(message)
        return True

    def end(self, error: LinkError) -> None:
        """Nothing more will come: every waiting request fails with `error`."""
        if self._ended is None:
            self._ended = error
            for waiting in list(self._waiting.values()):
                # Whoever could not even send never looks at it.
                reject(waiting.answer, LinkError(error.failure, str(error)))

    def fail_request(self, key: int | str | None, error: LinkError) -> None:
        """The answer to request `key` came and could not be kept; without a key, it may be that to any of them."""
        numbers = list(self._waiting) if key is None else [number_of(key)]
        for number in numbers:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.answer.done():
                waiting.answer.set_exception(LinkError(error.failure, str(error)))

    def _handle_answer(self, message: JsonObject) -> None:
        waiting = self._waiting.get(number_of(message["id"]))
        if waiting is None or waiting.answer.done():
            return  # an answer that came after its caller had gone
        waiting.answer.set_result(message)

    def _origin_of(self, message: JsonObject) -> object | None:
        """Progress names its request by the token; nothing else on a shared channel does."""
        params = message.get("params")
        if message["method"] != "notifications/progress" or not isinstance(params, dict):
            return None
        token = params.get("progressToken")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        return waiting.origin if waiting else None

    def _send_cancel(self, number: int) -> None:
        async def send() -> None:
            try:
                await self._send(cancel_message(number))
            except LinkError:
                return  # gone meanwhile: there is nobody to tell

        self._tasks.spawn(send(), name="cancelled")

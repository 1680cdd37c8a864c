"""Requests and answers over one shared two-way line (a child's pipes, the older SSE transport), matched by id."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from emceepee.backends.inbound import Inbound
from emceepee.backends.link import Failure, LinkError, Listener, RpcError
from emceepee.codec import Unreadable
from emceepee.framing import TooLongLine
from emceepee.ids import request_numbers
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner

SendMessage = Callable[[JsonObject], Awaitable[None]]
MOST_IN_BATCH = 1000  # messages
_NEVER_CANCELLED = frozenset({"initialize", "server/discover"})


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
            message = {"jsonrpc": "2.0", "id": number, "method": method}
            stamped = stamp(params, meta if meta is not None else self.envelope, None if origin is None else number)
            if stamped is not None:
                message["params"] = stamped
            await self._send(message)
            return outcome(await waiting.answer)
        except asyncio.CancelledError:
            if method not in _NEVER_CANCELLED and self._ended is None:
                self._tell_cancelled(number)
            raise
        finally:
            del self._waiting[number], waiting  # which has the error that has this frame

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

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
        self._answered(message)
        return True

    def end(self, error: LinkError) -> None:
        """Nothing more will come: every waiting request fails with `error`."""
        if self._ended is None:
            self._ended = error
            for waiting in list(self._waiting.values()):
                if not waiting.answer.done():
                    waiting.answer.set_exception(LinkError(error.failure, str(error)))
                    waiting.answer.exception()  # whoever could not even send does not look

    def lost(self, key: int | str | None, error: LinkError) -> None:
        """The answer to request `key` came and could not be kept; without a key, it may be that to any of them."""
        numbers = list(self._waiting) if key is None else [_number(key)]
        for number in numbers:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.answer.done():
                waiting.answer.set_exception(LinkError(error.failure, str(error)))

    def _answered(self, message: JsonObject) -> None:
        waiting = self._waiting.get(_number(message["id"]))
        if waiting is None or waiting.answer.done():
            return  # an answer that came after its caller had gone
        waiting.answer.set_result(message)

    def _origin_of(self, message: JsonObject) -> object | None:
        """Progress names its request by the token; nothing else on a shared line does."""
        params = message.get("params")
        if message["method"] != "notifications/progress" or not isinstance(params, dict):
            return None
        token = params.get("progressToken")
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        return waiting.origin if waiting else None

    def _tell_cancelled(self, number: int) -> None:
        async def tell() -> None:
            try:
                await self.notify("notifications/cancelled", {"requestId": number, "reason": "cancelled by the caller"})
            except LinkError:
                return  # gone meanwhile: there is nobody to tell

        self._tasks.spawn(tell(), name="cancelled")


def _number(key: Any) -> int:
    """Which of our requests an id names; 0, which none has, for an id that can be none of ours."""
    if isinstance(key, str) and key.isdecimal() and len(key) < 20:
        return int(key)  # a careless backend made text of it
    return int(key) if type(key) in (int, float) and key == key // 1 else 0


def stamp(params: JsonObject | None, meta: JsonObject | None, progress_token: int | None) -> JsonObject | None:
    """The parameters with what emceepee itself says in `_meta`: the era's envelope and a progress token."""
    if meta is None and progress_token is None:
        return params
    params = params or {}
    own = params.get("_meta")
    stamped = {**own, **(meta or {})} if isinstance(own, dict) else dict(meta or {})
    if progress_token is not None:
        stamped["progressToken"] = progress_token
    return {**params, "_meta": stamped}


def unreadable(data: bytes, why: Unreadable) -> JsonObject | None:
    """In the place of a response that cannot be read, so that its request fails; None if it is not known which."""
    ends = TooLongLine.of(data)
    key = ends.message_id if ends.may_be_an_answer else None
    return None if key is None else {"jsonrpc": "2.0", "id": key, "result": why}


def outcome(message: Any) -> JsonObject:
    """The result in a response.

    Raises:
        RpcError: the response is an error.
        LinkError: it is no response at all.
    """
    if isinstance(message, dict):
        if isinstance(result := message.get("result"), dict):
            return result
        if isinstance(result, Unreadable):
            raise LinkError(Failure.PROTOCOL, f"the answer is {result}")
        if isinstance(error := message.get("error"), dict):
            raise RpcError(error)
    raise LinkError(Failure.PROTOCOL, f"the answer has neither a result object nor an error: {str(message)[:200]}")

"""The response to an HTTP request, as the channel of its JSON-RPC request."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from emceepee.clock import Clock
from emceepee.wire.json_rpc import REQUEST_CANCELLED, RequestId, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR

MOST_UNREAD = 200  # messages: well below the limit at which messages to a slow client are dropped
UNREAD_PAUSE = 0.01  # seconds between checks of a slow client


class OpenResponse(Protocol):
    """The stream that a response becomes once a message precedes the answer."""

    def send(self, message: JsonObject) -> None: ...

    @property
    def unread(self) -> int:
        """The number of messages that the client has not read yet."""
        ...


class ReplayChannel:
    """Messages before the answer go out at once; later messages go to `send_later`."""

    def __init__(
        self,
        response: OpenResponse,
        clock: Clock,
        *,
        takes_questions: bool,
        send_later: Callable[[JsonObject], None] | None = None,
    ) -> None:
        """Without `send_later`, messages after the answer are dropped."""
        self._response, self._clock, self._send_later = response, clock, send_later
        self.takes_questions = takes_questions
        self._answer: JsonObject | None = None

    def send(self, message: JsonObject) -> None:
        if "method" not in message:
            self._answer = message
        elif self._answer is None:
            self._response.send(message)
        elif self._send_later is not None:
            self._send_later(message)

    async def drain(self) -> None:
        while self._answer is None and self._response.unread > MOST_UNREAD:
            await self._clock.sleep(UNREAD_PAUSE)

    async def wait_for_answer(self, request_id: RequestId, serving: "asyncio.Task[None]") -> JsonObject:
        """Wait for the answer. An HTTP request needs a response even if its task was cancelled or failed."""
        await asyncio.wait({serving})
        if self._answer is not None:
            return self._answer
        if serving.cancelled():
            return error_message(request_id, REQUEST_CANCELLED, "Request cancelled")
        return error_message(request_id, INTERNAL_ERROR, "Internal error")

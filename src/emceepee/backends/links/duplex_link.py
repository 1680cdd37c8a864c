"""The common part of links over one shared two-way channel (a child's pipes, the older SSE transport).

It covers everything except the channel: numbering our requests, accepting the backend's ids, and matching answers.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from emceepee.backends.link import LinkError, LinkFailure, LinkLifetime, Listener, ServerFacts
from emceepee.backends.links.client_messages import (
    NEVER_CANCELLED,
    NOT_JSON,
    cancel_message,
    ids_near_ends,
    number_of,
    outcome,
    request_message,
    unreadable,
)
from emceepee.backends.links.inbound_messages import InboundMessages
from emceepee.backends.negotiation import Envelopes, NegotiationTerms, envelope, negotiate
from emceepee.futures import reject
from emceepee.ids import request_numbers
from emceepee.lifecycle import TaskOwner
from emceepee.wire.codec import Unreadable, decode
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import MODERN_PROTOCOL_VERSIONS, SUBSCRIPTION_ID_META_KEY

MOST_IN_BATCH = 1000  # messages


@dataclass(slots=True)
class _Waiting:
    answer: "asyncio.Future[JsonObject]"
    origin: object | None


class DuplexLink(LinkLifetime, ABC):
    """Base class. A subclass provides the channel: it sends with `_send`, and passes incoming data to `_receive`."""

    mirrors_arguments = False

    def __init__(self, name: str, listener: Listener, *, most_requests: int) -> None:
        """At most `most_requests` requests of the backend are served at once."""
        super().__init__()
        self._listener = listener
        self._tasks = TaskOwner(name)
        self._inbound = InboundMessages(listener, self._tasks, self._reply, most=most_requests)
        self._numbers = request_numbers()
        self._waiting: dict[int, _Waiting] = {}
        self._ended: LinkError | None = None
        self._envelopes: Envelopes | None = None  # the 2026-07-28 era's `_meta`; None in the handshake era
        self._terms = NegotiationTerms()
        self.facts = ServerFacts()

    # The public interface.

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,  # only the Streamable HTTP transport uses them
        meta: JsonObject | None = None,  # replaces the envelope
    ) -> JsonObject:
        if self._ended is not None:
            raise LinkError(self._ended.failure, str(self._ended), may_have_run=False)
        number = next(self._numbers)
        waiting = _Waiting(asyncio.get_running_loop().create_future(), origin)
        self._waiting[number] = waiting
        try:
            if meta is None and self._envelopes is not None:
                meta = self._envelopes.of(method)
            await self._send(request_message(number, method, params, meta=meta, wants_progress=origin is not None))
            return outcome(await waiting.answer)
        except asyncio.CancelledError:
            if method not in NEVER_CANCELLED and self._ended is None:
                self._tasks.spawn(self._send_cancel(number), name="cancelled")
            raise
        finally:
            del self._waiting[number], waiting  # breaks a reference cycle: its error's traceback holds this frame

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._send(notification_message(method, params))

    async def send_answer(self, message: JsonObject) -> None:
        await self._send(message)

    def set_log_level(self, level: str) -> None:
        if self._envelopes is not None:
            self._envelopes.set_log_level(level)

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    @property
    def identity(self) -> None:
        return None  # a new channel begins a new session

    @property
    def resumption(self) -> None:
        return None

    def leave_session(self) -> None: ...

    # Outgoing messages.

    @abstractmethod
    def _send(self, message: JsonObject) -> Awaitable[None]:
        """Send a message. Raises: LinkError, here or in the awaitable."""

    async def _reply(self, message: JsonObject) -> None:
        """Answer the backend's own request. Raises: LinkError."""
        await self._send(message)

    async def _send_cancel(self, number: int) -> None:
        try:
            await self._send(cancel_message(number))
        except LinkError:
            return  # the link was closed in the meantime

    async def _negotiate(self, terms: NegotiationTerms) -> None:
        """Negotiate the era with the other end."""
        self._terms = terms
        self.facts = await negotiate(self._discover, self.request, terms)
        if self.facts.is_modern:
            self._envelopes = Envelopes(self.facts.protocol_version, terms.capabilities)
        else:
            await self.notify("notifications/initialized")

    async def _discover(self, method: str, params: JsonObject) -> JsonObject:
        meta = envelope(MODERN_PROTOCOL_VERSIONS[-1], self._terms.capabilities)
        return await self.request(method, params, meta=meta)

    # Incoming messages.

    def _receive(self, data: bytes) -> None:
        """Handle one message. Anything that is not a message is reported as output."""
        try:
            understood = self._handle_message(decode(data))
        except ValueError as error:
            understood = self._handle_unreadable(data, error)
        if not understood:
            self._listener.handle_output(data.decode("utf-8", "replace"), "stdout")

    def _handle_unreadable(self, data: bytes, error: ValueError) -> bool:
        """Fail the requests that wait for an undecodable message.

        Return False if the text is not a message and belongs in the log.
        """
        why = error if isinstance(error, Unreadable) else NOT_JSON
        if (message := unreadable(data, why)) is not None:
            return self._handle_message(message) and why is not NOT_JSON
        for number in ids_near_ends(data):
            self._fail_request(number, LinkError(LinkFailure.PROTOCOL, f"the answer is {why}"))
        return False

    def _handle_message(self, message: Any) -> bool:
        """Handle one decoded message. Return False if it is not a JSON-RPC message."""
        if isinstance(message, list):  # a batch, which 2025-03-26 allows
            if len(message) > MOST_IN_BATCH:
                self._refuse_batch(message)
                return False
            understood = [not isinstance(part, list) and self._handle_message(part) for part in message]
            return bool(understood) and all(understood)
        if not isinstance(message, dict):
            return False
        if "method" in message:
            self._inbound.receive(message, self._origin_of(message))
            return True
        if "id" not in message:
            return False
        if "result" in message or "error" in message or number_of(message["id"]) in self._waiting:
            self._handle_answer(message)
            return True
        return False

    def _refuse_batch(self, batch: list[Any]) -> None:
        """Fail the requests that an oversized batch answers."""
        error = LinkError(LinkFailure.PROTOCOL, f"the answer came in a batch of more than {MOST_IN_BATCH} messages")
        for part in batch:
            if isinstance(part, dict) and "method" not in part and "id" in part:
                self._fail_request(number_of(part["id"]), error)

    def _handle_answer(self, message: JsonObject) -> None:
        waiting = self._waiting.get(number_of(message["id"]))
        if waiting is None or waiting.answer.done():
            return  # the caller left before the answer arrived
        waiting.answer.set_result(message)

    def _origin_of(self, message: JsonObject) -> object | None:
        """Return the origin of the request that a notification names.

        A progress notification names it by its token, a subscription by its id. Other notifications name none.
        """
        params = message.get("params")
        if not isinstance(params, dict):
            return None
        if message["method"] == "notifications/progress":
            token = params.get("progressToken")
        elif self._envelopes is not None and isinstance(meta := params.get("_meta"), dict):
            token = number_of(meta.get(SUBSCRIPTION_ID_META_KEY))
        else:
            return None
        waiting = self._waiting.get(token) if isinstance(token, int) else None
        return waiting.origin if waiting else None

    # Failures.

    def _fail_request(self, key: int | str | None, error: LinkError) -> None:
        """Fail request `key`, whose answer arrived but could not be decoded.

        Without a key, fail all requests, because any of them may be the answered one.
        """
        numbers = list(self._waiting) if key is None else [number_of(key)]
        for number in numbers:
            waiting = self._waiting.get(number)
            if waiting is not None and not waiting.answer.done():
                waiting.answer.set_exception(LinkError(error.failure, str(error)))

    def _fail_requests(self, error: LinkError) -> None:
        self._ended = error
        for waiting in list(self._waiting.values()):
            # A request that could not even be sent never reads this exception.
            reject(waiting.answer, LinkError(error.failure, str(error)))

"""A link to one backend over Streamable HTTP, in either era.

Each POST is one exchange: messages on its stream belong to the request that opened it. A question from the backend can
therefore be assigned to its call, and a failed POST fails only one call.
"""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any

from emceepee.backends.http.http_wire import (
    BEST_EFFORT_SECONDS,
    HttpWire,
    best_effort,
    broken,
    misdirected,
    session_lost,
)
from emceepee.backends.http.resumption import Resumption
from emceepee.backends.http.session_loss import BAD_REQUEST, NOT_FOUND, says_session_lost
from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.origin import place_of
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.link import LinkError, LinkFailure, LinkLifetime, Listener, RpcError, ServerFacts
from emceepee.backends.links.client_messages import (
    NEVER_CANCELLED,
    cancel_message,
    names_none,
    names_request,
    outcome,
    request_message,
)
from emceepee.backends.links.inbound_messages import InboundMessages
from emceepee.backends.negotiation import Envelopes, NegotiationTerms, envelope, has_ended, negotiate
from emceepee.backends.tasks.task_messages import TASK_METHODS
from emceepee.clock import Clock
from emceepee.ids import request_numbers
from emceepee.lifecycle import TaskOwner
from emceepee.state.connection.connection_state import CLOSED, LinkEnd, LinkEndKind
from emceepee.wire.codec import Unreadable, decode, encode
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    METHOD_HEADER,
    METHOD_NOT_FOUND,
    MODERN_PROTOCOL_VERSIONS,
    NAME_HEADER,
    NAMED_BY,
    VERSION_HEADER,
    header_value,
)

_NAMES = {**NAMED_BY, **dict.fromkeys(TASK_METHODS, "taskId")}


class HttpLink(LinkLifetime):
    """Open the link with `start`. The opener must close it."""

    def __init__(self, http: HttpClient, listener: Listener, *, clock: Clock, largest: int, most_requests: int) -> None:
        """`largest` is the maximum size in bytes of an answer that is read into memory as a whole.

        At most `most_requests` requests of the backend are served at once.
        """
        super().__init__()
        self._tasks = TaskOwner("http-link")
        self._wire = HttpWire(http, clock=clock, largest=largest)
        self._inbound = InboundMessages(listener, self._tasks, self._reply, most=most_requests)
        self._envelopes: Envelopes | None = None  # the 2026-07-28 era's `_meta`; None in the handshake era
        self._numbers = request_numbers()
        self._in_flight: dict[asyncio.Task[Any], bool] = {}  # requests; True: cancelled by the close
        self._terms = NegotiationTerms()
        self._is_probing = False  # whether `_probe` is running
        self._is_forgotten = False  # the backend has lost our session, or was asked to end it
        self._leaves_session = False
        self.facts = ServerFacts()

    async def start(self, terms: NegotiationTerms, resumption: object | None = None) -> None:
        self._terms = terms
        if not (isinstance(resumption, Resumption) and await self._resume_session(resumption)):
            self.facts = await negotiate(self._discover, self._initialize, terms)
            self._wire.set_header(VERSION_HEADER, self.facts.protocol_version)
            if self.facts.is_modern:
                self._envelopes = Envelopes(self.facts.protocol_version, terms.capabilities)
            else:
                await self.notify("notifications/initialized")
        if not self.facts.is_modern:
            self._tasks.spawn(self._read_pushes(), name="pushes")

    async def close(self) -> None:
        """Close the link. Requests in flight fail.

        Send DELETE to a handshake-era backend, unless the link was lost. A link closed for being idle, or after
        `leave_session`, leaves its session open for the next link.
        """
        self.end(CLOSED)
        for task in list(self._in_flight):
            self._in_flight[task] = True
            task.cancel()
        await self._tasks.close(within=BEST_EFFORT_SECONDS)
        is_on_purpose = self.closed.result().kind in (LinkEndKind.REPLACED, LinkEndKind.CLOSED)
        if is_on_purpose and not self._leaves_session:
            self._is_forgotten = True
            await self._wire.end_session()

    @property
    def is_busy(self) -> bool:
        return False  # each request has its own POST

    @property
    def identity(self) -> str | None:
        return self._wire.session_id or encode(self.facts.server_info).decode()

    @property
    def resumption(self) -> Resumption | None:
        if self._wire.session_id is None or self._is_forgotten:
            return None
        return Resumption(self._wire.session_id, self.facts)

    def leave_session(self) -> None:
        self._leaves_session = True

    async def _resume_session(self, resumption: Resumption) -> bool:
        """Return whether the backend still has our earlier session."""
        self._wire.keep_session(resumption.session_id)
        self._wire.set_header(VERSION_HEADER, resumption.facts.protocol_version)
        self.facts = resumption.facts
        try:
            await self._ping()
        except BaseException as error:
            self._wire.forget_session()  # even if cancelled: the next link may still resume it
            self._is_forgotten = False
            self._wire.set_header(VERSION_HEADER, None)
            if isinstance(error, LinkError) and error.failure is not LinkFailure.UNREACHABLE:
                return False
            raise
        return True

    async def _ping(self, refusal: str | None = None) -> None:
        """Check that the backend still has our session.

        A ping has no side effects, so any refusal of it can be interpreted safely. `refusal` is the message with which
        the backend refused another request. If the ping is refused with the same message, our session is lost. Without
        `refusal`, any error status means that it is lost.

        Raises:
            LinkError
        """
        try:
            await self._exchange("ping", None)
        except (RpcError, LinkError) as error:
            in_same_words = error.status in (BAD_REQUEST, NOT_FOUND) and refusal in (None, str(error))
            is_unknown_method = isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND
            if (in_same_words or says_session_lost(str(error))) and not is_unknown_method:
                raise session_lost(error.status) from error
            if isinstance(error, LinkError):
                raise

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        if self._envelopes is None:
            return await self._exchange(method, params, headers, origin=origin)
        own = _routing_headers(method, params or {})
        if headers:
            own.update(headers)
        return await self._exchange(method, params, own, self._envelopes.of(method), origin)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._wire.send_message(notification_message(method, params))

    async def send_answer(self, message: JsonObject) -> None:
        await self._wire.send_message(message)

    def set_log_level(self, level: str) -> None:
        if self._envelopes is not None:
            self._envelopes.set_log_level(level)

    def process(self) -> JsonObject | None:
        return None

    @property
    def mirrors_arguments(self) -> bool:
        return self._envelopes is not None

    def _target(self) -> str:
        return f"{place_of(self._wire.url)} requests={len(self._in_flight)}"

    # Connecting.

    async def _discover(self, method: str, params: JsonObject) -> JsonObject:
        version = MODERN_PROTOCOL_VERSIONS[-1]
        headers = {VERSION_HEADER: version} | _routing_headers(method, params)
        return await self._exchange_handshake(method, params, headers, envelope(version, self._terms.capabilities))

    async def _initialize(self, method: str, params: JsonObject) -> JsonObject:
        return await self._exchange_handshake(method, params)

    async def _exchange_handshake(
        self, method: str, params: JsonObject, headers: dict[str, str] | None = None, meta: JsonObject | None = None
    ) -> JsonObject:
        """Exchange a handshake message, with one retry.

        A retry has no side effects here. It helps if the server closes a keep-alive connection just as it is reused.
        """
        try:
            return await self._exchange(method, params, headers, meta)
        except LinkError as error:
            if not has_ended(error) or error.failure is LinkFailure.CLOSED:
                raise
        return await self._exchange(method, params, headers, meta)

    # One request and its answer.

    async def _exchange(
        self,
        method: str,
        params: JsonObject | None,
        headers: Mapping[str, str] | None = None,
        meta: JsonObject | None = None,
        origin: object | None = None,
    ) -> JsonObject:
        number = next(self._numbers)
        message = request_message(number, method, params, meta=meta, wants_progress=origin is not None)
        task = asyncio.current_task()
        if task is not None:
            self._in_flight[task] = False
        try:
            response = await self._wire.post(encode(message), headers, number=number)
            if method == "initialize":
                self._wire.adopt_session(response)
            return outcome(await self._read_answer(response, number, origin, resumable=meta is None))
        except asyncio.CancelledError:
            if task is not None and self._in_flight.get(task):
                task.uncancel()
                raise LinkError(LinkFailure.CLOSED, self.closed.result().reason) from None
            if meta is None and method not in NEVER_CANCELLED:  # 2026-07-28: closing the response cancels
                self._notify_soon(self._wire.send_message(cancel_message(number)))
            raise
        except HttpFailure as error:
            self._probe_soon()
            raise broken(self._wire.url, error) from error
        except (RpcError, LinkError) as error:
            self._note_failure(error, method)
            raise
        finally:
            if task is not None:
                self._in_flight.pop(task, None)

    async def _read_answer(self, response: HttpResponse, number: int, origin: object | None, *, resumable: bool) -> Any:
        if response.content_type != "text/event-stream":
            body = await self._wire.body(response)
            try:
                return self._check_answer(decode(body), number)
            except Unreadable as error:
                raise LinkError(LinkFailure.PROTOCOL, f"the answer is {error}") from error
            except ValueError as error:
                raise LinkError(
                    LinkFailure.PROTOCOL, f"HTTP {response.status} with a body that is not JSON: {error}"
                ) from error
        questions: set[asyncio.Task[None]] = set()
        try:
            async with aclosing(self._wire.stream(response, resumable=resumable)) as stream:
                async for message in stream:
                    if "method" in message:
                        if question := self._inbound.receive(message, origin):
                            questions.add(question)
                            question.add_done_callback(questions.discard)
                        if self._inbound.is_crowded:
                            await self._inbound.wait_for_room()
                    elif names_request(message.get("id"), number):
                        return message
        finally:
            for question in list(questions):  # the end of the stream ends the questions that were asked on it
                question.cancel()
        raise LinkError(LinkFailure.UNREACHABLE, "the server ended the stream without an answer")

    def _check_answer(self, message: Any, number: int) -> Any:
        """Return the message if it answers our request. Raises: LinkError."""
        if not isinstance(message, dict) or names_request(key := message.get("id"), number):
            return message
        error = message.get("error")
        if not isinstance(error, dict) or not names_none(key):
            raise misdirected(key)
        if self._wire.session_id and says_session_lost(str(error.get("message"))):
            raise session_lost()
        return message

    def _note_failure(self, error: RpcError | LinkError, method: str) -> None:
        """Check whether a failed request means that the session or the backend is lost."""
        if isinstance(error, LinkError) and error.failure is LinkFailure.SESSION_LOST:
            self._is_forgotten = True
        elif error.status in (BAD_REQUEST, NOT_FOUND) and self._wire.session_id and method != "ping":
            self._probe_soon(refusal=str(error))
        elif isinstance(error, LinkError) and error.failure is LinkFailure.UNREACHABLE and error.may_have_run:
            self._probe_soon()

    # Messages that the backend sends unasked.

    async def _read_pushes(self) -> None:
        try:
            async with aclosing(self._wire.read_pushes(self._ping)) as stream:
                async for message in stream:
                    if "method" in message:
                        self._inbound.receive(message, None)
                        if self._inbound.is_crowded:
                            await self._inbound.wait_for_room()
        except LinkError as error:
            self._is_forgotten |= error.failure is LinkFailure.SESSION_LOST
            self.end(LinkEnd(LinkEndKind.LOST, str(error)))

    def _probe_soon(self, refusal: str | None = None) -> None:
        """Check in the background whether the backend and our session still exist.

        A request failed or was refused. Without this check, the next request would have to detect the loss, which is
        impossible if the server reports it with an unknown message.
        """
        if not self._is_probing and not self.closed.done():
            with suppress(RuntimeError):  # the link is closing
                self._tasks.spawn(self._probe(refusal), name="probe")
                self._is_probing = True

    async def _probe(self, refusal: str | None) -> None:
        try:
            if refusal is None:
                await self._wire.check_reachable()
            else:
                async with asyncio.timeout(BEST_EFFORT_SECONDS):
                    await self._ping(refusal)
        except TimeoutError:
            pass  # a missing answer proves nothing
        except LinkError as error:
            self._is_forgotten |= error.failure is LinkFailure.SESSION_LOST
            if not error.may_have_run:
                self.end(LinkEnd(LinkEndKind.LOST, str(error)))
        finally:
            self._is_probing = False

    async def _reply(self, message: JsonObject) -> None:
        await best_effort(self._wire.send_message(message), what="answering the backend")

    def _notify_soon(self, work: Any) -> None:
        try:
            self._tasks.spawn(best_effort(work, what="a notification to the backend"), name="notify")
        except RuntimeError:
            work.close()  # the link is closing, and DELETE is enough


def _routing_headers(method: str, params: JsonObject) -> dict[str, str]:
    """Return the routing headers: the fields that the 2026-07-28 era repeats for gateways."""
    name = params.get(_NAMES.get(method, ""))
    if isinstance(name, str):
        return {METHOD_HEADER: method, NAME_HEADER: header_value(name)}
    return {METHOD_HEADER: method}

"""The HTTP half of a link: one endpoint, its headers and session id, POSTs, and resumable streams."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, closing
from functools import partial
from typing import Any

from emceepee.backends.http.event_stream import Cursor, EventParser, turns
from emceepee.backends.http.redirects import MOST_REDIRECTS, REDIRECTS, follow, redirect_words, send
from emceepee.backends.http.resumed_stream import PUSH_TRIES, ResumedStream
from emceepee.backends.http.session_loss import status_says_session_lost
from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure, NotConnected, ResponseTooLarge
from emceepee.backends.http1.origin import place_of
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.links.client_messages import names_none, names_request, unreadable
from emceepee.backends.links.reopen_backoff import ANSWERS, PUSHES, ReopenBackoff
from emceepee.clock import Clock, give_up_after
from emceepee.futures import let_others_run
from emceepee.wire.codec import decode, encode
from emceepee.wire.json_types import JsonObject

logger = logging.getLogger(__name__)

ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
BEST_EFFORT_SECONDS = 5.0  # for work without a waiting caller, such as a cancellation notice
DELETE_SECONDS = 1.0  # for DELETE: closing the link waits for it, and the server may be unresponsive
REOPEN_ATTEMPTS = 5  # to resume one interrupted stream
PROBE_PAUSE = 0.1  # after a failure, before checking whether the backend is still reachable
UNAUTHORIZED = 401
WHERE_A_TOKEN_GOES = (
    'Put a token for it into headers, as {"Authorization": "Bearer …"}: best in the configuration file, where '
    "${NAME} takes it from the environment, so that it does not pass through a model"
)


class HttpWire:
    """The HTTP layer of one address, below JSON-RPC."""

    def __init__(self, http: HttpClient, *, clock: Clock, largest: int) -> None:
        self._http, self._clock, self._largest = http, clock, largest
        self.session_id: str | None = None
        for name, value in ACCEPT.items():
            self.set_header(name, value)

    @property
    def url(self) -> str:
        return self._http.url

    def set_header(self, name: str, value: str | None) -> None:
        """Set a header for all later requests; None removes it. Raises: LinkError."""
        try:
            self._http.set_header(name, value)
        except ValueError as error:
            raise unsendable(error) from error

    async def post(
        self, body: bytes, headers: Mapping[str, str] | None = None, *, number: int | None = None
    ) -> HttpResponse:
        """Send one message and return the successful response, with its body still unread.

        `headers` apply to this message only. `number` is its id, if it is a request.

        Raises:
            RpcError: the status is an error, and the body contains a JSON-RPC error.
            LinkError: any other failure.
        """
        for hops in range(MOST_REDIRECTS + 1):
            try:
                response = await self._http.request("POST", body, headers)
            except HttpFailure as error:
                raise broken(self.url, error) from error
            except ValueError as error:
                raise unsendable(error) from error
            if response.status in (200, 202):
                return response
            moved = follow(self._http, response) if response.status in REDIRECTS["POST"] else None
            if moved is None or hops == MOST_REDIRECTS:
                break
            response.discard()
            self._http = moved
        raise await self._refusal(response, number)

    async def body(self, response: HttpResponse) -> bytes:
        """Read the whole body. Raises: HttpFailure."""
        return await response.read(self._largest)

    async def send_message(self, message: JsonObject) -> None:
        """Send a message that has no answer: a notification, or our answer to a request of the backend."""
        (await self.post(encode(message))).discard()

    async def check_reachable(self) -> None:
        """Check that the backend is still reachable after a failure. Raises: LinkError if it is not."""
        await self._clock.sleep(PROBE_PAUSE)
        try:
            await self._http.connect()
        except NotConnected as error:
            raise broken(self.url, error) from error

    def keep_session(self, session_id: str) -> None:
        """Raises: LinkError."""
        self.set_header("mcp-session-id", session_id)
        self.session_id = session_id

    def adopt_session(self, response: HttpResponse) -> None:
        """Store the id of the session that the backend began, if any. Raises: LinkError."""
        if session_id := response.headers.get("mcp-session-id"):
            try:
                self.keep_session(session_id)
            except LinkError:
                response.close()
                raise

    def forget_session(self) -> None:
        self.session_id = None
        self.set_header("mcp-session-id", None)

    async def end_session(self) -> None:
        if self.session_id:
            await best_effort(self._delete(), what="ending the backend's session", within=DELETE_SECONDS)

    async def stream(self, response: HttpResponse, *, resumable: bool) -> AsyncGenerator[JsonObject, None]:
        """Yield the messages of one request's stream. Resume an interrupted stream if the era and the backend support
        it.

        Raises:
            LinkError: the stream cannot be resumed, or an event is too large.
        """
        cursor, backoff = Cursor(), None
        stream: HttpResponse | ResumedStream = response
        while True:
            parser = EventParser(cursor, largest=self._largest)
            try:  # inlines `_messages`, to save a generator on the path of every answer
                while (chunk := await stream.readany()) != b"":
                    if chunk is None:
                        parser = EventParser(cursor, largest=self._largest)
                        continue
                    for number, part in enumerate(turns(chunk)):
                        if number:
                            await let_others_run()
                        for event in parser.feed(part):
                            if isinstance(message := _decode_event(event.data), dict):
                                yield message
            except ResponseTooLarge as error:
                stream.close()
                raise broken(self.url, error) from error
            except HttpFailure as error:
                logger.debug("a stream was cut: %s", error)  # handled like a stream that ended too early
            except GeneratorExit:
                stream.discard()  # the reader has received its answer
                raise
            except BaseException:
                stream.close()
                raise
            if not resumable or cursor.last_id is None:
                return
            backoff = backoff or ReopenBackoff(self._clock, ANSWERS)
            stream = ResumedStream(await self._reopen(cursor, backoff), partial(self._open_beside, cursor), self._clock)

    async def read_pushes(self, check_session: Callable[[], Awaitable[None]]) -> AsyncGenerator[JsonObject, None]:
        """Yield the messages of the handshake era's GET stream, and reopen it whenever it ends.

        Stop if the backend offers no such stream. `check_session` raises LinkError if the backend has lost our session.

        Raises:
            LinkError: the backend is gone, or has lost our session.
        """
        cursor, backoff, was_open = Cursor(), ReopenBackoff(self._clock, PUSHES), False
        while True:
            pause, was_cut = 0.0, was_open and cursor.last_id is not None
            try:
                with closing(await self._get(cursor)) as response:
                    if response.status != 200:
                        # A server that never offered the stream may use any of these statuses. From a server that once
                        # offered it, they are a failure.
                        if not was_open or not self._is_trouble(response):
                            logger.debug("no push stream: HTTP %s", response.status)
                            return
                        await self._explain_refusal(response, cursor, check_session)
                        raise HttpFailure(f"HTTP {response.status}")
                    was_open = True
                    backoff.mark_opened()
                    async with aclosing(self._pushes(response, cursor, was_cut=was_cut)) as messages:
                        async for message in messages:
                            yield message
                pause = cursor.retry
            except NotConnected as error:
                raise broken(self.url, error) from error
            except HttpFailure as error:
                logger.debug("push stream broke: %s", error)
            await self._clock.sleep(backoff.next_pause(pause))

    async def _pushes(
        self, response: HttpResponse, cursor: Cursor, *, was_cut: bool
    ) -> AsyncGenerator[JsonObject, None]:
        """Raises: HttpFailure."""
        stream: HttpResponse | ResumedStream = response
        if was_cut:
            stream = ResumedStream(response, partial(self._open_beside, cursor), self._clock, most=PUSH_TRIES)
        with closing(stream):
            async for message in self._messages(stream, cursor):
                yield message

    async def _messages(self, stream: HttpResponse | ResumedStream, cursor: Cursor) -> AsyncGenerator[JsonObject, None]:
        """Raises: HttpFailure."""
        parser = EventParser(cursor, largest=self._largest)
        while (chunk := await stream.readany()) != b"":
            if chunk is None:
                parser = EventParser(cursor, largest=self._largest)
                continue
            for number, part in enumerate(turns(chunk)):
                if number:
                    await let_others_run()
                for event in parser.feed(part):
                    if isinstance(message := _decode_event(event.data), dict):
                        yield message

    def _is_trouble(self, response: HttpResponse) -> bool:
        return response.status >= 500 or (response.status in (400, 404) and self.session_id is not None)

    async def _explain_refusal(
        self, response: HttpResponse, cursor: Cursor, check_session: Callable[[], Awaitable[None]]
    ) -> None:
        """Find out why a stream that was open before is now refused. Raises: HttpFailure, LinkError."""
        if response.status >= 500:
            return
        refusal = await self._refusal(response)
        if isinstance(refusal, LinkError) and refusal.failure is LinkFailure.SESSION_LOST:
            raise refusal
        cursor.last_id = None  # the server may not recognize this id
        try:
            await check_session()
        except LinkError as error:
            if error.may_have_run:
                raise HttpFailure(str(error)) from error
            raise

    async def _reopen(self, cursor: Cursor, backoff: ReopenBackoff) -> HttpResponse:
        for _ in range(REOPEN_ATTEMPTS):
            await self._clock.sleep(backoff.next_pause(cursor.retry))
            try:
                response = await self._get(cursor)
            except HttpFailure:
                continue
            if response.status == 200:
                backoff.mark_opened()
                return response
            raise _resume_error(await self._refusal(response))
        raise LinkError(LinkFailure.UNREACHABLE, "the stream was cut and could not be taken up again")

    async def _open_beside(self, cursor: Cursor) -> HttpResponse | None:
        """Return another stream from the cursor's position, or None if the server refuses."""
        try:
            async with give_up_after(self._clock, BEST_EFFORT_SECONDS):
                response = await self._get(cursor)
        except (HttpFailure, LinkError, TimeoutError) as error:
            logger.debug("no second stream: %s", error)
            return None
        if response.status == 200:
            return response
        logger.debug("no second stream: HTTP %s", response.status)
        response.discard()
        return None

    async def _get(self, cursor: Cursor) -> HttpResponse:
        """Raises: HttpFailure."""
        headers = {"accept": "text/event-stream"}
        if cursor.last_id is not None:
            headers["last-event-id"] = cursor.last_id.encode().decode("latin-1")  # restores the original bytes
        return (await send(self._http, "GET", headers=headers))[1]

    async def _delete(self) -> None:
        (await self._http.request("DELETE")).discard()

    async def _refusal(self, response: HttpResponse, number: int | None = None) -> RpcError | LinkError:
        status, is_whole = response.status, response.content_type != "text/event-stream"
        try:
            body = await self.body(response)
        except HttpFailure as error:
            if self._http.forwarding_proxy is None:
                return broken(self.url, error)
            body, is_whole = b"", False  # a proxy may refuse and close the connection before it has read the request
        message = _rpc_message(body)
        answered = _rpc_error(message)
        words = str(answered.get("message", "")) if answered else _excerpt(body)
        if self.session_id and is_whole and status_says_session_lost(status, words, message):
            return session_lost(status)
        if status == UNAUTHORIZED:
            return refused(status, (words + proxy_note(self._http)).strip())
        if message is not None and answered is not None:
            key = message.get("id")
            if number is not None and not names_request(key, number) and not names_none(key):
                return misdirected(key)
            return RpcError(answered, status=status)
        reason = redirect_words(self.url, response) if 300 <= status < 400 else words
        return refused(status, (reason + proxy_note(self._http)).strip())


def broken(url: str, error: HttpFailure) -> LinkError:
    if isinstance(error, ResponseTooLarge):
        return LinkError(LinkFailure.PROTOCOL, str(error))
    words = f"{place_of(url)} cannot be reached: {error}"
    return LinkError(LinkFailure.UNREACHABLE, words, may_have_run=not isinstance(error, NotConnected))


def refused(status: int, reason: str) -> LinkError:
    words = f"HTTP {status} {reason}".rstrip()
    if status == UNAUTHORIZED:
        words = f"it wants a login ({words}). {WHERE_A_TOKEN_GOES}"
    return LinkError(LinkFailure.REFUSED, words, status=status)


def proxy_note(http: HttpClient) -> str:
    """Return a note about a forwarding proxy, because its refusals look like the server's."""
    proxy = http.forwarding_proxy
    return "" if proxy is None else f" (through the proxy {proxy}, whose answer this may be)"


def unsendable(error: ValueError) -> LinkError:
    return LinkError(LinkFailure.REFUSED, f"the request cannot be sent: {error}")


def session_lost(status: int = 200) -> LinkError:
    """Return the error for a lost session.

    The backend rejected the request before it processed it, so the request can be sent again.
    """
    words = "the server no longer knows our session"
    return LinkError(LinkFailure.SESSION_LOST, words, status=status, may_have_run=False)


def _resume_error(refusal: RpcError | LinkError) -> LinkError:
    """Return the error for a request whose stream cannot be resumed. The request may have run despite the refusal."""
    is_lost = isinstance(refusal, LinkError) and refusal.failure is LinkFailure.SESSION_LOST
    failure = LinkFailure.SESSION_LOST if is_lost else LinkFailure.UNREACHABLE
    return LinkError(failure, f"the stream was cut and could not be taken up again: {refusal}")


def misdirected(key: object) -> LinkError:
    return LinkError(
        LinkFailure.PROTOCOL, f"the answer names another request (id {str(key)[:40]}), and was not accepted"
    )


async def best_effort(work: Awaitable[Any], *, what: str, within: float = BEST_EFFORT_SECONDS) -> None:
    """Run optional work with a timeout, and log its failure."""
    try:
        async with asyncio.timeout(within):
            await work
    except (HttpFailure, TimeoutError, LinkError, RpcError) as error:
        logger.debug("%s failed: %s", what, error)


def _decode_event(data: bytes) -> Any:
    try:
        return decode(data)
    except ValueError as error:
        logger.debug("an event cannot be read: %s", error)
        return unreadable(data, error)


def _rpc_message(body: bytes) -> JsonObject | None:
    """Return the JSON-RPC message in the body of an error response, or None if the body is anything else."""
    message = _decode_event(body) if body.lstrip().startswith(b"{") else None
    if not isinstance(message, dict):
        return None
    return message if "jsonrpc" in message or _rpc_error(message) is not None else None


def _rpc_error(message: JsonObject | None) -> JsonObject | None:
    error = message.get("error") if message is not None else None
    return error if isinstance(error, dict) and "code" in error else None


def _excerpt(body: bytes) -> str:
    return " ".join(body[:200].decode("utf-8", "replace").split())

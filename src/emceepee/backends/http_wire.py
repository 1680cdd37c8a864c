"""The HTTP half of a link: one endpoint, its headers and session id, POSTs, and streams that survive being cut."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp

from emceepee.backends.event_stream import Cursor, events
from emceepee.backends.link import Failure, LinkError, RpcError
from emceepee.clock import Clock
from emceepee.codec import decode, encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner

logger = logging.getLogger(__name__)

ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
COURTESY_SECONDS = 5.0  # for what nobody waits for: cancel notices, the tail of a finished stream
GOODBYE_SECONDS = 1.0  # for DELETE: whoever closes the link waits for it, and it may be closed because nothing answers
REOPEN_ATTEMPTS = 5  # to take up one cut stream
PUSH_PAUSE = 0.1  # before a push stream that broke is opened again: if the backend is gone, this shows it
LONGEST_PAUSE = 30.0  # between two attempts to reopen the push stream
REDIRECTS = 3
BROKEN = (aiohttp.ClientError, OSError, asyncio.IncompleteReadError)
NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)  # so nothing was sent


class HttpWire:
    """Everything about one address that is HTTP and not yet JSON-RPC."""

    def __init__(
        self, http: aiohttp.ClientSession, url: str, headers: dict[str, str], *, clock: Clock, tasks: TaskOwner
    ) -> None:
        self._http, self._url, self._clock, self._tasks = http, url, clock, tasks
        self.headers: dict[str, str] = {name.lower(): value for name, value in headers.items()} | ACCEPT
        self.session_id: str | None = None

    async def post(self, body: bytes, headers: dict[str, str]) -> aiohttp.ClientResponse:
        """Send one request; the response is a success, its body still to be read.

        Raises:
            RpcError: the status is an error, and the body holds a JSON-RPC one.
            LinkError: anything else.
        """
        for _ in range(REDIRECTS):
            try:
                response = await self._http.post(self._url, data=body, headers=headers, allow_redirects=False)
            except NOT_CONNECTED as error:
                raise unreachable(self._url, error, may_have_run=False) from error
            except BROKEN as error:
                raise unreachable(self._url, error) from error
            except ValueError as error:  # aiohttp: an address or header it cannot send
                raise LinkError(Failure.REFUSED, f"the request cannot be sent: {error}") from error
            if response.status in (200, 202):
                return response
            if response.status not in (307, 308) or not self._moved(response.headers.get("location", "")):
                break
            await _drained(response)
        raise await self._refusal(response)

    async def tell(self, message: JsonObject) -> None:
        """Send what has no answer: a notification, or our answer to the backend's request."""
        response = await self.post(encode(message), self.headers)
        await _drained(response)

    def keep_session(self, session_id: str | None) -> None:
        if session_id:
            self.session_id = self.headers["mcp-session-id"] = session_id

    def forget_session(self) -> None:
        self.session_id = None
        self.headers.pop("mcp-session-id", None)

    async def end_session(self) -> None:
        if self.session_id:
            await courtesy(self._delete(), what="ending the backend's session", within=GOODBYE_SECONDS)

    async def stream(self, response: aiohttp.ClientResponse, *, resumable: bool) -> AsyncGenerator[JsonObject, None]:
        """The messages of one request's stream. A cut one is taken up where it broke, if era and backend can."""
        cursor = Cursor()
        while True:
            try:
                async for event in events(response, cursor):
                    if isinstance(message := _decoded(event.data), dict):
                        yield message
            except BROKEN:
                response.close()  # cut: the same as ended too early
            except GeneratorExit:
                # The reader has its answer; the tail is read aside, so that the connection can be used again.
                self._tasks.spawn(courtesy(_drained(response), what="draining a stream"), name="drain")
                raise
            except BaseException:
                response.close()
                raise
            if not resumable or cursor.last_id is None:
                return
            response = await self._reopened(cursor)

    async def pushed(self) -> AsyncGenerator[JsonObject, None]:
        """The messages of the handshake era's GET stream, reopened for ever; ends if the backend offers none.

        Raises:
            LinkError: the backend is gone, or has forgotten our session.
        """
        cursor, pause, was_open = Cursor(), 0.0, False
        while True:
            try:
                async with self._get(cursor) as response:
                    # A server that never had the stream may say so with any of these; once it had, they mean a loss.
                    if response.status in (400, 404) and self.session_id and was_open:
                        raise await self._refusal(response)
                    if response.status >= 500 and was_open:
                        raise aiohttp.ClientPayloadError(f"HTTP {response.status}")
                    if response.status != 200:
                        logger.debug("no push stream: HTTP %s", response.status)
                        return
                    was_open = True
                    async for event in events(response, cursor):
                        if isinstance(message := _decoded(event.data), dict):
                            yield message
                pause = cursor.retry
            except NOT_CONNECTED as error:
                raise unreachable(self._url, error, may_have_run=False) from error
            except BROKEN as error:
                logger.debug("push stream broke: %s", error)
                pause = min(pause * 2 + PUSH_PAUSE if pause else PUSH_PAUSE, LONGEST_PAUSE)
            await self._clock.sleep(pause)

    async def _reopened(self, cursor: Cursor) -> aiohttp.ClientResponse:
        for _ in range(REOPEN_ATTEMPTS):
            await self._clock.sleep(cursor.retry)
            try:
                response = await self._http.get(self._url, headers=self._resuming(cursor), allow_redirects=False)
            except BROKEN:
                continue
            if response.status == 200:
                return response
            raise await self._refusal(response)
        raise LinkError(Failure.UNREACHABLE, "the stream was cut and could not be taken up again")

    @asynccontextmanager
    async def _get(self, cursor: Cursor) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self._http.get(self._url, headers=self._resuming(cursor), allow_redirects=False) as response:
            yield response

    async def _delete(self) -> None:
        await _drained(await self._http.delete(self._url, headers=self.headers, allow_redirects=False))

    def _resuming(self, cursor: Cursor) -> dict[str, str]:
        resume = {} if cursor.last_id is None else {"last-event-id": cursor.last_id}
        return self.headers | {"accept": "text/event-stream"} | resume

    def _moved(self, location: str) -> bool:
        """Follow a redirect within the same origin only: our headers may hold a credential."""
        target = urljoin(self._url, location)
        if not location or urlsplit(target)[:2] != urlsplit(self._url)[:2]:
            return False
        self._url = target
        return True

    async def _refusal(self, response: aiohttp.ClientResponse) -> RpcError | LinkError:
        status = response.status
        try:
            body = await response.read()
        except BROKEN as error:
            return unreachable(self._url, error)
        answered = _rpc_error(body)
        if self.session_id and (status == 404 or (status == 400 and _speaks_of_session(answered, body))):
            return session_lost(status)
        if answered is not None:
            return RpcError(answered)
        said = f"redirects to {response.headers.get('location')}" if 300 <= status < 400 else _excerpt(body)
        return LinkError(Failure.REFUSED, f"HTTP {status} {said}".rstrip(), status=status)


def unreachable(url: str, error: BaseException, *, may_have_run: bool = True) -> LinkError:
    host = urlsplit(url).netloc.rpartition("@")[2]
    words = f"{host} cannot be reached: {str(error) or type(error).__name__}"
    return LinkError(Failure.UNREACHABLE, words, may_have_run=may_have_run)


def session_lost(status: int = 200) -> LinkError:
    """The backend answered before it looked at the request, so the request may be sent again."""
    words = "the server no longer knows our session"
    return LinkError(Failure.SESSION_LOST, words, status=status, may_have_run=False)


async def courtesy(work: Awaitable[Any], *, what: str, within: float = COURTESY_SECONDS) -> None:
    """Do what nobody waits for: bounded, and its failure is nobody's."""
    try:
        async with asyncio.timeout(within):
            await work
    except (*BROKEN, TimeoutError, LinkError, RpcError) as error:
        logger.debug("%s failed: %s", what, error)


async def _drained(response: aiohttp.ClientResponse) -> None:
    async with response:
        await response.read()


def _decoded(data: bytes) -> Any:
    try:
        return decode(data)
    except ValueError:
        logger.debug("an event that is not JSON was passed over")
        return None


def _rpc_error(body: bytes) -> JsonObject | None:
    message = _decoded(body) if body.lstrip().startswith(b"{") else None
    error = message.get("error") if isinstance(message, dict) else None
    return error if isinstance(error, dict) and "code" in error else None


def _speaks_of_session(error: JsonObject | None, body: bytes) -> bool:
    said = str(error.get("message")) if error else body[:500].decode("utf-8", "replace")
    return "session" in said.lower()


def says_session_lost(error: JsonObject) -> bool:
    """Some backends say it in a JSON-RPC error, with any status."""
    words = str(error.get("message")).lower()
    lost = any(word in words for word in ("not found", "terminated", "expired", "unknown", "no valid", "invalid"))
    return error.get("code") in (-32600, -32000, -32001) and "session" in words and lost


def _excerpt(body: bytes) -> str:
    return " ".join(body[:200].decode("utf-8", "replace").split())

"""A link over the older HTTP+SSE transport: one GET stream carries every answer, and POSTs carry what we say."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from urllib.parse import urljoin, urlsplit

import aiohttp
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from emceepee.backends.duplex import Duplex
from emceepee.backends.event_stream import Cursor, events
from emceepee.backends.http_wire import BROKEN, COURTESY_SECONDS, NOT_CONNECTED, unreachable
from emceepee.backends.link import Failure, LinkError, Listener, ServerFacts
from emceepee.backends.negotiation import LOG_LEVEL_KEY, Terms, envelope, negotiate
from emceepee.backends.spec import HttpTarget
from emceepee.codec import decode, encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner


class SseLink:
    """Open with `start`; whoever opened it closes it."""

    mirrors_arguments = False

    def __init__(self, http: aiohttp.ClientSession, target: HttpTarget, listener: Listener) -> None:
        self._http, self._target, self._listener = http, target, listener
        self._tasks = TaskOwner("sse-link")
        self._duplex = Duplex(self._send, listener, self._tasks)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._terms = Terms()
        self.facts = ServerFacts()
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, terms: Terms) -> None:
        self._tasks.spawn(self._listen(), name="stream")
        await self._endpoint
        self._terms = terms
        self.facts = await negotiate(self._discover, self._initialize, terms)
        if self.facts.is_modern:
            self._duplex.envelope = envelope(self.facts.protocol_version, terms.capabilities)
        else:
            await self.notify("notifications/initialized")

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,  # a matter of the newer transport
    ) -> JsonObject:
        return await self._duplex.request(method, params, origin=origin)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._duplex.notify(method, params)

    def set_log_level(self, level: str) -> None:
        if self._duplex.envelope is not None:
            self._duplex.envelope[LOG_LEVEL_KEY] = level

    @property
    def is_busy(self) -> bool:
        return self._duplex.in_flight > 0

    @property
    def identity(self) -> None:
        return None  # a new line is a new conversation

    @property
    def resumption(self) -> None:
        return None

    async def close(self) -> None:
        self._end("the connection was closed")
        await self._tasks.close(within=COURTESY_SECONDS)
        self._http.detach()

    def process(self) -> JsonObject | None:
        return None

    async def _discover(self, method: str, params: JsonObject) -> JsonObject:
        return await self._duplex.request(
            method, params, origin=None, meta=envelope(MODERN_PROTOCOL_VERSIONS[-1], self._terms.capabilities)
        )

    async def _initialize(self, method: str, params: JsonObject) -> JsonObject:
        return await self._duplex.request(method, params, origin=None)

    async def _listen(self) -> None:
        headers = self._target.headers | {"accept": "text/event-stream"}
        try:
            async with self._http.get(self._target.url, headers=headers, allow_redirects=False) as response:
                if response.status != 200 or response.content_type != "text/event-stream":
                    what = f"HTTP {response.status} {response.content_type} is no event stream"
                    self._end(what, LinkError(Failure.REFUSED, what, status=response.status))
                    return
                async with aclosing(events(response, Cursor())) as stream:
                    async for event in stream:
                        self._event(event.name, event.data)
            self._end("the server ended the event stream")
        except BROKEN as error:
            self._end(f"the event stream broke: {error}", unreachable(self._target.url, error))
        except LinkError as error:
            self._end(str(error), error)

    def _event(self, name: str, data: bytes) -> None:
        if name == "endpoint" and not self._endpoint.done():
            endpoint = urljoin(self._target.url, data.decode("utf-8", "replace"))
            if urlsplit(endpoint)[:2] != urlsplit(self._target.url)[:2]:  # our headers may hold a credential
                raise LinkError(Failure.PROTOCOL, "the server names an endpoint of another origin")
            self._endpoint.set_result(endpoint)
            return
        try:
            understood = self._duplex.receive(decode(data))
        except ValueError:
            understood = False
        if not understood:
            self._listener.said(data[:2000].decode("utf-8", "replace"), "stdout")

    async def _send(self, message: JsonObject) -> None:
        headers = self._target.headers | {"content-type": "application/json"}
        try:
            async with self._http.post(
                await self._endpoint, data=encode(message), headers=headers, allow_redirects=False
            ) as response:
                body = await response.read()
        except NOT_CONNECTED as error:
            raise unreachable(self._target.url, error, may_have_run=False) from error
        except BROKEN as error:
            raise unreachable(self._target.url, error) from error
        if response.status >= 300:
            # On this transport a refused message gets no answer on the stream: its caller would wait for ever.
            said = " ".join(body[:200].decode("utf-8", "replace").split())
            raise LinkError(Failure.REFUSED, f"HTTP {response.status} {said}".rstrip(), status=response.status)

    def _end(self, reason: str, error: LinkError | None = None) -> None:
        failure = error or LinkError(Failure.CLOSED, reason)
        if not self._endpoint.done():
            self._endpoint.set_exception(failure)
            self._endpoint.exception()  # nobody may be waiting for it
        if not self.closed.done():
            self.closed.set_result(reason)
        self._duplex.end(failure)

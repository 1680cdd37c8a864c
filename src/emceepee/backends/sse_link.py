"""A link over the older HTTP+SSE transport: one GET stream carries every answer, and POSTs carry what we say."""

import asyncio
from contextlib import aclosing
from urllib.parse import urljoin, urlsplit

import aiohttp

from emceepee.backends.duplex_link import DuplexLink
from emceepee.backends.event_stream import Cursor, events
from emceepee.backends.http_wire import BROKEN, COURTESY_SECONDS, NOT_CONNECTED, unreachable
from emceepee.backends.link import Failure, LinkError, Listener
from emceepee.backends.negotiation import Terms
from emceepee.backends.spec import HttpTarget
from emceepee.codec import encode
from emceepee.json_types import JsonObject


class SseLink(DuplexLink):
    """Open with `start`; whoever opened it closes it."""

    def __init__(self, http: aiohttp.ClientSession, target: HttpTarget, listener: Listener) -> None:
        super().__init__("sse-link", listener)
        self._http, self._target = http, target
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def start(self, terms: Terms) -> None:
        self._tasks.spawn(self._listen(), name="stream")
        await self._endpoint
        await self._greet(terms)

    async def close(self) -> None:
        self._end("the connection was closed")
        await self._tasks.close(within=COURTESY_SECONDS)
        self._http.detach()

    def process(self) -> JsonObject | None:
        return None

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
        else:
            self._hear(data)

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

"""A link over the older HTTP+SSE transport: one GET stream carries all answers, and POSTs carry our messages."""

import asyncio
from contextlib import closing

from emceepee.backends.http.event_stream import Cursor, EventParser, turns
from emceepee.backends.http.http_wire import BEST_EFFORT_SECONDS, best_effort, broken, proxy_note, refused
from emceepee.backends.http.redirects import redirect_words, send
from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.origin import place_of
from emceepee.backends.link import LinkError, LinkFailure, Listener
from emceepee.backends.links.duplex_link import DuplexLink
from emceepee.backends.negotiation import NegotiationTerms
from emceepee.futures import let_others_run
from emceepee.state.connection.connection_state import CLOSED, LinkEnd, LinkEndKind
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject


class SseLink(DuplexLink):
    """Open the link with `start`. The opener must close it."""

    def __init__(self, http: HttpClient, listener: Listener, *, largest: int, most_requests: int) -> None:
        super().__init__("sse-link", listener, most_requests=most_requests)
        self._http, self._largest = http, largest
        self._endpoint: asyncio.Future[HttpClient] = asyncio.get_running_loop().create_future()

    async def start(self, terms: NegotiationTerms) -> None:
        self._tasks.spawn(self._read_stream(), name="stream")
        await self._endpoint
        await self._negotiate(terms)

    async def close(self) -> None:
        self.end(CLOSED)
        await self._tasks.close(within=BEST_EFFORT_SECONDS)

    def process(self) -> JsonObject | None:
        return None

    def _target(self) -> str:
        return f"{place_of(self._http.url)} requests={len(self._waiting)}"

    async def _read_stream(self) -> None:
        try:
            self._http, answer = await send(self._http, "GET", headers={"accept": "text/event-stream"})
            with closing(answer) as response:
                if response.status != 200 or response.content_type != "text/event-stream":
                    is_elsewhere = 300 <= response.status < 400
                    kind = f"{response.content_type} is not an event stream"
                    reason = redirect_words(self._http.url, response, "GET") if is_elsewhere else kind
                    refusal = refused(response.status, reason + proxy_note(self._http))
                    self.end(_lost(str(refusal)), refusal)
                    return
                parser = EventParser(Cursor(), largest=self._largest)
                while chunk := await response.readany():
                    for number, part in enumerate(turns(chunk)):
                        if number:
                            await let_others_run()
                        for event in parser.feed(part):
                            self._handle_event(event.name, event.data)
                            if self._inbound.is_crowded:
                                await self._inbound.wait_for_room()
            self.end(_lost("the server ended the event stream"))
        except HttpFailure as error:
            self.end(_lost(f"the event stream broke: {error}"), broken(self._http.url, error))
        except LinkError as error:
            self.end(_lost(str(error)), error)

    def _handle_event(self, name: str, data: bytes) -> None:
        if name == "endpoint" and not self._endpoint.done():
            try:
                endpoint = self._http.at(data.decode("utf-8", "replace"))
                endpoint.set_header("content-type", "application/json")
            except ValueError as error:
                raise LinkError(LinkFailure.PROTOCOL, f"the server names an invalid endpoint: {error}") from error
            self._endpoint.set_result(endpoint)
        else:
            self._receive(data)

    async def _send(self, message: JsonObject) -> None:
        endpoint = await self._endpoint
        try:
            _, response = await send(endpoint, "POST", encode(message))
            body = await response.read(self._largest)
        except HttpFailure as error:
            raise broken(self._http.url, error) from error
        if response.status >= 300:
            # On this transport, a rejected message gets no answer on the stream. Without this error, its caller would
            # wait forever.
            reason = " ".join(body[:200].decode("utf-8", "replace").split())
            raise refused(response.status, redirect_words(endpoint.url, response) if response.status < 400 else reason)

    async def _reply(self, message: JsonObject) -> None:
        await best_effort(self._send(message), what="answering the backend")

    def _fail_requests(self, error: LinkError) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(error)
            self._endpoint.exception()  # mark as retrieved: nobody may be waiting for it
        super()._fail_requests(error)


def _lost(reason: str) -> LinkEnd:
    return LinkEnd(LinkEndKind.LOST, reason)

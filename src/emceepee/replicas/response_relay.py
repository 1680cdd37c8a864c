"""One forwarded request on its way to the holder of its session, and the response on its way back.

sent ──▶ head ──▶ a short response: read whole, then written at once
  │        └────▶ a stream, or a large one: written as it comes ──▶ end
  │ holder gone: LOST, nothing was written     │ holder gone: a stream gets a last event, another is cut off
  └─ caller gone, at any time: the connection to the holder closes, and the holder learns that it was unread
"""

import asyncio

from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.clock import Handle
from emceepee.replicas.holder_link import HolderLink, SentHop
from emceepee.replicas.hop_messages import NOT_HELD_STATUS
from emceepee.server import listen_requests as listening
from emceepee.server.http.exchange import DISCONNECT_CHECK_AFTER, HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome, LostReply
from emceepee.web.asgi import until_gone
from emceepee.web.streams import END_SECONDS
from emceepee.wire import protocol

METHOD_HEADER, LISTEN = protocol.METHOD_HEADER.encode(), listening.LISTEN.encode()
WHOLE_BYTES = 256 << 10  # of a body: up to this size, the body is buffered completely before it is written
FAILED_STATUS = 500


class ResponseRelay:
    """Awaits the response to one request, once, and forwards it to the caller."""

    __slots__ = ("_caller", "_hop", "_is_caller_gone", "_link", "_lost_reply", "_request", "_timer", "_watcher")

    def __init__(self, link: HolderLink, hop: SentHop, request: HttpRequest, lost_reply: LostReply) -> None:
        self._link, self._hop, self._request, self._lost_reply = link, hop, request, lost_reply
        self._caller = request.connection
        self._is_caller_gone = False
        self._watcher: asyncio.Task[None] | None = None
        self._timer: Handle = link.parts.pool.clock.call_later(DISCONNECT_CHECK_AFTER, self._start_watching)

    @property
    def is_standing(self) -> bool:
        request = self._request
        answers_no_call = request.scope["method"] == "GET" or request.headers.get(METHOD_HEADER) == LISTEN
        return answers_no_call and bool(self._hop.response.status)

    @property
    def is_call(self) -> bool:
        return not self.is_standing

    def break_off(self) -> None:
        self._hop.response.close()

    async def run(self) -> ForwardOutcome:
        self._link.requests.add(self)
        try:
            return await self._pass_back()
        except BaseException:  # cancelled: the rest will not be written
            self._abandon()
            raise
        finally:
            self._link.requests.discard(self)
            self._stop_watching()

    async def _pass_back(self) -> ForwardOutcome:
        response = self._hop.response
        body: bytes | None = None
        try:
            await response.wait_for_head()
            if not self._link.is_answered(self._hop):
                response.close()
                return ForwardOutcome.LOST if response.status == FAILED_STATUS else ForwardOutcome.UNREACHABLE
            if response.status == NOT_HELD_STATUS:
                response.discard()
                return ForwardOutcome.NOT_HELD
            if self._request.scope["method"] == "HEAD":
                response.close()  # the length belongs to a body that is not sent
                body = b""
            elif response.length is not None and response.length <= WHOLE_BYTES:
                body = await response.read(WHOLE_BYTES)
        except HttpFailure:
            if self._has_caller_left():
                return self._leave()
            self._abandon()
            return ForwardOutcome.LOST
        if self._has_caller_left():
            return self._leave()
        if body is None:
            return await self._stream()
        self._stop_watching()
        if response.is_checked:
            self._link.expect(self._hop, self._caller)
        await self._begin()
        await self._request.send({"type": "http.response.body", "body": body})
        self._link.report_written(self._hop)
        return ForwardOutcome.ANSWERED

    async def _stream(self) -> ForwardOutcome:
        response, send = self._hop.response, self._request.send
        is_between_events = response.content_type == "text/event-stream"
        await self._begin()
        try:
            while chunk := await response.readany():
                if self._has_caller_left():
                    return self._leave()
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                is_between_events = chunk.endswith(b"\n\n")
        except HttpFailure:
            return self._leave() if self._has_caller_left() else await self._end_early(is_between_events)
        if self._has_caller_left():
            return self._leave()
        self._stop_watching()  # once the response is complete, the server below reports the caller as gone
        self._link.expect(self._hop, self._caller)
        await send({"type": "http.response.body", "body": b""})
        self._link.report_written(self._hop)
        return ForwardOutcome.ANSWERED

    async def _begin(self) -> None:
        response = self._hop.response
        start = {"type": "http.response.start", "status": response.status, "headers": response.headers}
        await self._request.send(start)

    async def _end_early(self, is_between_events: bool) -> ForwardOutcome:
        """End a response whose holder is lost. Stream clients drop a partly written event."""
        self._abandon()
        self._stop_watching()
        if self._hop.response.content_type != "text/event-stream":
            self._caller.abort_response()
            return ForwardOutcome.ANSWERED
        reply = self._lost_reply() if is_between_events else None
        last = b"" if reply is None else b"event: message\ndata: %b\n\n" % reply
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._request.send({"type": "http.response.body", "body": last})
        except TimeoutError:
            self._caller.abort_response()  # the caller is not reading
        return ForwardOutcome.ANSWERED

    # The caller.

    def _has_caller_left(self) -> bool:
        return self._is_caller_gone or self._caller.is_gone()

    def _leave(self) -> ForwardOutcome:
        """Drop the response, because the caller has left."""
        self._abandon()
        self._caller.give_up_response()
        return ForwardOutcome.ANSWERED

    def _abandon(self) -> None:
        """Close the response and report it as unread, in case the holder is still alive."""
        self._hop.response.close()
        self._link.report_unread(self._hop)

    def _start_watching(self) -> None:
        self._watcher = self._link.parts.tasks.spawn(self._watch(), name="watch")

    async def _watch(self) -> None:
        await until_gone(self._request.receive)
        self._is_caller_gone = True
        self._hop.response.close()

    def _stop_watching(self) -> None:
        self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

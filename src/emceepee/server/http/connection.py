"""One connection of a caller over HTTP: uvicorn's own, with bounds to what it can be made to keep or to wait for.

It also is the disconnect check: whether a response has somebody to go to, and whether it got there.

    request ─▶ served … `is_gone`? ─▶ response written ─▶ next request, or 2 s and all acknowledged: it was read
                          │ yes            └─ connection lost before that (we close only when all is acknowledged)
                          │                   ├─ with unacknowledged bytes (TIOCOUTQ): unread, `if_unread` reports it
                          │                   ├─ in order, with all acknowledged: read
                          │                   └─ by a reset, with all acknowledged: read if a proxy took the response,
                          │                      unread if the caller itself sent the reset
                          └─ nothing is written; `give_up_response` tells uvicorn that this is no mistake

A system resets a connection that a program closes with unread data, so a caller's reset means that it did not read the
response. A proxy's reset does not: HAProxy resets its own connection when its client leaves after reading.

asyncio closes the transport as soon as it reads an EOF or an error, which is a turn of the loop before uvicorn lets
`receive` report it. Asking the transport costs one method call; waiting for `receive` would cost a task per request.
"""

from asyncio import Transport
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from emceepee.guard.forwarding import is_forwarded
from emceepee.server.http.acknowledgement import close_when_acknowledged, is_unread, unacknowledged_bytes
from emceepee.server.http.connection_table import TICK_SECONDS, ConnectionTable
from emceepee.server.http.joined_writes import joined_writes
from emceepee.state.client_line import ClientLine
from emceepee.web.asgi import CONNECTION
from emceepee.wire.codec import encode

PART_BYTES = 1 << 16  # fed to the parser at once; then the limits are checked
FRAMING_PER_BYTE = 2  # bytes of chunk framing for each byte of a body: chunks of three bytes each pass, of one byte not
CONFIRMED_TICKS = round(2 / TICK_SECONDS)  # two seconds after a response it counts as read
LINGER_TICKS = round(2 / TICK_SECONDS)  # for a caller that still sends to read the refusal
Unconfirmed = tuple[Callable[[], None], Callable[[], None] | None]  # called if it was not read, and if it was


class _Refused(Exception):
    """Thrown through the parser, which has no other way to be stopped."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class ServerConnection(HttpToolsProtocol):
    """Bounds heads, bodies and pipelines before they are parsed, and is the disconnect check of its requests."""

    def __init__(self, *args: Any, table: ConnectionTable, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self._serving: RequestResponseCycle | None = None
        self._unconfirmed: list[Unconfirmed] = []  # who wants to know what became of the last responses
        self._in_head = self._in_body = self._is_done_reading = self._is_closing = False
        self._was_asked = False
        self._beside = 0  # bytes that are not body, since the message began or its head ended; not those of that part
        self._body_bytes = self._trailers = self._trailer_bytes = 0  # of the message that arrives
        self._ignored_bytes = 0  # that came after the last message that is read
        self._ticks = 0  # since the caller last did what it is waited for
        self._held_bytes = 0  # of a response, which wait until the transport takes them
        self._left_bytes = 0  # of what was written, when this was looked at last
        self.stalled_ticks = 0  # since the caller read some of it
        self._line: ClientLine | None = None

    def __repr__(self) -> str:
        reading = "head" if self._in_head else "body" if self._in_body else "nothing"
        state = "gone" if self.is_gone() else "serving" if self._serving is not None else "idle"
        return f"<ServerConnection {state} reading={reading} unconfirmed={len(self._unconfirmed)}>"

    # For requests: the disconnect check.

    def is_gone(self) -> bool:
        return self.transport.is_closing()

    def is_idle(self) -> bool:
        return self._serving is None and not self.is_gone()

    @property
    def line(self) -> ClientLine:
        if self._line is None:
            self._line = ClientLine(self)
        return self._line

    def give_up_response(self) -> None:
        if self._serving is not None:
            self._serving.disconnected = True  # uvicorn learns of it a turn later, and would miss the response

    def abort_response(self) -> None:
        self.give_up_response()
        self.transport.abort()

    def if_unread(self, report: Callable[[], None], *, if_read: Callable[[], None] | None = None) -> None:
        self._unconfirmed.append((report, if_read))

    def hold(self, size: int) -> None:
        self._held_bytes += size
        self._table.hold(size)

    def when_written(self, report: Callable[[], None]) -> None:
        report()

    def _confirm(self) -> None:
        """The last responses were read."""
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        for _, if_read in unconfirmed:
            if if_read is not None:
                if_read()

    # What comes in.

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        if not self._table.enter(self):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE)

    def data_received(self, data: bytes) -> None:
        if len(data) <= PART_BYTES:
            self._parse(data)
            return
        view = memoryview(data)
        for start in range(0, len(data), PART_BYTES):
            self._parse(view[start : start + PART_BYTES])
        is_large = len(data) >= PART_BYTES  # then libuv may have 8 MiB more for this turn of the loop
        if is_large and not (self.flow.read_paused or self.transport.is_closing()):
            self.flow.pause_reading()
            self.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.flow.resume_reading()

    def _parse(self, part: bytes | memoryview) -> None:
        if self._is_done_reading:
            self._ignore(len(part))
            return
        self._beside += len(part)
        try:
            self.parser.feed_data(part)
        except httptools.HttpParserUpgrade:
            return  # there is nothing to upgrade to, so the request is answered as any other
        except httptools.HttpParserError as error:
            why = error.__context__
            self._refuse(why.status if isinstance(why, _Refused) else HTTPStatus.BAD_REQUEST)
            return
        if self._beside > self._table.head_bytes or (self._in_head and len(self.headers) > self._table.headers):
            is_request = self._in_head or self._in_body  # else there are only blank lines
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_request else HTTPStatus.BAD_REQUEST)
        elif self._beside < 0:
            self._beside = 0  # no body earns room for trailers that come later

    def _ignore(self, count: int) -> None:
        self._ignored_bytes += count
        if self._ignored_bytes > self._table.most_body_bytes:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]  # uvicorn knows none of ours
        self._in_head, self._beside, self._ticks = True, 0, 0
        self._body_bytes = self._trailers = self._trailer_bytes = 0
        if self._unconfirmed:
            self._confirm()  # who asks again has read what came before

    def on_header(self, name: bytes, value: bytes) -> None:
        """As uvicorn does it, but for the head alone: uvicorn would append trailers to the headers it has passed on."""
        if not self._in_head:
            self._drop_trailer(len(name) + len(value) + 4)
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def _drop_trailer(self, size: int) -> None:
        """Nobody needs it, but it has the bounds of a head."""
        self._trailers += 1
        self._trailer_bytes += size
        if self._trailers > self._table.headers or self._trailer_bytes > self._table.head_bytes:
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def on_body(self, body: bytes) -> None:
        size = len(body)
        self._beside -= size * (1 + FRAMING_PER_BYTE)
        self._body_bytes += size
        if self._body_bytes > self._table.most_body_bytes:
            raise _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        cycle = self.cycle
        if not cycle.response_complete:  # what follows is uvicorn's; it would also ask for an upgrade, which we refuse
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_headers_complete(self) -> None:
        table = self._table
        is_large = self._beside + PART_BYTES > table.head_bytes  # or may be; hardly any head is
        if len(self.headers) > table.headers or (is_large and self._head_size() > table.head_bytes):
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if len(self.pipeline) >= table.pipelined:
            self.cycle.keep_alive = False  # the answers up to here go out, and then the connection is closed
            raise _Refused(HTTPStatus.TOO_MANY_REQUESTS)
        self._in_head, self._in_body, self._was_asked = False, True, True
        self._beside = self._ticks = 0
        super().on_headers_complete()

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._in_body = False
        self._beside = self._ticks = 0
        if not self.pipeline:
            if self._serving is not None:
                self._table.waiting.pop(self, None)
            self.flow.resume_reading()  # also behind a large body: while reading is paused, no disconnect is noticed

    # What goes out.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._serving = cycle
        cycle.transport = joined_writes(cycle.transport, close=self._close)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """As uvicorn does it, but without a timer of its own."""
        self.server_state.total_requests += 1
        if self._is_closing or self.transport.is_closing():
            self._is_done_reading = True
            self._wait()
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            if self._in_body and not self.pipeline:
                self._wait()
        else:
            self._serving = None
            self._wait()
        self.flow.resume_reading()

    def _wait(self) -> None:
        self._ticks = 0
        self._table.waiting[self] = None

    # Time, and the end.

    def tick(self) -> None:
        """Half a second has passed in which no whole request was being served."""
        self._ticks += 1
        if (self._in_head or self._in_body) and not self._is_done_reading:
            if self._ticks > (self._table.head_ticks if self._in_head else self._table.body_ticks):
                self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif self.flow.write_paused or self._has_read_some():
            self._ticks = 0  # it reads the last answer, however slowly, or `tick_writing` sees that it does not
        elif self._ticks > self._patience():
            self.transport.abort()
        elif self._unconfirmed and self._ticks >= CONFIRMED_TICKS and self._is_all_read():
            self._confirm()

    def _patience(self) -> int:
        """In ticks, for a caller of whom nothing is expected but that it reads, asks or leaves."""
        if self._left_bytes:
            return self._table.write_ticks
        if not self._is_done_reading:
            return self._table.idle_ticks if self._was_asked else self._table.first_ticks
        return LINGER_TICKS

    def _has_read_some(self) -> bool:
        """Return whether fewer bytes are left than when this was asked last."""
        unsent = self.transport.get_write_buffer_size()
        before, self._left_bytes = self._left_bytes, unsent and unsent + unacknowledged_bytes(self.transport)
        return self._left_bytes < before

    def _is_all_read(self) -> bool:
        return not self._left_bytes and not is_unread(self.transport)

    # A caller that is slower to read than we are to write.

    @property
    def unread_bytes(self) -> int:
        return self.transport.get_write_buffer_size() + self._held_bytes

    def pause_writing(self) -> None:
        super().pause_writing()
        self._left_bytes = self.stalled_ticks = 0
        self._table.begin_unread(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._table.end_unread(self)

    def tick_writing(self) -> None:
        """Half a second has passed in which more was to be written than the system takes."""
        self.stalled_ticks = 0 if self._has_read_some() else self.stalled_ticks + 1
        if self.stalled_ticks > self._table.write_ticks:
            self.transport.abort()

    def give_way(self) -> None:
        """Others need the place."""
        self.transport.abort()

    def _refuse(self, status: HTTPStatus) -> None:
        """Read nothing more, and respond with the status unless another response is on its way."""
        self._is_done_reading = True
        if self.transport.is_closing():
            return
        if self.pipeline and not self.cycle.keep_alive:
            return  # it has asked for more at once than is kept: what was taken is answered first
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.disconnected = True
            serving.message_event.set()
            if serving.response_started:
                self.transport.abort()
                return
        if not (self._in_body and self.cycle.response_complete):  # one response to each request
            self.transport.write(self.refusal(status))
        self.transport.write_eof()
        self._wait()

    def refusal(self, status: HTTPStatus) -> bytes:
        """The response to what is no request."""
        body = encode({"error": f"{status.phrase}. {_ADVICE.get(status, '')}".strip()})
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body

    def shutdown(self) -> None:
        """The server stops: whoever is being answered is, and nobody else is waited for."""
        if self._serving is not None:
            super().shutdown()
        elif self._unconfirmed:
            self._is_done_reading = True
            self._close()
        else:
            self.transport.abort()

    def _close(self) -> None:
        """In order. If someone wants to know whether the last response was read, its acknowledgement is waited for."""
        if self._is_closing:
            return
        self._is_closing = self._is_done_reading = True
        if self.cycle is not None:
            self._wait()  # also for the rest of a response that its application broke off
        if self._unconfirmed and self.cycle.response_complete:
            close_when_acknowledged(self.transport, self.loop)
        else:
            self.transport.close()

    def _was_read(self, exc: Exception | None) -> bool:
        """Return whether the last response was read before the connection was lost."""
        if not self.cycle.response_complete or self.flow.write_paused or is_unread(self.transport):
            return False
        return exc is None or is_forwarded(tuple(name for name, _ in self.headers))

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.leave(self)
        self._table.end_unread(self)
        if self._line is not None:
            self._line.carrier = None
        if self._unconfirmed and self._was_read(exc):
            self._confirm()
        unconfirmed = self._unconfirmed
        super().connection_lost(exc)
        # The scope refers to this connection: nothing may be left for the collector.
        self.cycle, self.scope, self._serving, self._unconfirmed = cast(Any, None), cast(Any, None), None, []
        self.pipeline.clear()
        for report, _ in unconfirmed:
            report()


_ADVICE = {
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "Send a shorter address, fewer or shorter headers, and larger chunks.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Send a smaller body.",
    HTTPStatus.REQUEST_TIMEOUT: "The request did not arrive whole in time.",
    HTTPStatus.SERVICE_UNAVAILABLE: "All connections are in use; try again later.",
}

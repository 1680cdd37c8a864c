"""One HTTP connection of a caller: uvicorn's protocol, with limits on its memory and its waiting time.

It is also the disconnect check: it reports whether a response still has a reader, and whether the response was read.

    request ─▶ served … `is_gone`? ─▶ response written ─▶ next request, or 2 s and all acknowledged: it was read
                          │ yes            └─ connection lost before that (we close only when all is acknowledged)
                          │                   ├─ with unacknowledged bytes (TIOCOUTQ): unread, `if_unread` reports it
                          │                   ├─ closed in order, with all acknowledged: read
                          │                   └─ by a reset, with all acknowledged: read if a proxy took the response,
                          │                      unread if the caller itself sent the reset
                          └─ nothing is written; `give_up_response` tells uvicorn that this is intended

A system resets a connection that a program closes with unread data, so a caller's reset means that it did not read the
response. A proxy's reset does not: HAProxy resets its own connection when its client leaves after reading.

A system may delay an acknowledgement by 40 ms or more, and from another machine it takes a round trip. A server that
closes right after a response would therefore find unacknowledged bytes although the caller is about to read them.

asyncio closes the transport as soon as it reads an EOF or an error, one turn of the loop before uvicorn's `receive`
reports it. Checking the transport costs one method call; waiting for `receive` would cost a task per request.
"""

import fcntl
import socket
import struct
import termios
from asyncio import AbstractEventLoop, BaseTransport, Transport
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from emceepee.guard.proxy_headers import is_forwarded
from emceepee.server.http.connection_table import TICK_SECONDS, ConnectionTable
from emceepee.server.http.joined_writes import joined_writes
from emceepee.state.client_line import ClientLine
from emceepee.web.asgi import CONNECTION
from emceepee.wire.codec import encode

PART_BYTES = 1 << 16  # fed to the parser at once, before the limits are checked
FRAMING_PER_BYTE = 2  # bytes of chunk framing per byte of body: chunks of three bytes pass, chunks of one byte do not
CONFIRMED_TICKS = round(2 / TICK_SECONDS)  # a response counts as read after two seconds
LINGER_TICKS = round(2 / TICK_SECONDS)  # so that a caller that is still sending can read the refusal
CHECK_SECONDS = 0.05  # between two checks for an acknowledgement: about as long as a system delays it
MOST_CHECKS = 20  # one second in all: enough for a distant caller that lost a packet
Unconfirmed = tuple[Callable[[], None], Callable[[], None] | None]  # called if the response was not read, and if it was


class _Refused(Exception):
    """Thrown through the parser, because nothing else stops it."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


class ServerConnection(HttpToolsProtocol):
    """Limits heads, bodies, and pipelines before they are parsed, and is the disconnect check of its requests."""

    def __init__(self, *args: Any, table: ConnectionTable, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table = table
        self._serving: RequestResponseCycle | None = None
        self._unconfirmed: list[Unconfirmed] = []  # callbacks of the last responses
        self._in_head = self._in_body = self._is_done_reading = self._is_closing = False
        self._was_asked = False
        self._beside = 0  # non-body bytes since the part in which the message began or its head ended
        self._body_bytes = self._trailers = self._trailer_bytes = 0  # of the arriving message
        self._ignored_bytes = 0  # received after the last message that is read
        self._ticks = 0  # since the caller last made progress
        self._held_bytes = 0  # response bytes that the transport has not accepted yet
        self._left_bytes = 0  # unread bytes at the last check
        self.stalled_ticks = 0  # since the caller last read some of them
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
            self._serving.disconnected = True  # uvicorn learns it a turn later; until then it expects a response

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
        """Report the last responses as read."""
        unconfirmed, self._unconfirmed = self._unconfirmed, []
        for _, if_read in unconfirmed:
            if if_read is not None:
                if_read()

    # Receiving.

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
        is_large = len(data) >= PART_BYTES  # libuv may then deliver 8 MiB more in this turn of the loop
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
            return  # no upgrade is supported, so the request is answered like any other
        except httptools.HttpParserError as error:
            why = error.__context__
            self._refuse(why.status if isinstance(why, _Refused) else HTTPStatus.BAD_REQUEST)
            return
        if self._beside > self._table.head_bytes or (self._in_head and len(self.headers) > self._table.headers):
            is_request = self._in_head or self._in_body  # otherwise there were only blank lines
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE if is_request else HTTPStatus.BAD_REQUEST)
        elif self._beside < 0:
            self._beside = 0  # a body must not earn room for later trailers

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
            self._confirm()  # a caller that sends another request has read the previous responses

    def on_header(self, name: bytes, value: bytes) -> None:
        """Like uvicorn's, but for the head only: uvicorn would append trailers to headers that it already passed on."""
        if not self._in_head:
            self._drop_trailer(len(name) + len(value) + 4)
            return
        name = name.lower()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def _drop_trailer(self, size: int) -> None:
        """Drop a trailer. No application needs it, but it counts toward the limits of a head."""
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
        if not cycle.response_complete:  # from here on as in uvicorn, without its check for an upgrade, which we refuse
            cycle.body += body
            if len(cycle.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            cycle.message_event.set()

    def on_headers_complete(self) -> None:
        table = self._table
        is_large = self._beside + PART_BYTES > table.head_bytes  # possibly; hardly any head is
        if len(self.headers) > table.headers or (is_large and self._head_size() > table.head_bytes):
            raise _Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        if len(self.pipeline) >= table.pipelined:
            self.cycle.keep_alive = False  # the responses up to here go out, and then the connection closes
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
            self.flow.resume_reading()  # even after a large body: while reading is paused, a disconnect goes unnoticed

    # Responding.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._serving = cycle
        cycle.transport = joined_writes(cycle.transport, close=self._close)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Like uvicorn's, but without a timer of its own."""
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

    # Timeouts and closing.

    def tick(self) -> None:
        """Count half a second in which no complete request was being served."""
        self._ticks += 1
        if (self._in_head or self._in_body) and not self._is_done_reading:
            if self._ticks > (self._table.head_ticks if self._in_head else self._table.body_ticks):
                self._refuse(HTTPStatus.REQUEST_TIMEOUT)
        elif self.flow.write_paused or self._has_read_some():
            self._ticks = 0  # it reads the last response, however slowly; `tick_writing` detects a stall
        elif self._ticks > self._patience():
            self.transport.abort()
        elif self._unconfirmed and self._ticks >= CONFIRMED_TICKS and self._is_all_read():
            self._confirm()

    def _patience(self) -> int:
        """Return the timeout, in ticks, of a caller that only needs to read, send a request, or leave."""
        if self._left_bytes:
            return self._table.write_ticks
        if not self._is_done_reading:
            return self._table.idle_ticks if self._was_asked else self._table.first_ticks
        return LINGER_TICKS

    def _has_read_some(self) -> bool:
        """Return whether fewer bytes are left than at the previous call."""
        unsent = self.transport.get_write_buffer_size()
        before, self._left_bytes = self._left_bytes, unsent and unsent + unacknowledged_bytes(self.transport)
        return self._left_bytes < before

    def _is_all_read(self) -> bool:
        return not self._left_bytes and not is_unread(self.transport)

    # Backpressure: a caller that reads more slowly than we write.

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
        """Count half a second in which the system accepted less than there was to write."""
        self.stalled_ticks = 0 if self._has_read_some() else self.stalled_ticks + 1
        if self.stalled_ticks > self._table.write_ticks:
            self.transport.abort()

    def give_way(self) -> None:
        """Close the connection to free its place for others."""
        self.transport.abort()

    def _refuse(self, status: HTTPStatus) -> None:
        """Read nothing more, and respond with the status unless another response is on its way."""
        self._is_done_reading = True
        if self.transport.is_closing():
            return
        if self.pipeline and not self.cycle.keep_alive:
            return  # too many pipelined requests: the accepted ones are answered first
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.disconnected = True
            serving.message_event.set()
            if serving.response_started:
                self.transport.abort()
                return
        if not (self._in_body and self.cycle.response_complete):  # one response per request
            self.transport.write(self.refusal(status))
        self.transport.write_eof()
        self._wait()

    def refusal(self, status: HTTPStatus) -> bytes:
        """Return the raw response to input that never becomes a request."""
        body = encode({"error": f"{status.phrase}. {_ADVICE.get(status, '')}".strip()})
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
        return f"{head}content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body

    def shutdown(self) -> None:
        """Shut down: finish the current response, or await the acknowledgement of the last one, and nothing else."""
        if self._serving is not None:
            super().shutdown()
        elif self._unconfirmed:
            self._is_done_reading = True
            self._close()
        else:
            self.transport.abort()

    def _close(self) -> None:
        """Close in order. If a callback waits for the last response to be read, await its acknowledgement first."""
        if self._is_closing:
            return
        self._is_closing = self._is_done_reading = True
        if self.cycle is not None:
            self._wait()  # also for the rest of a response that its application aborted
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
        # The scope refers to this connection: break the reference cycles, which would need a garbage collection.
        self.cycle, self.scope, self._serving, self._unconfirmed = cast(Any, None), cast(Any, None), None, []
        self.pipeline.clear()
        for report, _ in unconfirmed:
            report()


_ADVICE = {
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "Send a shorter address, fewer or shorter headers, and larger chunks.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Send a smaller body.",
    HTTPStatus.REQUEST_TIMEOUT: "The request did not arrive completely in time.",
    HTTPStatus.SERVICE_UNAVAILABLE: "All connections are in use; try again later.",
}


def is_unread(transport: BaseTransport) -> bool:
    """Return whether bytes of the response are unacknowledged. Linux reports them even after a reset."""
    return unacknowledged_bytes(transport) > 0


def unacknowledged_bytes(transport: BaseTransport) -> int:
    """Return how many bytes, sent or still buffered by this system, the caller's system has not acknowledged."""
    sock: socket.socket = transport.get_extra_info("socket")
    try:
        waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", waiting)[0])


def close_when_acknowledged(transport: Transport, loop: AbstractEventLoop) -> None:
    """Close now if all is acknowledged. Otherwise send EOF, and close after the acknowledgement or the last check."""
    if not _is_on_its_way(transport):
        transport.close()
        return
    if transport.can_write_eof():  # the EOF must then be acknowledged as well
        transport.write_eof()
    loop.call_later(CHECK_SECONDS, _check, transport, loop, MOST_CHECKS)


def _check(transport: Transport, loop: AbstractEventLoop, checks_left: int) -> None:
    if transport.is_closing():  # by the caller
        return
    if transport.get_write_buffer_size():  # a slow reader, for which the connection has its own limit
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left)
    elif checks_left and is_unread(transport):
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left - 1)
    else:
        transport.close()


def _is_on_its_way(transport: Transport) -> bool:
    return bool(transport.get_write_buffer_size()) or is_unread(transport)

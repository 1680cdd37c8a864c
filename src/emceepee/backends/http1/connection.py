"""One HTTP/1.1 connection to a server: a request goes out in one write, and what comes back becomes its response.

It carries one request at a time, and between two of them it lies in the pool:

    send ──▶ write                        a Response exists; its head is awaited
         ◀── data_received                httptools parses it and calls `on_header`, `on_headers_complete`, `on_body`
         ◀── … more of the body           nobody reads it: beyond UNREAD_BYTES reading is paused, and the server waits
         ◀── on_message_complete ──▶ pool.put_back, if both sides keep it open; else closed
         ◀── data or EOF while idle       closed: the next request would take stray bytes for its answer

The race that matters: a server may close an idle connection just as a request is written to it. Such a request gets no
byte of an answer (`NoResponse`), and only one that does no harm twice is sent again. To make it rare, `is_silent` asks
the socket itself before each reuse, because the event loop reports an EOF one turn later than the kernel has it. A
response that is not read to its end closes the connection: what is left of it cannot be told from the next one.
"""

import asyncio
import math
import re
import select
from collections.abc import Mapping
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from emceepee.backends.http1.connect_errors import MAY_WANT_CERTIFICATE, alert_words
from emceepee.backends.http1.errors import HttpFailure, NoResponse, NotConnected, ResponseTooLarge
from emceepee.backends.http1.inflate import inflater_for
from emceepee.backends.http1.response import UNREAD_BYTES, HttpResponse
from emceepee.clock import Handle

HEAD_BYTES = 64 << 10  # of a head, or of anything else that is not body and leads to none
_TIMEOUT = re.compile(r"\btimeout=(\d{1,9})\b").search
_LISTS = frozenset({"content-encoding", "transfer-encoding"})  # the headers that are read here and may come in parts


class ConnectionOwner(Protocol):
    """The pool, in which connections lie between requests."""

    def put_back(self, connection: "ClientConnection") -> None:
        """It can take another request."""
        ...

    def retire(self, connection: "ClientConnection") -> None:
        """It can take none any more."""
        ...

    def forget(self, connection: "ClientConnection") -> None:
        """Nothing is left of it."""
        ...

    def close_soon(self, response: HttpResponse) -> Handle: ...


class ClientConnection(asyncio.Protocol):
    """Carries one request at a time. Its own parser calls the methods named `on_…`."""

    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop, *, needs_promise: bool = False) -> None:
        """`needs_promise`: silence does not mean that the other side keeps it open."""
        self._owner, self._loop, self._needs_promise = owner, loop, needs_promise
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._poll: select.poll | None = None
        self._response: HttpResponse | None = None  # the one that is awaited or still coming
        self._head: list[tuple[bytes, bytes]] = []
        self._overhead = 0  # bytes since the last one of a body
        self._has_data = self._is_interim = self._is_complete = False  # of the response
        self._lasts = False  # beyond this response
        self._ends_with_connection = False  # the body, for want of a length
        self._is_paused = False
        self._is_untried_tls = False  # TLS, and the server has not said anything yet
        self.server_keeps = math.inf  # seconds that the server waits for the next request, as far as it has said
        self.good_until: float | None = None  # set by the pool while it is idle

    def __repr__(self) -> str:
        state = "closed" if not self.is_open else "idle" if self._response is None else repr(self._response)
        return f"<ClientConnection {state}>"

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def is_silent(self) -> bool:
        """True if the socket has neither unread data nor EOF, including what the event loop has not reported yet."""
        return self._poll is None or not self._poll.poll(0)

    def send(self, request: bytes) -> HttpResponse:
        """The response is awaited from now on. Only for a connection that is open and idle."""
        assert self._transport is not None
        assert self._response is None
        self._response = response = HttpResponse(self, self._loop.create_future())
        self._transport.write(request)
        return response

    def abort(self) -> None:
        """Close at once; a response that was still coming fails."""
        self._end(HttpFailure("the connection was closed"))

    # Called by the response.

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()

    def abandon(self, response: HttpResponse) -> None:
        self._response = None
        self._close()

    def close_soon(self, response: HttpResponse) -> Handle:
        return self._owner.close_soon(response)

    # Called by the transport (`asyncio.Protocol`).

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and hasattr(select, "poll"):  # not on Windows
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)
        self._is_untried_tls = transport.get_extra_info("ssl_object") is not None
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # none that could hide where one response ends and the next begins
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def data_received(self, data: bytes) -> None:
        response, parser = self._response, self._parser
        if response is None or parser is None:
            self._close()  # nobody asked: the next request would take this for its answer
            return
        self._has_data, self._is_untried_tls = True, False
        self._overhead += len(data)
        parts = response.parts
        before = len(parts)
        try:
            parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._end(_reason(error))
            return
        added = len(parts) - before
        if added:
            self._overhead = 0
            if added > 1:  # a body of tiny chunks would else cost fifty times its size
                parts[before:] = [b"".join(parts[before:])]
        if self._is_complete:
            self._finish(response)
        elif self._overhead > HEAD_BYTES:
            self._end(HttpFailure(f"the head of the answer is larger than {HEAD_BYTES} bytes"))
        elif response.wants_all:
            if response.size > response.largest:
                self._end(ResponseTooLarge(response.largest))
        elif response.is_discarded:
            parts.clear()
            response.size = 0
        elif response.status:
            if response.size > UNREAD_BYTES and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            response.wake()

    def eof_received(self) -> None:
        self._end(None if self._ends_with_connection else self._broken(None))

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = self._parser = None  # the parser holds on to us
        self._end(None if self._ends_with_connection and exc is None else self._broken(exc))
        self._owner.forget(self)

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise HttpFailure("the answer has bytes beyond its end")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head.append((name, value))

    def on_headers_complete(self) -> None:
        response, parser = self._response, self._parser
        assert response is not None
        assert parser is not None
        head, self._head = self._head, []
        status = parser.get_status_code()
        if status < 200:
            if status == 101:
                raise HttpFailure("the server switches to another protocol, which nobody asked for")
            self._is_interim = True
            return
        if self._overhead > HEAD_BYTES and sum(len(name) + len(value) for name, value in head) > HEAD_BYTES:
            raise HttpFailure(f"the head of the answer is larger than {HEAD_BYTES} bytes")
        response.raw_headers = head
        headers = response.headers
        for raw_name, raw_value in head:
            name, value = raw_name.decode("latin-1").strip().lower(), raw_value.decode("latin-1").rstrip(" \t")
            if name not in headers:
                headers[name] = value
            elif name in _LISTS:
                headers[name] += f", {value}"
            if name == "set-cookie":
                response.cookies.append(value)
        if "content-encoding" in headers:
            response.inflater = inflater_for(headers["content-encoding"])
        if "keep-alive" in headers and (timeout := _TIMEOUT(headers["keep-alive"])):
            self.server_keeps = float(timeout[1])
        self._lasts = parser.should_keep_alive()
        self._ends_with_connection = not self._lasts and not _has_length(headers)
        if self._needs_promise and not _promises_to_last(headers):
            self._lasts = False
        response.status = status

    def on_body(self, body: bytes) -> None:
        response = self._response
        assert response is not None
        response.parts.append(body)
        response.size += len(body)

    def on_message_complete(self) -> None:
        if self._is_interim:
            self._is_interim = False
        else:
            self._is_complete = True

    # How a response ends.

    def _finish(self, response: HttpResponse) -> None:
        self._reset()
        self.resume()
        transport = self._transport
        # With something still to be written, the server has answered before it had everything.
        if self._lasts and transport is not None and not transport.get_write_buffer_size() and self.is_open:
            self._owner.put_back(self)
        else:
            self._close()
        response.end()

    def _end(self, error: HttpFailure | None) -> None:
        response = self._response
        self._reset()
        self._close()
        if response is not None:
            response.end(error)

    def _reset(self) -> None:
        self._response = None
        self._overhead = 0
        self._head.clear()
        self._has_data = self._is_interim = self._is_complete = self._ends_with_connection = False

    def _close(self) -> None:
        self._owner.retire(self)
        if self._transport is not None:
            self._transport.abort()

    def _broken(self, exc: Exception | None) -> HttpFailure:
        if self._is_untried_tls and (words := alert_words(exc)) is not None:
            return NotConnected(words)  # it is told with the first bytes that are read: no request was before
        why = f": {getattr(exc, 'strerror', None) or exc}" if exc is not None else ""
        if self._has_data:
            return HttpFailure(f"the connection ended in the middle of the answer{why}")
        hint = f"; {MAY_WANT_CERTIFICATE}" if self._is_untried_tls else ""
        return NoResponse(f"the connection ended before an answer{why}{hint}")


def _promises_to_last(headers: Mapping[str, str]) -> bool:
    said = f"{headers.get('connection', '')},{headers.get('proxy-connection', '')}".lower()
    return "keep-alive" in (word.strip() for word in said.split(","))


def _has_length(headers: dict[str, str]) -> bool:
    return "content-length" in headers or headers.get("transfer-encoding", "").lower().endswith("chunked")


def _reason(error: Exception) -> HttpFailure:
    own = error.__context__
    return own if isinstance(own, HttpFailure) else HttpFailure(f"the answer is not HTTP: {error}")

"""One HTTP/1.1 connection to a server. It writes each request at once and parses the incoming bytes into its response.

It carries one request at a time. Between requests, it is idle in the pool:

    send ──▶ write                        creates a Response, which waits for its head
         ◀── data_received                httptools parses it and calls `on_header`, `on_headers_complete`, `on_body`
         ◀── … more of the body           backpressure: reading pauses beyond UNREAD_BYTES, and the server waits
         ◀── on_message_complete ──▶ pool.put_back, if both sides keep the connection open; else close
         ◀── data or EOF while idle       close: the next request would mistake stray bytes for its response

The important race: a server may close an idle connection just as a request is written to it. Such a request receives no
byte of a response (`NoResponse`), and only an idempotent request is sent again. To make the race rare, `is_silent`
polls the socket itself before each reuse, because the event loop reports an EOF one iteration later than the kernel.
Closing a response before its end closes the connection, because its remaining bytes would look like the next response.
"""

import asyncio
import math
import re
import select
from collections.abc import Mapping
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from emceepee.backends.http1.connect_errors import MAY_WANT_CERTIFICATE, alert_words
from emceepee.backends.http1.http_failures import HttpFailure, NoResponse, NotConnected, ResponseTooLarge
from emceepee.backends.http1.inflater import inflater_for
from emceepee.backends.http1.response import UNREAD_BYTES, HttpResponse
from emceepee.clock import Handle

HEAD_BYTES = 64 << 10  # maximum size of a head, and of other bytes between two pieces of body data
_TIMEOUT = re.compile(r"\btimeout=(\d{1,9})\b").search
_LISTS = frozenset({"content-encoding", "transfer-encoding"})  # list headers; repeated ones are joined


class ConnectionOwner(Protocol):
    """The pool, which holds idle connections."""

    def put_back(self, connection: "ClientConnection") -> None:
        """Return the connection to the pool, ready for another request."""
        ...

    def retire(self, connection: "ClientConnection") -> None:
        """Stop reusing the connection: it accepts no further requests."""
        ...

    def forget(self, connection: "ClientConnection") -> None:
        """Remove the connection, which is now completely closed."""
        ...

    def close_soon(self, response: HttpResponse) -> Handle: ...


class ClientConnection(asyncio.Protocol):
    """Carries one request at a time. Its parser calls the methods named `on_…`."""

    def __init__(self, owner: ConnectionOwner, loop: asyncio.AbstractEventLoop, *, needs_promise: bool = False) -> None:
        """Create a connection. With `needs_promise`, reuse it only if the responses contain an explicit keep-alive."""
        self._owner, self._loop, self._needs_promise = owner, loop, needs_promise
        self._transport: asyncio.Transport | None = None
        self._parser: HttpResponseParser | None = None
        self._poll: select.poll | None = None
        self._response: HttpResponse | None = None  # the response that is awaited or incomplete
        self._head: list[tuple[bytes, bytes]] = []
        self._overhead = 0  # bytes received since the last body data
        self._has_data = self._is_interim = self._is_complete = False  # state of the response
        self._lasts = False  # the connection stays open after this response
        self._ends_with_connection = False  # the body has no length, so EOF ends it
        self._is_paused = False
        self._is_untried_tls = False  # TLS, and no data has arrived yet
        self.server_keeps = math.inf  # the server's keep-alive timeout in seconds, if it sent one
        self.good_until: float | None = None  # set by the pool while the connection is idle

    def __repr__(self) -> str:
        state = "closed" if not self.is_open else "idle" if self._response is None else repr(self._response)
        return f"<ClientConnection {state}>"

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def is_silent(self) -> bool:
        """Return whether the socket has neither unread data nor EOF, even if the event loop has not reported it yet."""
        return self._poll is None or not self._poll.poll(0)

    def send(self, request: bytes) -> HttpResponse:
        """Write the request, and return its pending response. The connection must be open and idle."""
        assert self._transport is not None
        assert self._response is None
        self._response = response = HttpResponse(self, self._loop.create_future())
        self._transport.write(request)
        return response

    def abort(self) -> None:
        """Close the connection immediately. An incomplete response fails."""
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
        self._parser.set_dangerous_leniencies(  # none that could hide a response boundary (response smuggling)
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def data_received(self, data: bytes) -> None:
        response, parser = self._response, self._parser
        if response is None or parser is None:
            self._close()  # unsolicited data: the next request would mistake it for its response
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
            if added > 1:  # otherwise, a body of tiny chunks would need fifty times its size in memory
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
        self._transport = self._parser = None  # breaks the reference cycle with the parser
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
                raise HttpFailure("the server switches to another protocol, which was not requested")
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

    # The end of a response.

    def _finish(self, response: HttpResponse) -> None:
        self._reset()
        self.resume()
        transport = self._transport
        # If the write buffer is not empty, the server has answered before it received the whole request.
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
            return NotConnected(words)  # the alert arrives with the first bytes, so no request can have run
        why = f": {getattr(exc, 'strerror', None) or exc}" if exc is not None else ""
        if self._has_data:
            return HttpFailure(f"the connection ended during the answer{why}")
        hint = f"; {MAY_WANT_CERTIFICATE}" if self._is_untried_tls else ""
        return NoResponse(f"the connection ended before an answer{why}{hint}")


def _promises_to_last(headers: Mapping[str, str]) -> bool:
    options = f"{headers.get('connection', '')},{headers.get('proxy-connection', '')}".lower()
    return "keep-alive" in (word.strip() for word in options.split(","))


def _has_length(headers: dict[str, str]) -> bool:
    return "content-length" in headers or headers.get("transfer-encoding", "").lower().endswith("chunked")


def _reason(error: Exception) -> HttpFailure:
    own = error.__context__
    return own if isinstance(own, HttpFailure) else HttpFailure(f"the answer is not HTTP: {error}")

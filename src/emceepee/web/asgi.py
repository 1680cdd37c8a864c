"""The few parts of ASGI that emceepee needs: a body, a response, the connection below."""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from emceepee.state.client_line import ClientLine
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[JsonObject]]
Send = Callable[[JsonObject], Awaitable[None]]
Headers = Mapping[bytes, bytes]
Header = tuple[bytes, bytes]
CONNECTION = "emceepee.connection"  # the ASGI extension that holds the `CallerConnection`

SAFE_HEADERS: tuple[Header, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)
JSON_TYPE: Header = (b"content-type", b"application/json")
STREAM_HEADERS: tuple[Header, ...] = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
)


JSON, STREAM = b"application/json", b"text/event-stream"


def accepts(headers: Headers, kind: bytes) -> bool:
    """Return whether the caller accepts an answer of that kind. Without an Accept header, it accepts any."""
    return _takes(headers.get(b"accept", b"*/*"), kind)


@lru_cache(maxsize=256)  # a caller sends the same header in every request
def _takes(accept: bytes, kind: bytes) -> bool:
    taken = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return not taken.isdisjoint((kind, kind.partition(b"/")[0] + b"/*", b"*/*"))


def is_json(headers: Headers) -> bool:
    """Return whether the caller declares its body as JSON."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == JSON


class BodyTooLarge(Exception):
    """The request's body is over the limit."""


class CallerLeft(Exception):
    """The caller disconnected before its request was complete."""


async def read_body(receive: Receive, most: int) -> bytes:
    """Raises: BodyTooLarge, CallerLeft."""
    part = await receive()
    body = part.get("body", b"")
    if not part.get("more_body") and part["type"] == "http.request" and len(body) <= most:
        return bytes(body)
    parts, size = [body], len(body)
    while part.get("more_body") and size <= most:
        part = await receive()
        parts.append(part.get("body", b""))
        size += len(parts[-1])
    if part["type"] == "http.disconnect":
        raise CallerLeft
    if size > most:
        raise BodyTooLarge
    return b"".join(parts)


async def respond(send: Send, status: int, body: bytes, *headers: Header) -> None:
    """Send a complete response."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [length, *SAFE_HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})


async def respond_json(send: Send, status: int, value: Any, *headers: Header) -> None:
    await respond(send, status, encode(value), JSON_TYPE, *headers)


async def until_gone(receive: Receive) -> None:
    """Return when the caller has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


class CallerConnection(Protocol):
    """The connection of a request, as the server below provides it."""

    @property
    def line(self) -> ClientLine:
        """Identifies the connection among those of the same client."""
        ...

    def is_gone(self) -> bool:
        """Return whether the caller has disconnected. The server learns of it at once."""
        ...

    def give_up_response(self) -> None:
        """Abandon the response, or the rest of it, because the caller is gone. The application made no mistake."""
        ...

    def abort_response(self) -> None:
        """Close the connection during the response: a client must not accept a partial response as complete."""
        ...

    def if_unread(self, report: Callable[[], None], *, if_read: Callable[[], None] | None = None) -> None:
        """Call `report` if the next response turns out to be unread, else `if_read`."""
        ...

    def hold(self, size: int) -> None:
        """Count `size` more bytes of the response as waiting to be read; a negative size subtracts them."""
        ...

    def when_written(self, report: Callable[[], None]) -> None:
        """Call `report` as soon as the written response is on its way to the caller itself.

        This happens at once, unless another process has to pass the response back.
        """
        ...

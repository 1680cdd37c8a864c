"""Validates 2026-07-28 requests over HTTP, and maps replies to HTTP statuses."""

from collections.abc import Callable

from emceepee.server.envelope import HTTP_STATUS, Refusal, refusal, repeated_header, unsupported_version
from emceepee.server.http.exchange import HttpRequest
from emceepee.web.asgi import respond, respond_json
from emceepee.wire.json_rpc import InvalidMessage, Notification, Request, classify, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import HEADER_MISMATCH, INVALID_REQUEST

PROTOCOL_HEADERS = b"mcp-"  # the prefix of their names
ObserveRefusal = Callable[[Request, HttpRequest, JsonObject], None]  # receives a refused request and its reply


async def accept_request(value: object, http: HttpRequest, observe: ObserveRefusal = lambda *_: None) -> Request | None:
    """Return the request in a decoded body. Respond to anything else, or to a refused request, and return None."""
    match classify(value):
        case Request() as request:
            if (refused := _refusal(request, http)) is None:
                return request
            reply = _refusal_message(request, refused)
            observe(request, http, reply)
            await respond_json(http.send, http_status(reply), reply)
        case Notification():
            if (unsupported := unsupported_version(http.version)) is not None:
                reply = _refusal_message(None, unsupported)
                await respond_json(http.send, http_status(reply), reply)
            else:
                await respond(http.send, 202, b"")
        case InvalidMessage(reply):
            await respond_json(http.send, 400, reply)
        case _:
            nothing = error_message(None, INVALID_REQUEST, "Invalid request: nothing was asked")
            await respond_json(http.send, 400, nothing)
    return None


def http_status(reply: JsonObject) -> int:
    """Map a reply to its HTTP status, in this one place. Before 2026-07-28, every response has status 200."""
    error = reply.get("error")
    return 200 if error is None else HTTP_STATUS.get(error["code"], 200)


def _refusal(request: Request, http: HttpRequest) -> Refusal | None:
    """Return why the headers or the envelope of a request violate the era's rules, or None."""
    # Strip surrounding spaces, which are not part of a header value.
    pairs = [
        (name.decode("latin-1"), text.decode("latin-1").strip(" \t"))
        for name, text in http.scope["headers"]
        if name.startswith(PROTOCOL_HEADERS)
    ]
    if (twice := repeated_header(pairs)) is not None:
        return Refusal(HEADER_MISMATCH, f"{twice} header appears more than once")
    return refusal(request, dict(pairs))


def _refusal_message(request: Request | None, why: Refusal) -> JsonObject:
    return error_message(request.request_id if request else None, why.code, why.message, why.data)

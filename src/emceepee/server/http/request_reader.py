"""Checks every request at /mcp before it is served: its address, its body, and whether its headers follow the rules of
2026-07-28. It also maps replies of that era to HTTP statuses.
"""

from dataclasses import dataclass

from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.server.envelope import HTTP_STATUS, Refusal, refusal, repeated_header, unsupported_version
from emceepee.server.http.exchange import DirectResponse, HttpRequest, send_rpc_error
from emceepee.server.session_keys import SESSION_HEADER, SURFACE_HEADER
from emceepee.web.asgi import (
    JSON,
    STREAM,
    BodyTooLarge,
    CallerLeft,
    Header,
    Headers,
    Send,
    accepts,
    is_json,
    read_body,
)
from emceepee.wire.codec import Unreadable, decode
from emceepee.wire.json_rpc import InvalidMessage, Notification, Request, classify, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import HEADER_MISMATCH, INVALID_REQUEST, PARSE_ERROR

MCP_PATH = "/mcp"
PROTOCOL_HEADERS = b"mcp-"  # the prefix of their names
SINGLE_HEADERS = (
    *(b"host", b"origin", b"authorization", b"cookie", b"sec-fetch-site"),
    *(b"content-type", b"mcp-session-id", b"last-event-id", SESSION_HEADER, SURFACE_HEADER),
)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body of a request, raw and decoded. A GET or DELETE has none."""

    body: bytes = b""
    value: object = None


def find_misdirection(pairs: list[Header], headers: Headers, gate: AccessControl) -> Rejection | None:
    """Return why the headers alone reject a request. `pairs` are all headers, `headers` the last of each name."""
    if len(headers) < len(pairs) and (twice := _find_duplicate_header(pairs)):
        return Rejection(400, f"Bad request: the header {twice} appears more than once")
    return gate.check_host_and_origin(headers)


def _find_duplicate_header(pairs: list[Header]) -> str | None:
    """Return a header that occurs twice although only one value may count, if there is one."""
    names = [name for name, _ in pairs]
    return next((name.decode() for name in SINGLE_HEADERS if names.count(name) > 1), None)


async def send_rejection(send: Send, why: Rejection) -> None:
    await send_rpc_error(send, why.status, INVALID_REQUEST, why.message, *why.headers)


async def read_message(http: HttpRequest, most_bytes: int, body: bytes | None = None) -> RequestBody | None:
    """Return the request's body, or None if the request was rejected. Pass `body` if it was read already."""
    method, send = http.scope["method"], http.send
    if method != "POST":
        if method in ("GET", "DELETE") and not http.is_modern:
            return RequestBody()
        allowed = b"POST" if http.is_modern else b"GET, POST, DELETE"
        await send_rpc_error(send, 405, INVALID_REQUEST, "Method not allowed", (b"allow", allowed))
    elif not is_json(http.headers):
        await send_rpc_error(send, 415, INVALID_REQUEST, "Send application/json")
    elif not (accepts(http.headers, JSON) or accepts(http.headers, STREAM)):
        words = "A POST is answered with application/json or text/event-stream"
        await send_rpc_error(send, 406, INVALID_REQUEST, words)
    else:
        return await _read_post(http, most_bytes, body)
    return None


async def _read_post(http: HttpRequest, most_bytes: int, body: bytes | None) -> RequestBody | None:
    try:
        if body is None:
            body = await read_body(http.receive, most_bytes)
        return RequestBody(body, decode(body))
    except ValueError as error:
        what = error if isinstance(error, Unreadable) else "not JSON"
        await send_rpc_error(http.send, 400, PARSE_ERROR, f"Parse error: the body is {what}")
    except BodyTooLarge:
        words = f"The request body is larger than {most_bytes} bytes."
        await send_rpc_error(http.send, 413, INVALID_REQUEST, words, (b"connection", b"close"))
    except CallerLeft:
        pass
    return None


# Requests of 2026-07-28.


def accept_request(value: object, http: HttpRequest) -> Request | DirectResponse:
    """Return the request in a decoded body, or the response to anything else and to a refused request."""
    match classify(value):
        case Request() as request:
            refused = _refusal(request, http)
            return request if refused is None else _refusal_response(request, refused)
        case Notification():
            unsupported = unsupported_version(http.version)
            return DirectResponse(202) if unsupported is None else _refusal_response(None, unsupported)
        case InvalidMessage(reply):
            return DirectResponse(400, reply)
        case _:
            return DirectResponse(
                400, error_message(None, INVALID_REQUEST, "Invalid request: the body contains no request")
            )


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


def _refusal_response(request: Request | None, why: Refusal) -> DirectResponse:
    reply = error_message(request.request_id if request else None, why.code, why.message, why.data)
    return DirectResponse(http_status(reply), reply)

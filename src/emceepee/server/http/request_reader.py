"""Checks every request at /mcp before it is served: whether it is meant for us, and what its body contains."""

from dataclasses import dataclass

from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.server.http.exchange import HttpRequest, send_rpc_error
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
from emceepee.wire.protocol import INVALID_REQUEST, PARSE_ERROR

MCP_PATH = "/mcp"
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

"""Adds CORS headers: without them, a browser withholds our responses from pages that the operator allowed."""

from emceepee.web.asgi import Header, Send
from emceepee.wire.json_rpc import TRACE_KEYS
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import METHOD_HEADER, NAME_HEADER, VERSION_HEADER

_EXPOSED = b"mcp-session-id, www-authenticate"
_ASKED = ", ".join(
    (
        *("authorization", "content-type", "accept", "last-event-id", "mcp-session-id"),
        *(VERSION_HEADER, METHOD_HEADER, NAME_HEADER),
        *("emceepee-session", "emceepee-surface", "emceepee-connect"),
        *TRACE_KEYS,
    )
).encode()
PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-allow-headers", _ASKED),
    (b"access-control-max-age", b"600"),
)


def with_cors_headers(origin: bytes, send: Send) -> Send:
    """Wrap `send` so that pages of this origin, and no other, may read the response."""
    allowed = [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"origin"),
    ]

    async def send_with_headers(message: JsonObject) -> None:
        if message["type"] == "http.response.start":
            message = message | {"headers": [*message["headers"], *allowed]}
        await send(message)

    return send_with_headers

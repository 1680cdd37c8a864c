"""How a hop looks as HTTP: what both sides must write and read in the same way."""

from collections.abc import Iterable

from emceepee.replicas.settlement import News
from emceepee.replicas.signature import HOP_HEADER
from emceepee.web.asgi import Header, Scope

SETTLE_PATH = b"/replica/settle"
NOT_HELD_STATUS = 421  # Misdirected Request
LEAVING_STATUS = 503  # of a replica that stops, before it closes a connection
CHECKED = b" check"  # behind the proof in a response: the holder wants to know whether it was read
FAREWELL = b"bye"
LINE_HEADER = b"emceepee-line"  # the caller's connection, as a `ClientLine`

_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"content-length", b"expect", b"http2-settings", b"keep-alive", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade", HOP_HEADER),
    }
)
# Who calls is in the signature, so that no credential has to leave the replica that checked it. And a response comes
# as it is, because it is not looked into.
_NOT_PASSED_ON = _HOP_BY_HOP | {b"authorization", b"proxy-authorization", b"cookie", b"accept-encoding", LINE_HEADER}
_NOT_SIGNED = frozenset({HOP_HEADER, b"content-length"})  # besides them, the holder gets what was passed on


def request_target(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    return b"%b?%b" % (path, query) if query else path


def passed_on(headers: Iterable[Header]) -> bytes:
    """The lines of a caller's headers that the holder gets."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers if pair[0] not in _NOT_PASSED_ON])


def signed(headers: Iterable[Header]) -> bytes:
    """The same lines, as the holder sees them."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers if pair[0] not in _NOT_SIGNED])


def passed_back(headers: Iterable[Header]) -> list[Header]:
    """The headers of a response that the caller gets; its length is that of what is written."""
    return [pair for pair in headers if pair[0] == b"content-length" or pair[0] not in _HOP_BY_HOP]


def settlement(news: News, *, is_farewell: bool = False) -> bytes:
    """What became of responses; after a farewell all others were read."""
    numbers = (" ".join(map(str, some)).encode() for some in news)
    return b"\n".join((*numbers, FAREWELL if is_farewell else b""))


def parse_settlement(body: bytes) -> tuple[News, bool]:
    *numbers, farewell = body.split(b"\n")
    return News(*(tuple(map(int, some.split())) for some in numbers)), farewell == FAREWELL


def proof_in(headers: Iterable[Header]) -> bytes | None:
    """What a response says of who wrote it."""
    for name, value in headers:
        if name == HOP_HEADER:
            return value.removesuffix(CHECKED)
    return None


def wants_to_know(headers: Iterable[Header]) -> bool:
    """Whether the holder keeps something until the response was read."""
    return any(name == HOP_HEADER and value.endswith(CHECKED) for name, value in headers)

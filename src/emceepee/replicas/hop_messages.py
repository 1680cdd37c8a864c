"""The HTTP form of a hop, which both sides must write and read in the same way."""

from collections.abc import Iterable
from dataclasses import dataclass

from emceepee.replicas.delivery_reports import DeliveryReport
from emceepee.replicas.signature import HOP_HEADER
from emceepee.web.asgi import Header, Scope

SETTLE_PATH = b"/replica/settle"
NOT_HELD_STATUS = 421  # Misdirected Request
LEAVING_STATUS = 503  # of a stopping replica, before it closes a connection
WHOLE, FRAMED = b"whole", b"framed"  # the form of the body after its proof
CHECK = b"check"  # the holder needs to know whether the response was read
SHORT_BYTES = 16 << 10  # of a body; a larger body comes in frames, whose tags are cheaper to compute
LENGTH_HEADER = b"emceepee-length"  # the caller's Content-Length, if the body comes in frames
FAREWELL = b"bye"
CONTENT_LENGTH = b"content-length"
LINE_HEADER = b"emceepee-line"  # the caller's connection, as a `ClientLine`

_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"content-length", b"expect", b"http2-settings", b"keep-alive", b"proxy-connection"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade", HOP_HEADER, LENGTH_HEADER),
    }
)
# The signature names the caller, so that no credential leaves the replica that checked it. A response is forwarded
# unchanged, because it is not inspected.
_NOT_PASSED_ON = _HOP_BY_HOP | {
    b"authorization",
    b"proxy-authorization",
    b"cookie",
    b"accept-encoding",
    LINE_HEADER,
}
_NOT_SIGNED = frozenset({HOP_HEADER, b"content-length"})  # the holder also gets these, but they were not forwarded


def request_target(scope: Scope) -> bytes:
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string", b"")
    return b"%b?%b" % (path, query) if query else path


def passed_on(headers: Iterable[Header]) -> bytes:
    """Return the lines of a caller's headers that are forwarded to the holder."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers if pair[0] not in _NOT_PASSED_ON])


def signed(headers: Iterable[Header]) -> bytes:
    """Return the same lines from the headers that the holder received."""
    return b"".join([b"%b: %b\r\n" % pair for pair in headers if pair[0] not in _NOT_SIGNED])


def passed_back(headers: Iterable[Header]) -> list[Header]:
    """Return the response headers for the caller. The length is that of the written body."""
    return [pair for pair in headers if pair[0] == CONTENT_LENGTH or pair[0] not in _HOP_BY_HOP]


def response_head(status: int, headers: Iterable[Header]) -> bytes:
    """Return the head that a content proof covers: all that the caller receives. `headers` come from `passed_back`."""
    return b"%d\r\n%b" % (status, b"".join([b"%b: %b\r\n" % pair for pair in headers]))


def settlement(news: DeliveryReport, *, is_farewell: bool = False) -> bytes:
    """Encode the outcome of responses; after a farewell, all others count as read."""
    numbers = (" ".join(map(str, some)).encode() for some in news)
    return b"\n".join((*numbers, FAREWELL if is_farewell else b""))


def parse_settlement(body: bytes) -> tuple[DeliveryReport, bool]:
    *numbers, farewell = body.split(b"\n")
    return DeliveryReport(*(tuple(map(int, some.split())) for some in numbers)), farewell == FAREWELL


@dataclass(frozen=True, slots=True)
class ReceivedProof:
    """The header with which a response proves its author and its content."""

    kind: bytes
    """The form of the body: `WHOLE` or `FRAMED`."""
    mac: bytes
    is_checked: bool
    """Whether the holder stores something until the response is read."""


def proof_value(kind: bytes, mac: bytes, *, is_checked: bool) -> bytes:
    """Encode a proof for `proof_in`."""
    value = b"%b %b" % (kind, mac)
    return b"%b %b" % (value, CHECK) if is_checked else value


def marks_of(kind: bytes, *, is_checked: bool) -> bytes:
    """Return the part of the value that a MAC covers."""
    return b"%b %b" % (kind, CHECK) if is_checked else kind


def proof_in(headers: Iterable[Header]) -> ReceivedProof | None:
    """Return the response's proof, or None without such a header. An unreadable header proves nothing."""
    match [value.split(b" ") for name, value in headers if name == HOP_HEADER]:
        case []:
            return None
        case [[kind, mac, *check]] if kind in (WHOLE, FRAMED) and check in ([], [CHECK]):
            return ReceivedProof(kind, mac, is_checked=bool(check))
        case _:
            return ReceivedProof(FRAMED, b"", is_checked=False)  # no MAC is empty

"""How a replica proves that a request comes from another replica, and for which caller.

Everything is in one header:

    emceepee-hop: 1 TARGET SENDER TIME INSTANCE.NUMBER IDENTITY WRITTEN READ MAC

TARGET and SENDER are `slot.epoch`. INSTANCE is the random id of one signer, and NUMBER counts its signatures, so both
together form a nonce, and identify the request afterwards. IDENTITY is what the sender's guard established. WRITTEN
and READ are the numbers of earlier requests whose responses were written to their callers, and have been read. MAC is
an HMAC-SHA256 of all that, of the method, the path with its query, the forwarded headers, and a digest of the body.

With the same header, a response proves that its author has the key, and what it answered: `ResponseProof`.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from secrets import token_hex
from typing import NamedTuple

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.replicas.delivery_reports import NOTHING_TO_REPORT, DeliveryReport
from emceepee.state.replica import Replica

HOP_HEADER = b"emceepee-hop"
VERSION = b"1"
WINDOW_SECONDS = 120  # the allowed difference between two replicas' clocks, and how long a nonce is remembered
NUMBERS_KEPT = 8192  # per signer; a request is rejected if so many later ones have overtaken it
NOTHING = b"-"


class SigningReplica(NamedTuple):
    """The replica that signed. Unlike an address, this distinguishes it from earlier owners of its slot."""

    slot: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SignedMessage:
    """The signed parts besides the header itself."""

    method: bytes
    target: bytes
    """Path and query, as in the request line."""
    headers: bytes
    """The lines of the forwarded headers."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Hop:
    """The content of a valid signature."""

    identity: CallerIdentity
    sender: SigningReplica
    instance: bytes
    number: int
    news: DeliveryReport


class Signer:
    """Signs the requests of one process to others. No two requests get the same number."""

    def __init__(self, key: bytes, instance: str | None = None) -> None:
        self._key = key
        self._instance = (instance or token_hex(8)).encode()
        self._number = 0

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def sign(
        self,
        message: SignedMessage,
        *,
        number: int,
        target: Replica,
        sender: Replica,
        at: int,
        identity: CallerIdentity,
        news: DeliveryReport = NOTHING_TO_REPORT,
    ) -> bytes:
        """Return the header's value. `at` is in seconds since the epoch. Unread responses are not included."""
        fields = b"%b %d.%d %d.%d %d %b.%d %b %b %b" % (
            VERSION,
            target.slot,
            target.epoch,
            sender.slot,
            sender.epoch,
            at,
            self._instance,
            number,
            _encode_identity(identity),
            _encode_numbers(news.written),
            _encode_numbers(news.read),
        )
        return b"%b %b" % (fields, _mac(self._key, fields, message))

    def proof(self, number: int) -> "ResponseProof":
        """Return the proof that the response to request `number` must show."""
        return ResponseProof(self._key, self._instance, number)


class Verifier:
    """Verifies requests that other replicas have signed. Each signature is valid once."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._seen: dict[bytes, _Numbers] = {}

    def verify(self, value: bytes, message: SignedMessage, *, own: Replica, now: float) -> Hop | None:
        """Return the hop, or None if it was not signed for this replica, is not current, or was seen before."""
        fields, _, mac = value.rpartition(b" ")
        if not hmac.compare_digest(mac, _mac(self._key, fields, message)):
            return None
        version, *parts = fields.split(b" ")
        if version != VERSION:  # the replica that wrote it is newer
            return None
        target, sender, at, nonce, identity, written, read = parts
        if target != b"%d.%d" % (own.slot, own.epoch) or abs(now - int(at)) > WINDOW_SECONDS:
            return None
        instance, _, number = nonce.partition(b".")
        if not self._take(instance, int(number), now):
            return None
        slot, _, epoch = sender.partition(b".")
        news = DeliveryReport(_decode_numbers(written), _decode_numbers(read))
        return Hop(_decode_identity(identity), SigningReplica(int(slot), int(epoch)), instance, int(number), news)

    def proof(self, hop: Hop) -> "ResponseProof":
        return ResponseProof(self._key, hop.instance, hop.number)

    def _take(self, instance: bytes, number: int, now: float) -> bool:
        numbers = self._seen.get(instance)
        if numbers is None:
            # A signer that was silent for so long has no signatures left that are still valid.
            self._seen = {name: kept for name, kept in self._seen.items() if now - kept.at <= 2 * WINDOW_SECONDS}
            numbers = self._seen[instance] = _Numbers()
        numbers.at = now
        return numbers.take(number)


class ResponseProof:
    """The MACs of the response to one request, as both sides compute them. They fit no other response."""

    __slots__ = ("_key", "_name")

    def __init__(self, key: bytes, instance: bytes, number: int) -> None:
        self._key, self._name = key, b"%b.%d" % (instance, number)

    def of_content(self, marks: bytes, head: bytes, body: bytes = b"") -> bytes:
        """`marks` specify how to read the rest of the response. `head` is its status and headers."""
        # The digest has a fixed length, so no part of the head can be mistaken for the body.
        return self._mac(b"response %b %b\n%b\n%b" % (self._name, marks, head, sha256(body).digest()))

    def frame_key(self) -> bytes:
        return hmac.digest(self._key, b"frames %b" % self._name, "sha256")

    def _mac(self, message: bytes) -> bytes:
        return hmac.digest(self._key, message, "sha256").hex().encode()


class _Numbers:
    """The request numbers received from one signer. They grow, but requests may overtake each other."""

    __slots__ = ("_newest", "_oldest", "_taken", "at")

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._newest = self._oldest = 0
        self.at = 0.0

    def take(self, number: int) -> bool:
        """Return whether the number has not been seen before, as far as is known."""
        if number <= self._oldest or number in self._taken:
            return False
        self._taken.add(number)
        self._newest = max(self._newest, number)
        if len(self._taken) > NUMBERS_KEPT:
            self._oldest = self._newest - NUMBERS_KEPT // 2
            self._taken = {one for one in self._taken if one > self._oldest}
        return True


def _mac(key: bytes, fields: bytes, message: SignedMessage) -> bytes:
    """Compute the MAC of unambiguous parts: only the headers have line breaks, and they end with an empty line."""
    body = sha256(message.body).digest()
    whole = b"%b\n%b %b\n%b\r\n%b" % (fields, message.method, message.target, message.headers, body)
    return hmac.digest(key, whole, "sha256").hex().encode()


def _encode_numbers(numbers: tuple[int, ...]) -> bytes:
    return ",".join(map(str, numbers)).encode() or NOTHING


def _decode_numbers(block: bytes) -> tuple[int, ...]:
    return () if block == NOTHING else tuple(map(int, block.split(b",")))


@lru_cache(maxsize=1024)  # a caller's identity repeats in every request
def _encode_identity(identity: CallerIdentity) -> bytes:
    flags = identity.is_proven | identity.is_remote << 1 | identity.is_page << 2
    return b"%d:%b" % (flags, urlsafe_b64encode(identity.principal.encode("utf-8", "surrogatepass")))


@lru_cache(maxsize=1024)
def _decode_identity(block: bytes) -> CallerIdentity:
    flags, _, principal = block.partition(b":")
    return CallerIdentity(
        urlsafe_b64decode(principal).decode("utf-8", "surrogatepass"),
        is_proven=bool(int(flags) & 1),
        is_remote=bool(int(flags) & 2),
        is_page=bool(int(flags) & 4),
    )

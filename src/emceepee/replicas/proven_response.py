"""A response between replicas: the sender proves it, and the receiver returns only verified content."""

import hmac
from collections.abc import Callable

from emceepee.backends.http1.http_failures import ResponseTooLarge
from emceepee.backends.http1.response import HttpResponse
from emceepee.replicas.hop_messages import (
    CONTENT_LENGTH,
    FRAMED,
    LENGTH_HEADER,
    SHORT_BYTES,
    WHOLE,
    marks_of,
    passed_back,
    proof_in,
    proof_value,
    response_head,
)
from emceepee.replicas.inbound_hops import HopExchange
from emceepee.replicas.response_frames import FrameReader, FrameWriter, ResponseChanged, framed_length
from emceepee.replicas.signature import HOP_HEADER, ResponseProof
from emceepee.web.asgi import Header, Send
from emceepee.wire.json_types import JsonObject


class ProvenResponse:
    """Has the interface of `HttpResponse`. `headers` are the headers for the caller."""

    __slots__ = (
        "_body",
        "_has_body",
        "_on_changed",
        "_proof",
        "_reader",
        "_response",
        "headers",
        "is_checked",
        "is_proven",
    )

    def __init__(
        self, response: HttpResponse, proof: ResponseProof, on_changed: Callable[[str], None], *, has_body: bool = True
    ) -> None:
        """`on_changed` receives the problem, in addition to the error that the reader receives."""
        self._response, self._proof, self._on_changed, self._has_body = response, proof, on_changed, has_body
        self._reader: FrameReader | None = None
        self._body: bytes | None = None  # of a response that arrived whole
        self.headers: list[Header] = []
        self.is_proven = self.is_checked = False

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def content_type(self) -> str:
        return self._response.content_type

    @property
    def length(self) -> int | None:
        """The length of the body, if the response states it."""
        return next((int(value) for name, value in self.headers if name == CONTENT_LENGTH), None)

    async def wait_for_head(self) -> None:
        """Wait for the head, once. Afterwards, `is_proven` is False if the response is not from a replica at all.

        Raises:
            ResponseChanged: it claims to come from a replica, but was changed on the way.
            HttpFailure: it did not arrive.
        """
        response = self._response
        await response.wait_for_head()
        if (given := proof_in(response.raw_headers)) is None:
            return
        self.is_checked = given.is_checked
        if given.kind == FRAMED:
            framed = [pair for pair in response.raw_headers if pair[0] != CONTENT_LENGTH]
            self.headers = passed_back(
                (CONTENT_LENGTH if name == LENGTH_HEADER else name, value) for name, value in framed
            )
        else:
            self.headers = passed_back(response.raw_headers)
        if given.kind == WHOLE:
            self._body = await response.read(SHORT_BYTES) if self._has_body else b""
        head = response_head(response.status, self.headers)
        mac = self._proof.of_content(marks_of(given.kind, is_checked=given.is_checked), head, self._body or b"")
        if not hmac.compare_digest(given.mac, mac):
            raise self._changed(ResponseChanged("its proof is not that of this response"))
        if given.kind == FRAMED:
            self._reader = FrameReader(self._proof.frame_key())
        self.is_proven = True

    async def read(self, largest: int) -> bytes:
        """Return the body, or the rest that was not read yet. Raises: HttpFailure."""
        if self._body is not None:
            body, self._body = self._body, b""
            if len(body) > largest:
                raise ResponseTooLarge(largest)
            return body
        parts, size = [], 0
        while part := await self.readany():
            parts.append(part)
            size += len(part)
            if size > largest:
                self.close()
                raise ResponseTooLarge(largest)
        return b"".join(parts)

    async def readany(self) -> bytes:
        """Return verified data that was not read yet; nothing at the end. Raises: HttpFailure."""
        if self._body is not None:
            return await self.read(SHORT_BYTES)
        assert self._reader is not None  # unproven content is never read
        while data := await self._response.readany():
            try:
                proven = self._reader.feed(data)
            except ResponseChanged as error:
                raise self._changed(error) from None
            if proven:
                return proven
        if not self._reader.is_over:
            raise self._changed(ResponseChanged("it was cut"))
        return b""

    def _changed(self, error: ResponseChanged) -> ResponseChanged:
        self.close()
        self._on_changed(str(error))
        return error

    def discard(self) -> None:
        self._response.discard()

    def close(self) -> None:
        self._response.close()


class ProvenAnswer:
    """Proves a short response as a whole, and any other response frame by frame."""

    def __init__(
        self, send: Send, proof: ResponseProof, exchange: HopExchange | None = None, *, has_body: bool = True
    ) -> None:
        self._send, self._proof, self._exchange, self._has_body = send, proof, exchange, has_body
        self.is_begun = False
        self._held: JsonObject | None = None  # the start of the response, until the form of its body is known
        self._frames: FrameWriter | None = None

    async def send(self, message: JsonObject) -> None:
        if not self.is_begun:
            self.is_begun = True
            # A body of known length follows at once. The head of a stream must not wait for its first event.
            if any(name == CONTENT_LENGTH for name, _ in message["headers"]):
                self._held = message
            else:
                await self._begin(message, FRAMED)
            return
        start, self._held = self._held, None
        body, is_last = message.get("body", b""), not message.get("more_body")
        if start is not None and (not self._has_body or (is_last and len(body) <= SHORT_BYTES)):
            await self._begin(start, WHOLE, body=body if self._has_body else b"")
        elif start is not None:
            await self._begin(start, FRAMED, length=framed_length(len(body)) if is_last else None)
        if self._frames is not None:
            message = {**message, "body": self._frames.write(body, is_last=is_last)}
        await self._send(message)

    async def _begin(self, start: JsonObject, kind: bytes, *, body: bytes = b"", length: int | None = None) -> None:
        """Send the head with its proof. `length` is that of all frames."""
        headers, is_checked = passed_back(start["headers"]), _is_checked(self._exchange)
        head = response_head(start["status"], headers)
        mac = self._proof.of_content(marks_of(kind, is_checked=is_checked), head, body)
        if kind == FRAMED:
            self._frames = FrameWriter(self._proof.frame_key())
            headers = [(LENGTH_HEADER if name == CONTENT_LENGTH else name, value) for name, value in headers]
        if length is not None:
            headers.append((CONTENT_LENGTH, b"%d" % length))
        headers.append((HOP_HEADER, proof_value(kind, mac, is_checked=is_checked)))
        await self._send({**start, "headers": headers})


def _is_checked(exchange: HopExchange | None) -> bool:
    return exchange is not None and exchange.has_reports

"""A response to the replica that forwarded the request: the application's output, with its proof."""

from emceepee.replicas.hop_messages import (
    CONTENT_LENGTH,
    FRAMED,
    LENGTH_HEADER,
    SHORT_BYTES,
    WHOLE,
    marks_of,
    passed_back,
    proof_value,
    response_head,
)
from emceepee.replicas.inbound_hops import HopExchange
from emceepee.replicas.response_frames import FrameWriter, framed_length
from emceepee.replicas.signature import HOP_HEADER, ResponseProof
from emceepee.web.asgi import Send
from emceepee.wire.json_types import JsonObject


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
            # The body of a known length follows at once. A stream's head must not wait for its first event.
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
    return exchange is not None and bool(exchange.reports)

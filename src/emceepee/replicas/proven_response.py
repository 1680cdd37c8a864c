"""The response of another replica. Only verified content is returned."""

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
    response_head,
)
from emceepee.replicas.response_frames import FrameReader, ResponseChanged
from emceepee.replicas.signature import ResponseProof
from emceepee.web.asgi import Header


class ProvenResponse:
    """Is used like `HttpResponse`. `headers` are the headers for its caller."""

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
        """`on_changed` receives the problem, in addition to the error that the reader gets."""
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
            ResponseChanged: it claims to be, and is not as it was written.
            HttpFailure: it did not come.
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

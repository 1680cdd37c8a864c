"""Response bodies in frames. Only a replica can make a frame's tag, so each frame can be forwarded as soon as it is
verified.

frame: LENGTH (4 bytes) TAG (16 bytes) PAYLOAD         the last frame has no payload

A tag is an AES-GCM tag without encrypted data (GMAC), under a key for this response alone, with the frame's number as
its nonce. This prevents changing, omitting, or moving a frame, or copying one from another response. A missing last
frame reveals a truncated body.
"""

from typing import TYPE_CHECKING

from emceepee.backends.http1.http_failures import HttpFailure

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

LENGTH_BYTES, TAG_BYTES, NONCE_BYTES = 4, 16, 12
HEAD_BYTES = LENGTH_BYTES + TAG_BYTES
FRAME_BYTES = 64 << 10  # of payload, at most


class ResponseChanged(HttpFailure):
    """A party without the key has changed, moved, or truncated the response of another replica."""


class FrameWriter:
    def __init__(self, key: bytes) -> None:
        self._cipher, self._number = _cipher(key), 0

    def write(self, data: bytes, *, is_last: bool = False) -> bytes:
        parts: list[bytes | memoryview] = []
        view = memoryview(data)
        for start in range(0, len(data), FRAME_BYTES):
            self._frame(view[start : start + FRAME_BYTES], parts)
        if is_last:
            self._frame(memoryview(b""), parts)
        return b"".join(parts)

    def _frame(self, payload: memoryview, parts: list[bytes | memoryview]) -> None:
        tag = self._cipher.encrypt(self._number.to_bytes(NONCE_BYTES), b"", payload)
        self._number += 1
        parts += (len(payload).to_bytes(LENGTH_BYTES), tag, payload)


class FrameReader:
    """Accepts received data, and returns verified payloads."""

    def __init__(self, key: bytes) -> None:
        self._cipher, self._number = _cipher(key), 0
        self._rest = b""  # of an incomplete frame
        self.is_over = False

    def feed(self, data: bytes) -> bytes:
        """Raises: ResponseChanged."""
        view, payloads = memoryview(data), list[memoryview]()
        while self._rest and len(view):  # at most one frame is copied
            missing = max(HEAD_BYTES, self._size_of(self._rest)) - len(self._rest)
            self._rest += view[:missing]
            view = view[missing:]
            if len(self._rest) == self._size_of(self._rest):
                frame, self._rest = memoryview(self._rest), b""
                payloads.append(self._payload_of(frame))
        while len(view) >= HEAD_BYTES and len(view) >= (size := self._size_of(view)):
            payloads.append(self._payload_of(view[:size]))
            view = view[size:]
        if len(view):
            if self.is_over:
                raise ResponseChanged("something follows the last frame")
            self._size_of(view)  # rejects an impossible frame without waiting for the rest
            self._rest = bytes(view)
        return b"".join(payloads)

    def _size_of(self, start: bytes | memoryview) -> int:
        """Return the size of a frame, or 0 while its head is incomplete."""
        if len(start) < HEAD_BYTES:
            return 0
        size = int.from_bytes(start[:LENGTH_BYTES])
        if size > FRAME_BYTES:
            raise ResponseChanged("there is no such frame")
        return HEAD_BYTES + size

    def _payload_of(self, frame: memoryview) -> memoryview:
        from cryptography.exceptions import InvalidTag

        payload = frame[HEAD_BYTES:]
        try:
            self._cipher.decrypt(self._number.to_bytes(NONCE_BYTES), bytes(frame[LENGTH_BYTES:HEAD_BYTES]), payload)
        except InvalidTag:
            raise ResponseChanged("a frame is not as it was written") from None
        if self.is_over:
            raise ResponseChanged("something follows the last frame")
        self._number += 1
        self.is_over = not len(payload)
        return payload


def framed_length(size: int) -> int:
    """Return the length of a whole body of that size in frames."""
    return size + HEAD_BYTES * (-(-size // FRAME_BYTES) + 1)


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 6 MB, only for processes that forward streams

    return AESGCM(key)

"""Decompresses the bodies of servers that compress although the request asks for no compression."""

import zlib

from emceepee.backends.http1.http_failures import HttpFailure, ResponseTooLarge

INPUT_BYTES, PIECE_BYTES = 64 << 10, 1 << 20  # pieces of a whole body; larger ones would be copied repeatedly
_ZLIB_OR_GZIP = 32 + zlib.MAX_WBITS
_IDENTITY = ("", "identity")
_KNOWN = ("gzip", "x-gzip", "deflate")


class Inflater:
    """Decompresses incoming data with a limit on each output, as protection against decompression bombs."""

    def __init__(self) -> None:
        self._zlib: zlib._Decompress | None = None
        self._rest = b""
        self.may_have_more = False

    def inflate(self, data: bytes, most: int) -> bytes:
        """Return up to `most` bytes. The next call continues with the rest of the input. Raises: HttpFailure."""
        data = self._rest + data
        if self._zlib is None:
            if not data:
                return b""
            # "deflate" includes the two-byte zlib header, but some servers omit it.
            is_bare = data[0] & 0x0F != zlib.DEFLATED and data[0] != 0x1F
            self._zlib = zlib.decompressobj(-zlib.MAX_WBITS if is_bare else _ZLIB_OR_GZIP)
        try:
            inflated = self._zlib.decompress(data, most)
        except zlib.error as error:
            raise HttpFailure(f"the answer is compressed and damaged: {error}") from error
        if self._zlib.unused_data:
            raise HttpFailure("the answer has bytes beyond its compressed part")
        self._rest = self._zlib.unconsumed_tail
        self.may_have_more = len(inflated) == most
        return inflated

    def inflate_all(self, data: bytes, largest: int) -> bytes:
        """Inflate a whole body piece by piece, and stop if it exceeds `largest` bytes. Raises: HttpFailure."""
        pieces, size = [], 0
        for start in range(0, len(data), INPUT_BYTES):
            part = data[start : start + INPUT_BYTES]
            while piece := self.inflate(part, PIECE_BYTES):
                part = b""
                pieces.append(piece)
                size += len(piece)
                if size > largest:
                    raise ResponseTooLarge(largest)
        return b"".join(pieces)

    def finish(self) -> None:
        """Raises: HttpFailure if the body is truncated."""
        if self._zlib is not None and not self._zlib.eof:
            raise HttpFailure("the answer is compressed and cut off")


def inflater_for(coding: str) -> Inflater | None:
    """Raises: HttpFailure."""
    coding = coding.strip().lower()
    if coding in _IDENTITY:
        return None
    if coding not in _KNOWN:
        raise HttpFailure(f"the answer is compressed as {coding[:40]!r}, which was not asked for")
    return Inflater()

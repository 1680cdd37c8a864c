import gzip
import random
import tracemalloc
import zlib
from contextlib import nullcontext

import pytest

from emceepee.backends.http1.http_failures import HttpFailure, ResponseTooLarge
from emceepee.backends.http1.inflater import INPUT_BYTES, Inflater, inflater_for

TEXT = b"hello, " * 1000
PACKED = {
    "gzip": gzip.compress(TEXT),
    "zlib": zlib.compress(TEXT),
    "bare": zlib.compress(TEXT)[2:-4],
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("most", [1, 10, 258, 5000, 1 << 20])
def test_the_inflater_returns_all_output_however_small_its_portions_are(packed: bytes, most: int) -> None:
    inflater, out = Inflater(), b""
    for place in range(0, len(packed), 5):
        out += inflater.inflate(packed[place : place + 5], most)
    while inflater.may_have_more:
        piece = inflater.inflate(b"", most)
        assert len(piece) <= most
        out += piece
    assert out == TEXT
    inflater.finish()


@pytest.mark.parametrize("text", [b"", TEXT, random.Random(1).randbytes(3 << 20), bytes(3 << 20)], ids=len)
def test_the_inflater_returns_a_whole_body_up_to_its_limit(text: bytes) -> None:
    packed = gzip.compress(text, 1)
    inflater = Inflater()
    assert inflater.inflate_all(packed, len(text)) == text
    inflater.finish()
    with pytest.raises(ResponseTooLarge) if text else nullcontext():
        Inflater().inflate_all(packed, len(text) - 1)


def test_a_decompression_bomb_uses_little_more_memory_than_the_limit() -> None:
    limit, packed = 16 << 20, gzip.compress(bytes(64 << 20), 1)
    tracemalloc.start()
    with pytest.raises(ResponseTooLarge):
        Inflater().inflate_all(packed, limit)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.25 * limit


def test_trailing_bytes_and_a_cut_off_body_are_rejected_when_inflating_all_at_once() -> None:
    with pytest.raises(HttpFailure, match="beyond"):
        Inflater().inflate_all(PACKED["gzip"] + bytes(INPUT_BYTES), 1 << 20)
    inflater = Inflater()
    assert inflater.inflate_all(PACKED["gzip"][:-9], 1 << 20) is not None
    with pytest.raises(HttpFailure, match="cut off"):
        inflater.finish()


def test_a_body_that_is_not_really_compressed_is_rejected() -> None:
    for data in (b"\x1f\x8bxxxxxxxxxxxx", b"\x78\x9cxxxx", b'{"jsonrpc":"2.0","id":1,"result":{}}'):
        inflater = Inflater()
        with pytest.raises(HttpFailure, match=r"damaged|cut off"):  # noqa: PT012  # whichever notices
            inflater.inflate(data, 100)
            inflater.finish()


def test_bytes_after_the_compressed_data_are_rejected() -> None:
    with pytest.raises(HttpFailure, match="beyond"):
        Inflater().inflate(PACKED["gzip"] + b"x", 1 << 20)


def test_an_empty_body_counts_as_completely_inflated() -> None:
    inflater = Inflater()
    assert inflater.inflate(b"", 100) == b""
    inflater.finish()


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_an_uncompressed_body_needs_no_inflater(coding: str) -> None:
    assert inflater_for(coding) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_an_unsupported_content_encoding_is_named_in_the_error(coding: str) -> None:
    with pytest.raises(HttpFailure, match=coding):
        inflater_for(coding)

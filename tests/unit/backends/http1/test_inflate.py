import gzip
import zlib

import pytest

from emceepee.backends.http1.errors import HttpFailure
from emceepee.backends.http1.inflate import Inflater, inflater_for

TEXT = b"hello, " * 1000
PACKED = {
    "gzip": gzip.compress(TEXT),
    "zlib": zlib.compress(TEXT),
    "bare": zlib.compress(TEXT)[2:-4],
}


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("most", [1, 10, 258, 5000, 1 << 20])
def test_everything_comes_out_however_little_is_asked_for_at_once(packed: bytes, most: int) -> None:
    inflater, out = Inflater(), b""
    for place in range(0, len(packed), 5):
        out += inflater.inflate(packed[place : place + 5], most)
    while inflater.may_have_more:
        piece = inflater.inflate(b"", most)
        assert len(piece) <= most
        out += piece
    assert out == TEXT
    inflater.finish()


def test_a_body_that_is_not_compressed_after_all_is_refused() -> None:
    for data in (b"\x1f\x8bxxxxxxxxxxxx", b"\x78\x9cxxxx", b'{"jsonrpc":"2.0","id":1,"result":{}}'):
        inflater = Inflater()
        with pytest.raises(HttpFailure, match=r"damaged|cut off"):  # noqa: PT012  # whichever notices
            inflater.inflate(data, 100)
            inflater.finish()


def test_bytes_beyond_the_compressed_part_are_refused() -> None:
    with pytest.raises(HttpFailure, match="beyond"):
        Inflater().inflate(PACKED["gzip"] + b"x", 1 << 20)


def test_an_empty_body_is_whole() -> None:
    inflater = Inflater()
    assert inflater.inflate(b"", 100) == b""
    inflater.finish()


@pytest.mark.parametrize("coding", ["", "identity", " Identity "])
def test_what_is_not_compressed_needs_no_inflater(coding: str) -> None:
    assert inflater_for(coding) is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip"])
def test_other_codings_are_named(coding: str) -> None:
    with pytest.raises(HttpFailure, match=coding):
        inflater_for(coding)

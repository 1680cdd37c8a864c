import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.wire.line_splitter import ENDS_KEPT, LineSplitter, TooLongLine
from support.chunks import chunked

LONGEST = 8


def lines_of(chunks: list[bytes]) -> list[bytes | None]:
    splitter = LineSplitter(LONGEST)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [None if isinstance(line, TooLongLine) else line for line in [*lines, splitter.rest()]]


def expected(data: bytes) -> list[bytes | None]:
    return [None if len(line) > LONGEST else line.removesuffix(b"\r") for line in data.split(b"\n")]


BYTES = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"bcd", b"\xe2\x80\xa8", b"0123456789"])).map(b"".join)


@given(BYTES, st.lists(st.integers(min_value=0, max_value=200)))
def test_split_lines_do_not_depend_on_how_the_bytes_are_split(data: bytes, cuts: list[int]) -> None:
    assert lines_of(chunked(data, cuts)) == expected(data)


def test_only_a_line_feed_ends_a_line_and_a_preceding_carriage_return_is_removed() -> None:
    assert lines_of([b"a\r\nb\nc\rd\n"]) == [b"a", b"b", b"c\rd", b""]


def test_a_line_of_the_maximum_length_is_returned_and_a_longer_one_is_not() -> None:
    assert lines_of([b"12345678\n123456789\nok\n"]) == [b"12345678", None, b"ok", b""]


def test_a_line_of_the_maximum_length_is_returned_even_if_its_end_arrives_later() -> None:
    assert lines_of([b"12345678", b"\n", b"1234567", b"89", b"\n"]) == [b"12345678", None, b""]


def test_a_line_that_is_too_long_is_not_buffered() -> None:
    splitter = LineSplitter(LONGEST)
    for _ in range(1000):
        assert list(splitter.feed(b"x" * LONGEST)) == []
    assert sum(map(len, splitter._parts)) <= LONGEST
    ends = b"x" * ENDS_KEPT
    assert list(splitter.feed(b"\nnext\n")) == [TooLongLine(ends[:LONGEST] + b"x" * LONGEST, ends), b"next"]


def test_a_line_that_is_too_long_is_never_joined() -> None:
    longest = 8 << 20
    chunk = bytes(64 << 10)
    tracemalloc.start()
    splitter = LineSplitter(longest)
    for _ in range(2 * longest // len(chunk)):
        assert list(splitter.feed(bytes(bytearray(chunk)))) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.25 * longest


def test_the_bytes_after_the_last_line_end_are_returned_once_as_the_rest() -> None:
    splitter = LineSplitter(LONGEST)
    assert list(splitter.feed(b"a\nrest")) == [b"a"]
    assert splitter.rest() == b"rest"
    assert splitter.rest() == b""


@given(st.binary(min_size=1, max_size=3000).filter(lambda data: b"\n" not in data), st.lists(st.integers(0, 3000)))
def test_head_and_tail_of_a_line_that_is_too_long_are_stored(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter(0)
    [line] = [line for chunk in chunked(data + b"\n", cuts) for line in splitter.feed(chunk)]
    assert isinstance(line, TooLongLine)
    assert data.startswith(line.head)
    assert data.endswith(line.tail)
    assert len(line.tail) == min(len(data), ENDS_KEPT)


FILLER = b'"result":{"content":[{"id":99,"text":"' + b"x" * 5000 + b'","id":98}],"id":97}'


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"jsonrpc":"2.0","id":7,' + FILLER + b"}", 7),
        (b'{ "id" : 7 , "jsonrpc":"2.0",' + FILLER + b"}", 7),
        (b"{" + FILLER + b',"jsonrpc":"2.0","id":7}', 7),
        (b"{" + FILLER + b', "id": 7, "jsonrpc": "2.0" } \r', 7),
        (b'{"jsonrpc":"2.0",' + FILLER + b',"id":"seven"}', "seven"),
        (b'{"jsonrpc":"2.0","id":null,' + FILLER + b"}", None),
        (b'{"jsonrpc":"2.0",' + FILLER + b"}", None),
        (b'{"jsonrpc":"2.0","method":"x","params":{' + FILLER + b"}}", None),
        (b"x" * 5000, None),
    ],
)
def test_the_message_id_of_a_line_that_is_too_long_is_found_at_either_end(line: bytes, key: object) -> None:
    splitter = LineSplitter(100)
    [found] = splitter.feed(line + b"\n")
    assert isinstance(found, TooLongLine)
    assert found.message_id == key
    assert found.may_be_an_answer == (line.startswith(b"{") and b"method" not in line)

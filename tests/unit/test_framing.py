from hypothesis import given
from hypothesis import strategies as st

from emceepee.framing import LineSplitter
from support.chunks import chunked

LONGEST = 8


def lines_of(chunks: list[bytes]) -> list[bytes | None]:
    splitter = LineSplitter(LONGEST)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    return [*lines, splitter.rest()]


def expected(data: bytes) -> list[bytes | None]:
    return [None if len(line) > LONGEST else line.removesuffix(b"\r") for line in data.split(b"\n")]


BYTES = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b"bcd", b"\xe2\x80\xa8", b"0123456789"])).map(b"".join)


@given(BYTES, st.lists(st.integers(min_value=0, max_value=200)))
def test_the_lines_do_not_depend_on_how_the_bytes_were_cut(data: bytes, cuts: list[int]) -> None:
    assert lines_of(chunked(data, cuts)) == expected(data)


def test_only_a_line_feed_ends_a_line_and_the_return_before_it_goes() -> None:
    assert lines_of([b"a\r\nb\nc\rd\n"]) == [b"a", b"b", b"c\rd", b""]


def test_a_line_as_long_as_allowed_comes_out_and_a_longer_one_as_none() -> None:
    assert lines_of([b"12345678\n123456789\nok\n"]) == [b"12345678", None, b"ok", b""]


def test_a_line_as_long_as_allowed_comes_out_also_if_its_end_comes_later() -> None:
    assert lines_of([b"12345678", b"\n", b"1234567", b"89", b"\n"]) == [b"12345678", None, b""]


def test_a_line_that_is_too_long_is_not_kept_while_it_goes_on() -> None:
    splitter = LineSplitter(LONGEST)
    for _ in range(1000):
        assert list(splitter.feed(b"x" * LONGEST)) == []
    assert sum(map(len, splitter._parts)) <= LONGEST
    assert list(splitter.feed(b"\nnext\n")) == [None, b"next"]


def test_what_follows_the_last_line_end_is_the_rest_and_is_given_once() -> None:
    splitter = LineSplitter(LONGEST)
    assert list(splitter.feed(b"a\nrest")) == [b"a"]
    assert splitter.rest() == b"rest"
    assert splitter.rest() == b""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.backends.http.event_stream import Cursor, EventParser, ServerSentEvent
from emceepee.backends.http1.http_failures import ResponseTooLarge
from support.chunks import chunked

LARGEST = 1 << 22
PIECES = [
    b"\n",
    b"\r",
    b"\r\n",
    b"data: x",
    b"data:",
    b"event: e",
    b"id: 7",
    b"id",
    b": note",
    b"retry: 250",
    b"\xe2\x80\xa8",
]


def parsed(*chunks: bytes, cursor: Cursor | None = None) -> list[tuple[str, bytes]]:
    parser = EventParser(cursor or Cursor(), largest=LARGEST)
    return [(event.name, event.data) for chunk in chunks for event in parser.feed(chunk)]


@given(st.lists(st.sampled_from(PIECES)).map(b"".join), st.lists(st.integers(min_value=0, max_value=1000)))
def test_sse_parsing_does_not_depend_on_how_the_bytes_are_split(data: bytes, cuts: list[int]) -> None:
    whole, pieces, single = Cursor(), Cursor(), Cursor()
    expected = parsed(data, cursor=whole)
    assert parsed(*chunked(data, cuts), cursor=pieces) == expected
    assert parsed(*(data[place : place + 1] for place in range(len(data))), cursor=single) == expected
    assert whole == pieces == single


@given(st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_sse_parsing_does_not_depend_on_the_line_ending(data: bytes) -> None:
    plain = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    expected = parsed(plain)
    assert parsed(plain.replace(b"\n", b"\r\n")) == expected
    assert parsed(plain.replace(b"\n", b"\r")) == expected
    assert parsed(data) == expected


def test_an_sse_event_is_complete_only_after_its_empty_line() -> None:
    parser = EventParser(Cursor(), largest=LARGEST)
    assert list(parser.feed(b'data: {"a":1}\n')) == []
    assert list(parser.feed(b"\n")) == [ServerSentEvent("message", b'{"a":1}')]


def test_a_bare_line_feed_after_a_split_line_ending_still_completes_the_sse_event() -> None:
    assert parsed(b"data: x\r", b"\n", b"\n") == [("message", b"x")]


def test_several_data_lines_form_one_sse_event_joined_by_line_feeds() -> None:
    assert parsed(b"data: a\ndata:b\ndata:  c\ndata\n\n") == [("message", b"a\nb\n c\n")]


def test_an_sse_event_name_applies_only_to_its_own_event() -> None:
    assert parsed(b"event: endpoint\ndata: /x\n\ndata: y\n\n") == [("endpoint", b"/x"), ("message", b"y")]


def test_a_unicode_line_separator_inside_an_sse_field_does_not_end_the_line() -> None:
    text = 'data: {"a":"x\u2028y\u2029z\x0b\x0c\x85"}'.encode()
    assert parsed(text + b"\n\n") == [("message", text.removeprefix(b"data: "))]


def test_sse_comments_and_unknown_fields_are_ignored() -> None:
    assert parsed(b": keep-alive\n\ncolor: red\n:\ndata: x\n\n") == [("message", b"x")]


def test_an_sse_event_without_data_only_updates_the_cursor() -> None:
    cursor = Cursor()
    assert parsed(b"id: 41\ndata:\n\nid: 42\nretry: 1500\n\n", cursor=cursor) == []
    assert cursor == Cursor(last_id="42", retry=1.5)


def test_the_last_event_id_persists_across_events_and_an_id_with_a_null_byte_is_ignored() -> None:
    cursor = Cursor()
    parsed(b"id: a\xc3\xa4\ndata: x\n\ndata: y\n\nid: b\0\n\n", cursor=cursor)
    assert cursor.last_id == "aä"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_an_sse_event_id_takes_effect_when_the_event_is_complete(line_end: bytes) -> None:
    first, second = b"id: 1\ndata: x\n\n", b"event: message\nid: 2\nretry: 5\ndata: y\n\n"
    first, second = (part.replace(b"\n", line_end) for part in (first, second))
    whole = len(second) - (len(line_end) == 2)  # the CR of a CRLF ends the line
    for cut in range(len(second) + 1):
        cursor = Cursor()
        events = parsed(first, second[:cut], cursor=cursor)
        assert (len(events), cursor.last_id) == ((2, "2") if cut >= whole else (1, "1"))


def test_an_empty_sse_id_clears_the_last_event_id() -> None:
    cursor = Cursor()
    parsed(b"id: 1\ndata: x\n\nid:\ndata: y\n\n", cursor=cursor)
    assert cursor.last_id is None


def test_an_invalid_sse_retry_value_is_ignored() -> None:
    cursor = Cursor()
    for value in (b"soon", b"-1", b"1.5", b"", "٣".encode(), b"9" * 400, b"9" * 5000):
        assert parsed(b"retry: " + value + b"\ndata: x\n\n", cursor=cursor) == [("message", b"x")]
    assert cursor.retry == 1.0


def test_an_incomplete_sse_event_is_not_delivered() -> None:
    assert parsed(b"data: a\n\ndata: b\n") == [("message", b"a")]


def test_a_long_sse_event_in_many_chunks_is_parsed_whole() -> None:
    chunks = [b"data: ", *([b"x" * 1000] * 2000), b"\n\n"]
    assert parsed(*chunks) == [("message", b"x" * 2_000_000)]


def is_taken(parser: EventParser, chunk: bytes) -> bool:
    """Return whether the parser accepts more data of an incomplete event."""
    try:
        assert list(parser.feed(chunk)) == []
    except ResponseTooLarge:
        return False
    return True


@pytest.mark.parametrize("endless", [b"x" * 100, b"data: xxxxxxxxxx\n", b"data\n"])
def test_an_endless_sse_event_is_rejected_when_it_exceeds_the_limit(endless: bytes) -> None:
    parser = EventParser(Cursor(), largest=1000)
    assert list(parser.feed(b"data: whole\n\ndata: ")) == [ServerSentEvent("message", b"whole")]
    taken = itertools.takewhile(lambda _: is_taken(parser, endless), itertools.count(1))
    assert 500 < sum(1 for _ in taken) * len(endless) <= 1000


def test_many_small_sse_events_do_not_count_as_one_large_event() -> None:
    parser = EventParser(Cursor(), largest=100)
    for _ in range(1000):
        assert len(list(parser.feed(b": a comment\ndata: 12345678\n\n"))) == 1

"""What goes over a hop, and what does not."""

from emceepee.replicas.settlement import MOST_PER_REQUEST, NO_NEWS, News, Unsettled
from emceepee.replicas.wire import (
    parse_settlement,
    passed_back,
    passed_on,
    proof_in,
    request_target,
    settlement,
    signed,
    wants_to_know,
)

HOST, LENGTH = (b"host", b"here"), (b"content-length", b"2")


def test_a_request_loses_what_is_between_two_hops_and_every_credential() -> None:
    dropped = [
        *((name, b"x") for name in (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")),
        *((name, b"x") for name in (b"expect", b"authorization", b"cookie", b"emceepee-hop", b"accept-encoding")),
        LENGTH,
    ]
    assert passed_on([HOST, *dropped, (b"x", b"1"), (b"x", b"2")]) == b"host: here\r\nx: 1\r\nx: 2\r\n"


def test_both_sides_sign_the_same_lines() -> None:
    caller = [HOST, (b"cookie", b"c"), (b"x", b""), LENGTH]
    holder = [HOST, (b"x", b""), (b"emceepee-hop", b"1"), LENGTH]
    assert passed_on(caller) == signed(holder)


def test_a_response_keeps_its_length_and_loses_its_proof() -> None:
    hop = [LENGTH, (b"transfer-encoding", b"chunked"), (b"emceepee-hop", b"1"), (b"set-cookie", b"a"), HOST]
    assert passed_back(hop) == [LENGTH, (b"set-cookie", b"a"), HOST]


def test_a_target_is_what_stood_in_the_request_line() -> None:
    assert request_target({"path": "/a b", "raw_path": b"/a%20b", "query_string": b"x=%20"}) == b"/a%20b?x=%20"
    assert request_target({"path": "/mcp"}) == b"/mcp"


def test_a_response_says_whether_its_reading_matters() -> None:
    assert (proof_in([HOST]), wants_to_know([HOST])) == (None, False)
    plain, checked = (b"emceepee-hop", b"abc"), (b"emceepee-hop", b"abc check")
    assert (proof_in([plain]), wants_to_know([plain])) == (b"abc", False)
    assert (proof_in([checked]), wants_to_know([checked])) == (b"abc", True)


def test_a_settlement_arrives_as_it_was() -> None:
    news = News(written=(4,), read=(1, 2), unread=(3,))
    assert parse_settlement(settlement(news)) == (news, False)
    assert parse_settlement(settlement(NO_NEWS, is_farewell=True)) == (NO_NEWS, True)


def test_of_a_response_one_hears_once_and_only_if_it_was_expected() -> None:
    unsettled = Unsettled()
    unsettled.expect(1)
    assert unsettled.mark(1, was_read=False)
    assert not unsettled.mark(1, was_read=True)
    assert not unsettled.mark(2, was_read=False)
    assert unsettled.take_all() == News(unread=(1,))
    assert not unsettled.has_news


def test_no_more_rides_on_a_request_than_fits() -> None:
    unsettled = Unsettled()
    unsettled.put_back(News(read=tuple(range(MOST_PER_REQUEST + 5)), unread=(99,)))
    assert unsettled.take_some() == News(read=tuple(range(MOST_PER_REQUEST)))
    assert unsettled.take_some() == News(read=tuple(range(MOST_PER_REQUEST, MOST_PER_REQUEST + 5)))
    assert unsettled.take_some() == NO_NEWS
    assert repr(unsettled) == "<Unsettled open=0 written=0 read=0 unread=1>"


def test_of_a_response_that_was_read_nothing_else_is_told() -> None:
    unsettled = Unsettled()
    unsettled.expect(1)
    assert unsettled.mark_written(1)
    news = unsettled.take_some()
    assert news == News(written=(1,))
    assert unsettled.mark(1, was_read=True)
    unsettled.put_back(news)
    assert not unsettled.mark_written(1)
    assert unsettled.take_all() == News(read=(1,))

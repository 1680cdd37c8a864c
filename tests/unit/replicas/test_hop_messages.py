"""Which headers and messages are forwarded between replicas."""

import pytest

from emceepee.replicas.delivery_reports import MOST_PER_REQUEST, NOTHING_TO_REPORT, DeliveryReport, UnreportedResponses
from emceepee.replicas.hop_messages import (
    FRAMED,
    WHOLE,
    ReceivedProof,
    parse_settlement,
    passed_back,
    passed_on,
    proof_in,
    proof_value,
    request_target,
    response_head,
    settlement,
    signed,
)

HOST, LENGTH = (b"host", b"here"), (b"content-length", b"2")


def test_a_forwarded_request_loses_hop_headers_and_credentials() -> None:
    dropped = [
        *((name, b"x") for name in (b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade")),
        *((name, b"x") for name in (b"expect", b"authorization", b"cookie", b"emceepee-hop", b"accept-encoding")),
        *((name, b"x") for name in (b"emceepee-length", b"emceepee-line")),
        LENGTH,
    ]
    assert passed_on([HOST, *dropped, (b"x", b"1"), (b"x", b"2")]) == b"host: here\r\nx: 1\r\nx: 2\r\n"


def test_both_replicas_sign_the_same_header_lines() -> None:
    caller = [HOST, (b"cookie", b"c"), (b"x", b""), LENGTH]
    holder = [HOST, (b"x", b""), (b"emceepee-hop", b"1"), LENGTH]
    assert passed_on(caller) == signed(holder)


def test_a_forwarded_response_keeps_its_length_and_loses_its_proof() -> None:
    hop = [LENGTH, (b"transfer-encoding", b"chunked"), (b"emceepee-hop", b"1"), (b"set-cookie", b"a"), HOST]
    assert passed_back(hop) == [LENGTH, (b"set-cookie", b"a"), HOST]


def test_the_request_target_is_the_raw_path_with_the_query() -> None:
    assert request_target({"path": "/a b", "raw_path": b"/a%20b", "query_string": b"x=%20"}) == b"/a%20b?x=%20"
    assert request_target({"path": "/mcp"}) == b"/mcp"


@pytest.mark.parametrize("kind", [WHOLE, FRAMED])
@pytest.mark.parametrize("is_checked", [True, False])
def test_a_response_proof_contains_its_kind_and_whether_delivery_is_checked(kind: bytes, is_checked: bool) -> None:
    value = proof_value(kind, b"abc", is_checked=is_checked)
    assert proof_in([HOST, (b"emceepee-hop", value)]) == ReceivedProof(kind, b"abc", is_checked)


def test_a_response_without_the_proof_header_has_no_proof() -> None:
    assert proof_in([HOST]) is None


@pytest.mark.parametrize(
    "values",
    [
        *([b""], [b"whole"], [b"abc"], [b"abc check"], [b"abc whole"], [b"other abc"]),
        *([b"whole abc whole"], [b"whole abc check 1"], [b"whole abc"] * 2),
    ],
)
def test_an_unreadable_response_proof_proves_nothing(values: list[bytes]) -> None:
    found = proof_in([(b"emceepee-hop", value) for value in values])
    assert found is not None
    assert found.mac == b""


def test_the_signed_response_head_is_all_that_its_caller_gets() -> None:
    assert response_head(200, [LENGTH, HOST]) == b"200\r\ncontent-length: 2\r\nhost: here\r\n"


def test_a_settlement_survives_a_round_trip() -> None:
    news = DeliveryReport(written=(4,), read=(1, 2), unread=(3,))
    assert parse_settlement(settlement(news)) == (news, False)
    assert parse_settlement(settlement(NOTHING_TO_REPORT, is_farewell=True)) == (NOTHING_TO_REPORT, True)


def test_each_expected_response_is_reported_once() -> None:
    unsettled = UnreportedResponses()
    unsettled.expect(1)
    assert unsettled.mark(1, was_read=False)
    assert not unsettled.mark(1, was_read=True)
    assert not unsettled.mark(2, was_read=False)
    assert unsettled.take_all() == DeliveryReport(unread=(1,))
    assert not unsettled.has_news


def test_a_request_carries_a_limited_number_of_delivery_reports() -> None:
    unsettled = UnreportedResponses()
    unsettled.put_back(DeliveryReport(read=tuple(range(MOST_PER_REQUEST + 5)), unread=(99,)))
    assert unsettled.take_some() == DeliveryReport(read=tuple(range(MOST_PER_REQUEST)))
    assert unsettled.take_some() == DeliveryReport(read=tuple(range(MOST_PER_REQUEST, MOST_PER_REQUEST + 5)))
    assert unsettled.take_some() == NOTHING_TO_REPORT
    assert repr(unsettled) == "<UnreportedResponses open=0 written=0 read=0 unread=1>"


def test_a_read_response_is_reported_only_as_read() -> None:
    unsettled = UnreportedResponses()
    unsettled.expect(1)
    assert unsettled.mark_written(1)
    news = unsettled.take_some()
    assert news == DeliveryReport(written=(1,))
    assert unsettled.mark(1, was_read=True)
    unsettled.put_back(news)
    assert not unsettled.mark_written(1)
    assert unsettled.take_all() == DeliveryReport(read=(1,))

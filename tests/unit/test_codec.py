import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codec import decode, encode, encode_text

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**40), max_value=10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
CLEAN_JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner)
    ),
    max_leaves=20,
)


@given(CLEAN_JSON)
def test_whatever_is_written_is_read_back_the_same(value: object) -> None:
    assert decode(encode(value)) == value


@given(st.recursive(SCALARS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_whatever_is_written_is_text_that_a_strict_reader_takes(value: object) -> None:
    json.loads(encode(value).decode("utf-8", "strict"), parse_constant=pytest.fail)


@given(st.binary(max_size=200))
def test_any_bytes_are_either_read_or_refused_with_a_value_error(data: bytes) -> None:
    try:
        value = decode(data)
    except ValueError:
        return
    assert decode(encode(value)) == value


def test_written_json_is_compact() -> None:
    assert encode({"a": [1, "x"], "b": None}) == b'{"a":[1,"x"],"b":null}'
    assert encode_text({"a": "ä"}) == '{"a":"ä"}'


def test_a_lone_surrogate_is_read_as_the_replacement_character() -> None:
    assert decode(rb'{"\ud800": "a\udc00b"}') == {REPLACEMENT: f"a{REPLACEMENT}b"}


def test_a_surrogate_pair_is_read_as_its_character() -> None:
    assert decode(rb'["\ud83d\ude00", "\ud800"]') == ["😀", REPLACEMENT]


def test_a_lone_surrogate_is_written_as_the_replacement_character() -> None:
    assert encode({"a\ud800": "\udfffb"}) == f'{{"a{REPLACEMENT}":"{REPLACEMENT}b"}}'.encode()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_that_json_does_not_have_become_null(number: str) -> None:
    assert decode(f'[1, {number}, "{number}"]'.encode()) == [1, None, number]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_have_are_written_as_null(number: float) -> None:
    assert encode([number, 1]) == b"[null,1]"


def test_bytes_that_are_not_utf8_are_replaced_and_the_rest_is_kept() -> None:
    assert decode(b'{"name": "caf\xe9", "n": 1}') == {"name": f"caf{REPLACEMENT}", "n": 1}


@pytest.mark.parametrize("data", [b'{"n":%d}', b'{"n":%d,"bad":"\xff"}'])
def test_an_integer_of_any_size_keeps_every_digit(data: bytes) -> None:
    number = 123456789012345678901234567890123
    assert decode(data % number)["n"] == number
    assert encode({"n": number}) == b'{"n":%d}' % number


@pytest.mark.parametrize("start", [b"", b'["\xff",', b"[NaN,"])
def test_nesting_too_deep_to_hold_is_refused_with_a_value_error(start: bytes) -> None:
    with pytest.raises(ValueError, match="deep"):
        decode(start + b"[" * 200_000 + b"]" * 200_000 + (b"]" if start else b""))


@pytest.mark.parametrize("data", [b"", b"{", b"hello", b'{"a" 1}', b"\xff", b"[1,]", b'"a'])
def test_what_is_no_json_is_refused_with_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)

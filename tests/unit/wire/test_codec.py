import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.wire import codec
from emceepee.wire.codec import DEEPEST, MOST_VALUES, Unreadable, decode, encode, encode_text
from support.figures import record_figure

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
def test_every_encoded_json_value_is_decoded_to_the_same_value(value: object) -> None:
    assert decode(encode(value)) == value


@given(st.recursive(SCALARS | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_every_encoded_json_value_is_valid_for_a_strict_parser(value: object) -> None:
    json.loads(encode(value).decode("utf-8", "strict"), parse_constant=pytest.fail)


def nested(depth: int, *, opens: bytes = b"[", closes: bytes = b"]", inner: bytes = b"1") -> bytes:
    return opens * depth + inner + closes * depth


SHAPES = [
    (b"[", b"]", b"1"),
    (b'{"a":', b"}", b"1"),
    (b'{"":', b"}", b"{}"),
    (b"[ ", b" ]", b"[]"),
    (b'[{"a":[],"b\\"]}[{":', b"},[]]", b"null"),
    (b'["]]]]\\\\",', b"]", b'"[[[[[["'),
    (b'{"[":"\\\\","a":', b',"]]]]":"}"}', b"0"),
]


@pytest.mark.parametrize("padding", [0, 100_000, 3_000_000, 5_000_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_json_is_rejected_exactly_when_it_is_nested_deeper_than_the_limit(
    shape: tuple[bytes, bytes, bytes], padding: int
) -> None:
    opens, closes, inner = shape

    def padded(times: int, padding: int) -> bytes:
        deep = nested(times, opens=opens, closes=closes, inner=inner)
        return b'["' + b"{" * padding + b'",' + deep + b"]"

    fits = max(times for times in range(DEEPEST) if _depth(json.loads(padded(times, 0))) <= DEEPEST)
    decode(padded(fits, padding))
    with pytest.raises(Unreadable, match="deeper than 200 levels"):
        decode(padded(fits + 1, padding))


@given(st.lists(st.text('"\\\\[{,a:', max_size=8), max_size=8), st.integers(2, 9))  # an escape has two
def test_characters_outside_json_strings_are_found_window_by_window(texts: list[str], window: int) -> None:
    data = json.dumps([texts, {"".join(texts): texts}]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_WINDOW", window)
        found = b"".join(codec._outside_strings(data, codec._NO_VALUES))
    assert found == b"[[" + b"," * max(len(texts) - 1, 0) + b",{[" + b"," * max(len(texts) - 1, 0)


@pytest.mark.alone
def test_a_long_text_that_looks_like_many_json_values_is_decoded_quickly() -> None:
    result = {"content": [{"type": "text", "text": '["ab",' + '"ab",' * 7_000_000 + "1]"}], "rows": [[]] * 400}
    data = json.dumps(result).encode()
    began = time.process_time()
    decode(data)
    took = time.process_time() - began
    record_figure(f"{len(data) / 1e6:.0f} MB of short texts in a text decoded in {took * 1000:.0f} ms (wanted: 250)")
    assert took < 5 * 0.25


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


@given(CLEAN_JSON, st.integers(min_value=0, max_value=220))
def test_json_depth_is_measured_correctly_beside_any_other_values(beside: object, depth: int) -> None:
    deep: object = beside
    for level in range(depth):
        deep = [beside, deep, "]"] if level % 2 else {"{": deep, "b": beside}
    data = json.dumps(deep).encode()
    if _depth(deep) > DEEPEST:
        with pytest.raises(Unreadable):
            decode(data)
    else:
        assert decode(data) == json.loads(data)


@pytest.mark.parametrize("value", [b"[]", b"{}", b"0", b'"ab"', b'{"a":1}'])
def test_json_with_more_values_than_the_limit_is_rejected(value: bytes) -> None:
    each = value.count(b"{") + value.count(b"[") + 1  # its comma, and its bracket
    count = (MOST_VALUES - 1) // each
    assert len(decode(b"[" + b",".join([value] * count) + b"]")) == count
    with pytest.raises(Unreadable, match="more than 1000000 values"):
        decode(b"[" + b",".join([value] * (3 * count)) + b"]")


def test_commas_and_brackets_inside_a_json_string_are_not_counted_as_values() -> None:
    text = '[1,2,{},\\"]' * 400_000
    assert decode(json.dumps({"text": text}).encode()) == {"text": text}


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_decoded_or_rejected_with_a_value_error(data: bytes) -> None:
    try:
        value = decode(data)
    except ValueError:
        return
    assert decode(encode(value)) == value


def test_encoded_json_is_compact() -> None:
    assert encode({"a": [1, "x"], "b": None}) == b'{"a":[1,"x"],"b":null}'
    assert encode_text({"a": "ä"}) == '{"a":"ä"}'


def test_a_lone_surrogate_is_decoded_as_the_replacement_character() -> None:
    assert decode(rb'{"\ud800": "a\udc00b"}') == {REPLACEMENT: f"a{REPLACEMENT}b"}


def test_a_surrogate_pair_is_decoded_as_its_character() -> None:
    assert decode(rb'["\ud83d\ude00", "\ud800"]') == ["😀", REPLACEMENT]


def test_a_lone_surrogate_is_encoded_as_the_replacement_character() -> None:
    assert encode({"a\ud800": "\udfffb"}) == f'{{"a{REPLACEMENT}":"{REPLACEMENT}b"}}'.encode()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_numbers_outside_json_are_decoded_as_null(number: str) -> None:
    assert decode(f'[1, {number}, "{number}"]'.encode()) == [1, None, number]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_outside_json_are_encoded_as_null(number: float) -> None:
    assert encode([number, 1]) == b"[null,1]"


def test_invalid_utf_8_is_replaced_and_the_rest_of_the_json_is_unchanged() -> None:
    assert decode(b'{"name": "caf\xe9", "n": 1}') == {"name": f"caf{REPLACEMENT}", "n": 1}


@pytest.mark.parametrize("data", [b'{"n":%d}', b'{"n":%d,"bad":"\xff"}'])
def test_an_integer_of_any_size_keeps_every_digit(data: bytes) -> None:
    number = 123456789012345678901234567890123
    assert decode(data % number)["n"] == number
    assert encode({"n": number}) == b'{"n":%d}' % number


@pytest.mark.parametrize("start", [b"", b'["\xff",', b"[NaN,"])
def test_extremely_nested_json_is_rejected_with_a_value_error(start: bytes) -> None:
    with pytest.raises(ValueError, match="deep"):
        decode(start + b"[" * 200_000 + b"]" * 200_000 + (b"]" if start else b""))


@pytest.mark.parametrize("data", [b"", b"{", b"hello", b'{"a" 1}', b"\xff", b"[1,]", b'"a'])
def test_invalid_json_is_rejected_with_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(data)


@pytest.mark.parametrize("odd", [b"NaN", b"-Infinity", rb'"\ud800"', b'"\xff"', rb'"\\\ud800\udc00\udc00"'])
def test_one_odd_value_does_not_slow_down_a_large_json_message_much(odd: bytes) -> None:
    rows = json.dumps([{"row": number, "half": number / 2, "text": "a\n" * 10} for number in range(50_000)]).encode()

    def seconds(data: bytes) -> float:
        began = time.perf_counter()
        decode(data)
        return time.perf_counter() - began

    plain = min(seconds(b"[0," + rows + b"]") for _ in range(3))
    strange = min(seconds(b"[" + odd + b"," + rows + b"]") for _ in range(3))
    record_figure(f"{len(rows) >> 20} MiB with {odd!r}: {strange / plain:.1f} times as long")
    assert strange < plain * 25


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"\ud800\ud800\udc00", f"{REPLACEMENT}\U00010000"),
        (rb"\ud800\udc00\udc00", f"\U00010000{REPLACEMENT}"),
        (rb"\\ud800\udc00", f"\\ud800{REPLACEMENT}"),
        (rb"\\\ud800x\\", f"\\{REPLACEMENT}x\\"),
        (rb"\uD800\n\uDFFF\"", f'{REPLACEMENT}\n{REPLACEMENT}"'),
    ],
)
def test_surrogates_are_distinguished_from_backslashes_and_pairs(text: bytes, read: str) -> None:
    assert decode(b'["' + text + b'"]') == [read]

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codec import encode
from emceepee.tools.outline import is_json, preview_of, shape_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=40,
)


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"a": 1, "b": "x", "c": None, "d": True}, "{a: number, b: string, c: null, d: boolean}"),
        ([{"a": 1}, {"a": 2, "b": "x"}], "[{a: number, b?: string} x2]"),
        ([1, "x", None], "[number | string | null x3]"),
        ({"rows": [[1, 2], []]}, "{rows: [[number] x2]}"),
    ],
)
def test_the_shape_is_a_line(value: object, shape: str) -> None:
    assert shape_of(json.dumps(value).encode(), 200) == shape


def test_a_shape_that_is_too_long_loses_its_depths_first() -> None:
    text = json.dumps({"a": {f"key{number}": {"deep": 1} for number in range(10)}, "b": 1}).encode()
    assert shape_of(text, 40) == "{a: {…}, b: number}"
    assert shape_of(text, 10) == "{a: {…}, …"


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.integers(2, 300))
def test_a_preview_fits_and_is_json(value: object, room: int) -> None:
    text = encode(value)
    preview = preview_of(text, room)
    assert len(encode(preview)) <= max(room, len(encode("…")))
    assert json.loads(encode(preview)) == preview
    if len(text) <= room:
        assert preview == value
    assert len(shape_of(text, room)) <= room


def test_a_preview_says_what_was_left_out() -> None:
    text = encode({"items": [{"id": number} for number in range(1000)], "next": "abc"})
    preview = preview_of(text, 120)
    assert preview["items"][0] == {"id": 0}
    assert preview["items"][-1].endswith(" more")
    assert preview["next"] == "abc"


@pytest.mark.parametrize("text", [b"", b"1", b'"x"', b"{", b"[1,", b"plain", b"[" * 100_000])
def test_what_is_no_object_or_list_is_plain_text(text: bytes) -> None:
    assert not is_json(text)

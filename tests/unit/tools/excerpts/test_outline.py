import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.tools.excerpts.outline import MOST_COUNTED, MOST_NODES, Outline
from emceepee.wire.codec import encode

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
def test_the_shape_of_a_value_is_one_line(value: object, shape: str) -> None:
    assert Outline(json.dumps(value).encode()).shape(200) == shape


def test_a_long_shape_loses_its_nested_parts_first() -> None:
    text = json.dumps({"a": {f"key{number}": {"deep": 1} for number in range(10)}, "b": 1}).encode()
    assert Outline(text).shape(40) == "{a: {…}, b: number}"
    assert Outline(text).shape(10) == "{a: {…}, …"


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.integers(2, 300))
def test_a_preview_fits_its_limit_and_is_valid_json(value: object, room: int) -> None:
    text = encode(value)
    preview = Outline(text).preview(room)
    assert len(encode(preview)) <= max(room, len(encode("…")))
    assert json.loads(encode(preview)) == preview
    if len(text) <= room:
        assert preview == value
    assert len(Outline(text).shape(room)) <= room


def test_a_preview_shows_how_much_was_omitted() -> None:
    text = encode({"items": [{"id": number} for number in range(1000)], "next": "abc"})
    preview = Outline(text).preview(120)
    assert preview["items"][0] == {"id": 0}
    assert preview["items"][-1].endswith(" more")
    assert preview["next"] == "abc"


WIDE = b"{" + b",".join(b'"key%d":1' % number for number in range(50_000)) + b"}"
LONG = b'[{"' + b"k" * 500_000 + b'": ["' + b"\\n" * 500_000 + b'"]}, [' + b"[]," * 300_000 + b"[]]]"


def test_an_outline_counts_omitted_members() -> None:
    assert Outline(WIDE).shape(400).endswith("…")
    assert Outline(WIDE).shape(4000).endswith("key99: number, …}")
    assert Outline(WIDE).preview(200)["…"].endswith(" more keys")
    assert Outline(LONG).shape(400) == f"[{{{'k' * 60}…: [string x1]}} | [[] x300001] x2]"


def test_an_incomplete_count_in_an_outline_is_marked_as_a_minimum() -> None:
    text = b"[" + b"1," * MOST_COUNTED + b"1,1]"
    number = re.fullmatch(r"\[number x(\d+)\+\]", Outline(text).shape(400))
    assert number is not None
    assert int(number[1]) <= MOST_COUNTED + 2
    assert Outline(text).preview(100)[-1].endswith("+ more")


@pytest.mark.parametrize("text", [WIDE, LONG], ids=["wide", "long"])
def test_an_outline_visits_few_values(text: bytes) -> None:
    outline = Outline(text)
    outline.shape(400)
    assert len(encode(outline.preview(2000))) <= 2000
    assert outline.nodes < 2 * MOST_NODES + 400_000


def test_an_outline_stops_at_its_time_limit_and_marks_the_omission() -> None:
    times = iter(range(10**6))
    outline = Outline(WIDE, now=lambda: float(next(times)))
    assert outline.shape(4000).endswith("…}")
    assert outline.preview(3000)["…"].endswith("more keys")
    assert outline.nodes < 25_000  # of 300,000


def test_the_shape_of_a_wide_tree_visits_only_part_of_it() -> None:
    twigs = {f"twig{number}": 1 for number in range(90)}
    text = encode({f"bough{number}": {f"branch{other}": twigs for other in range(90)} for number in range(90)})
    outline = Outline(text)
    assert "…" in outline.shape(100_000)
    assert outline.nodes < 1.1 * MOST_NODES


def test_a_value_that_is_too_deep_is_marked_in_a_preview() -> None:
    deep = b"[" * 250 + b"]" * 250
    assert Outline(b'{"a": %b, "b": 1}' % deep).preview(5000) == "…"
    text = b'{"a": %b, "b": "%b"}' % (deep, b"x" * 9000)
    preview = Outline(text).preview(3000)
    assert preview["a"] == "…"
    assert preview["b"].startswith("xxx")


def test_a_long_text_in_a_preview_is_truncated_between_characters() -> None:
    for room in range(100, 130):
        preview = Outline(encode({"a": '\n"é\\\u0001' * 100})).preview(room)
        assert ('\n"é\\\u0001' * 100).startswith(preview["a"].rstrip("…�"))

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.shapes import LONGEST_SHAPE, MOST_SHAPES, ObservedShapes, shape_of_result
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

ISSUES: JsonObject = {"total": 2, "items": [{"id": 1, "title": "a", "open": True, "note": None}], "rate": 0.5}
SHAPE = "{total: int, items: [{id: int, title: str, open: bool, note: null}], rate: float}"


def test_structured_content_and_json_text_have_a_shape() -> None:
    text = {"content": [{"type": "text", "text": encode_text(ISSUES)}]}
    assert shape_of_result({"structuredContent": ISSUES, "content": []}) == SHAPE
    assert shape_of_result(text) == SHAPE


@pytest.mark.parametrize(
    "content",
    [[], None, "x", [1], [{"type": "text", "text": "plain"}], [{"type": "text", "text": "{not json"}], [{"text": 5}]],
)
def test_a_result_without_json_has_no_shape(content: Any) -> None:
    assert shape_of_result({"content": content}) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_a_shape_is_one_short_line_for_any_result(value: Any) -> None:
    shape = shape_of_result({"structuredContent": value})
    assert shape is None or (len(shape) <= LONGEST_SHAPE and shape.isprintable())


def test_the_shape_of_the_first_successful_result_is_remembered_until_its_server_is_removed() -> None:
    shapes = ObservedShapes()
    shapes.observe("a", "list", {"isError": True, "structuredContent": {"error": "x"}})
    shapes.observe("a", "list", {"structuredContent": {"n": 1}})
    shapes.observe("a", "list", {"structuredContent": {"other": 1}})
    assert (shapes.find("a", "list"), shapes.find("b", "list")) == ("{n: int}", None)
    shapes.forget("a")
    assert shapes.find("a", "list") is None


def test_the_oldest_shapes_are_forgotten_when_there_are_too_many() -> None:
    shapes = ObservedShapes()
    for number in range(MOST_SHAPES + 1):
        shapes.observe("a", str(number), {"structuredContent": {"n": 1}})
    assert (shapes.find("a", "0"), shapes.find("a", str(MOST_SHAPES))) == (None, "{n: int}")

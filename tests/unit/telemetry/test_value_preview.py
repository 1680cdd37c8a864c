"""Small values are stored unchanged, and large ones are truncated."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.telemetry.value_preview import preview

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=30,
)


def test_a_value_that_fits_is_previewed_as_the_same_object() -> None:
    value = {"content": [{"type": "text", "text": "hello"}], "n": 1}
    assert preview(value, 100) == (value, False)
    assert preview(value, 100)[0] is value


def test_a_long_text_is_truncated_in_a_preview_with_its_length() -> None:
    copy, is_cut = preview({"text": "x" * 5000}, 100)
    assert is_cut
    assert copy["text"].endswith("... (5000 characters)")
    assert len(copy["text"]) < 130


def test_surplus_list_items_are_counted_in_a_preview() -> None:
    copy, is_cut = preview(list(range(1000)), 100)
    assert is_cut
    assert copy[-1] == f"... {1000 - (len(copy) - 1)} more"


def test_a_very_deep_value_is_truncated_in_a_preview_without_an_error() -> None:
    value: Any = "bottom"
    for _ in range(5000):
        value = [value]
    copy, is_cut = preview(value, 1 << 20)
    assert is_cut
    assert "bottom" not in str(copy)


@given(JSON)
def test_a_preview_is_never_much_larger_than_its_limit(value: Any) -> None:
    copy, is_cut = preview(value, 60)
    assert is_cut == (copy is not value)
    if is_cut:
        assert len(json.dumps(copy, ensure_ascii=False)) < 60 * 8 + 400


@pytest.mark.parametrize("value", [None, 1, True, ""])
def test_plain_values_are_previewed_unchanged(value: object) -> None:
    assert preview(value, 100) == (value, False)

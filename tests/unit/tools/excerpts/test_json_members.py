import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.tools.excerpts.json_members import LONGEST_NAME, OPENED_AT_ONCE, count, find, is_json, kind_of, members
from emceepee.wire.codec import Unreadable

JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)
LISTS: list[list[Any]] = [
    [number % 10 for number in range(50_000)],
    [f'"{number}", {{[' for number in range(20_000)],
    [{"a": [number, {"b": "},{"}], "c": None} for number in range(10_000)],
    [[[1, 2], [number]] for number in range(20_000)],
    ["x" * 100_000, [1, 2], "y" * 200_000, *range(40_000)],
    [*range(100), *([[*range(30_000)]] * 4), 1.5, True],
]
SPACED = pytest.mark.parametrize("indent", [None, 1])


def ample() -> Budget:
    return Budget(max_bytes=1 << 40, max_nodes=1 << 40)


def text_of(value: object, indent: int | None = None) -> memoryview:
    return memoryview(json.dumps(value, indent=indent, ensure_ascii=False).encode() + b" \n")


@given(JSON.filter(lambda value: isinstance(value, dict | list)), st.sampled_from([None, 2]))
def test_json_members_are_those_of_the_parsed_value(value: Any, indent: int | None) -> None:
    text = text_of(value, indent)
    assert is_json(bytes(text))
    found = [(name, json.loads(bytes(inner))) for name, inner in members(text, ample())]
    assert found == (list(value.items()) if isinstance(value, dict) else [(None, item) for item in value])
    assert count(text, ample()) == len(value)


@SPACED
@pytest.mark.parametrize("number", range(len(LISTS)))
def test_a_large_json_list_can_be_read_counted_and_entered_anywhere(number: int, indent: int | None) -> None:
    value = LISTS[number]
    text = text_of(value, indent)
    assert len(text) > OPENED_AT_ONCE
    assert [json.loads(bytes(inner)) for _, inner in members(text, ample())] == value
    assert count(text, ample()) == len(value)
    for first in (1, len(value) // 3, len(value) - 1, len(value), len(value) + 5):
        assert [json.loads(bytes(inner)) for _, inner in members(text, ample(), first)] == value[first:]


@SPACED
@pytest.mark.parametrize("number", range(len(LISTS)))
def test_a_large_json_object_can_be_read_counted_and_searched(number: int, indent: int | None) -> None:
    value = {f'ü"{key}': item for key, item in enumerate(LISTS[number])}
    text = text_of(value, indent)
    assert {name: json.loads(bytes(inner)) for name, inner in members(text, ample())} == value
    assert count(text, ample()) == len(value)
    for name in ('ü"0', f'ü"{len(value) // 2}', f'ü"{len(value) - 1}'):
        found = find(text, name, ample())
        assert found is not None
        assert json.loads(bytes(found)) == value[name]
    assert find(text, "absent", ample()) is None


def test_a_json_list_of_two_million_items_is_counted_in_few_steps() -> None:
    budget = Budget(max_bytes=6_000_000, max_nodes=2_100_000)
    assert count(memoryview(b"[" + b"1," * 2_000_000 + b"1]"), budget) == 2_000_001


@pytest.mark.parametrize(
    "budget", [Budget(max_bytes=100_000, max_nodes=1 << 40), Budget(max_bytes=1 << 40, max_nodes=9)]
)
def test_reading_json_members_stops_when_the_budget_is_used_up(budget: Budget) -> None:
    text = memoryview(b"[" + b"1," * 200_000 + b"1]")
    with pytest.raises(OverBudget):
        count(text, budget)
    with pytest.raises(OverBudget):
        list(members(text, budget))


def test_invalid_json_names_are_cleaned_and_long_ones_truncated() -> None:
    text = memoryview(b'{"a\xff": 1, "%b": 2, "b": [' % (b"k" * 100_000) + b"1," * 50_000 + b"1]}")
    names = [name for name, _ in members(text, ample())]
    assert names == ["a\N{REPLACEMENT CHARACTER}", "k" * (LONGEST_NAME - 1) + "…", "b"]
    small = memoryview(b'{"a\xff": 1, "b": 2}')
    assert [name for name, _ in members(small, ample())] == ["a\N{REPLACEMENT CHARACTER}", "b"]
    assert bytes(find(small, "b", ample()) or b"") == b"2"


def test_whitespace_after_a_json_value_does_not_belong_to_it() -> None:
    text = memoryview(b"[ 1" + b" \n" * 100_000 + b", [2]\t]")
    assert [bytes(inner) for _, inner in members(text, ample())] == [b"1", b"[2]"]


def test_deeply_nested_json_is_unreadable() -> None:
    text = memoryview(b"[" * 100_000 + b"]" * 100_000)
    assert not is_json(bytes(text))
    with pytest.raises(Unreadable, match="nested deeper"):
        next(members(text, ample()))


@pytest.mark.parametrize("text", [b"", b"1", b'"x"', b"{", b"[1,", b"plain", b"[" * 100_000, b"[1] 2"])
def test_text_that_is_not_a_json_object_or_list_is_plain_text(text: bytes) -> None:
    assert not is_json(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [(b" {", "object"), (b"\n[", "list"), (b'"', "string"), (b"true", "boolean"), (b"null", "null"), (b"-1", "number")],
)
def test_the_first_byte_determines_the_kind_of_a_json_value(text: bytes, kind: str) -> None:
    assert kind_of(memoryview(text)) == kind

import json
from typing import Any

import pytest

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.errors import InvalidArguments
from emceepee.tools.excerpts.json_path import Selection, parse_path
from emceepee.wire.codec import encode

DOCUMENT: Any = {
    "items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}, {"id": 3}],
    "a key": {"it's": 5},
    "ünder": "ß",
}
TEXT = json.dumps(DOCUMENT).encode()


def selection_of(path: str) -> Selection:
    return Selection(parse_path(path), Budget(max_bytes=1 << 20, max_nodes=1000))


def found(path: str) -> dict[str, Any]:
    return {match.path: json.loads(bytes(memoryview(match.text))) for match in selection_of(path).of(TEXT)}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", {"$": DOCUMENT}),
        ("$.items[0].id", {"$.items[0].id": 1}),
        ("items[-1].id", {"$.items[2].id": 3}),
        ("$.items[*].id", {"$.items[0].id": 1, "$.items[1].id": 2, "$.items[2].id": 3}),
        ("$.items[1:].id", {"$.items[1].id": 2, "$.items[2].id": 3}),
        ("$.items[0:1].tags.*", {"$.items[0].tags[0]": "a", "$.items[0].tags[1]": "b"}),
        ("$['a key']['it\\'s']", {'$["a key"]["it\'s"]': 5}),
        ('$["ünder"]', {"$.ünder": "ß"}),
        ("$.*.id", {}),
        ("$.items[9]", {}),
        ("$.nothing.here", {}),
    ],
)
def test_a_json_path_selects_values(path: str, values: dict[str, Any]) -> None:
    assert found(path) == values


@pytest.mark.parametrize(
    ("path", "note"),
    [
        ("$.itms", "$ has the keys items, a key, ünder"),
        ("$.items[5].id", "$.items has 3 entries"),
        ("$.items.id", "$.items is a list: take [*] or [0] first"),
        ("$.items[0].id.x", "$.items[0].id is neither object nor list"),
        ("$[0]", "$ is an object"),
    ],
)
def test_a_json_path_without_a_match_reports_where_it_ended(path: str, note: str) -> None:
    selection = selection_of(path)
    assert list(selection.of(TEXT)) == []
    assert selection.note == note


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("$..id", "descending with .. is not supported; grep finds text at any depth, at position 1"),
        ("$.items[?(@.id>1)]", "filters and expressions are not supported, at position 7"),
        ("$.items[0", "no step can be read, at position 7"),
        ("$.items[0:2:2]", "no step can be read, at position 7"),
        ("$ x", "no step can be read, at position 1"),
        ("$" + ".a" * 600, "it is longer than 1000 characters, at position 1000"),
    ],
)
def test_unsupported_json_path_syntax_is_rejected_with_its_position(path: str, problem: str) -> None:
    with pytest.raises(InvalidArguments) as refused:
        parse_path(path)
    assert problem in str(refused.value)
    assert "There are $.key" in str(refused.value)


@pytest.mark.parametrize("path", ["$.*.*.*", "$.items[*].nothing", "$.items[-1]"])
def test_a_json_path_search_stops_when_its_budget_is_used_up(path: str) -> None:
    text = encode({"items": [{"id": number} for number in range(10_000)]})
    with pytest.raises(OverBudget):
        list(Selection(parse_path(path), Budget(max_bytes=1 << 30, max_nodes=500)).of(text))
    with pytest.raises(OverBudget):
        list(Selection(parse_path(path), Budget(max_bytes=60_000, max_nodes=1 << 30)).of(text))


@pytest.mark.parametrize(
    ("path", "numbers"),
    [("[-2:]", [8, 9]), ("[:-8]", [0, 1]), ("[-3:-1]", [7, 8]), ("[-20:1]", [0]), ("[8:99]", [8, 9]), ("[-11]", [])],
)
def test_json_path_slices_count_from_either_end(path: str, numbers: list[int]) -> None:
    selection = Selection(parse_path(f"${path}"), Budget(max_bytes=1 << 20, max_nodes=1000))
    assert [match.path for match in selection.of(encode([*range(10)]))] == [f"$[{number}]" for number in numbers]


def test_long_keys_are_truncated_in_json_path_notes() -> None:
    selection = Selection(parse_path("$.x"), Budget(max_bytes=1 << 20, max_nodes=1000))
    assert list(selection.of(encode({"k" * 10_000: 1}))) == []
    assert selection.note == "$ has the keys " + "k" * 60

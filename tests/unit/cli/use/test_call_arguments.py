"""Arguments of a tool, as they stand on a command line."""

from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.use.call_arguments import BadArgument, read_arguments

SCHEMA = {
    "properties": {
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "is_on": {"type": "boolean"},
        "name": {"type": "string"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["integer", "string"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"$ref": "#/$defs/Number"}},
        "options": {"type": "object"},
        "mode": {"enum": ["fast", "slow"]},
        "place": {"$ref": "#/$defs/Place"},
    },
    "$defs": {"Number": {"type": "number"}, "Place": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["count=3"], {"count": 3}),
        (["count=3.0"], {"count": 3}),
        (["share=3"], {"share": 3}),
        (["is_on=true"], {"is_on": True}),
        (["name=3"], {"name": "3"}),
        (["name=a=b"], {"name": "a=b"}),
        (["name="], {"name": ""}),
        (["maybe=null"], {"maybe": None}),
        (["either=3"], {"either": 3}),
        (["either=x"], {"either": "x"}),
        (["tags=3"], {"tags": ["3"]}),
        (["tags=a", "tags=b"], {"tags": ["a", "b"]}),
        (['tags=["a,b"]'], {"tags": ["a,b"]}),
        (["numbers=1", "numbers=2.5"], {"numbers": [1, 2.5]}),
        (['options={"a": 1}'], {"options": {"a": 1}}),
        (['place={"a": 1}'], {"place": {"a": 1}}),
        (["mode=fast"], {"mode": "fast"}),
        (["strange=3"], {"strange": 3}),
        (["strange=three"], {"strange": "three"}),
    ],
    ids=str,
)
def test_a_command_line_argument_is_converted_by_the_tool_schema(words: list[str], expected: dict[str, Any]) -> None:
    found = read_arguments(words, None, SCHEMA)
    assert found == expected
    assert repr(found) == repr(expected)  # 3 is not 3.0


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("count=3.5", "count: expected a whole number, found '3.5'"),
        ("count=NaN", "count: expected a whole number, found 'NaN'"),
        ("share=NaN", "share: expected a number, found 'NaN'"),
        ("is_on=yes", "is_on: expected true or false, found 'yes'"),
        ("numbers=x", "numbers: expected a number, found 'x'"),
        ("options=[1]", "options: expected an object in JSON"),
        ("=3", "expected key=value or @FILE, found '=3'"),
    ],
)
def test_an_invalid_command_line_argument_is_reported_with_the_expected_type(word: str, expected: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_arguments([word], None, SCHEMA)
    assert str(caught.value).startswith(expected)


def test_a_repeated_argument_must_be_a_list_in_the_schema() -> None:
    with pytest.raises(BadArgument, match="given 2 times, but it is not a list"):
        read_arguments(["count=1", "count=2"], None, SCHEMA)


def test_single_arguments_take_precedence_over_the_json_object() -> None:
    assert read_arguments(["count=1"], '{"count": 2, "name": "x"}', SCHEMA) == {"count": 1, "name": "x"}


def test_an_argument_file_that_is_nested_too_deeply_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"a":' * 100_000)
    with pytest.raises(BadArgument, match="not valid JSON"):
        read_arguments([f"@{tmp_path}/deep.json"], None, {})
    with pytest.raises(BadArgument, match="it is not a regular file"):
        read_arguments(["@/dev/zero"], None, {})
    assert read_arguments(["a=" + "[" * 100_000], None, {}) == {"a": "[" * 100_000}

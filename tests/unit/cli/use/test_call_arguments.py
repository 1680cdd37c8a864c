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
def test_a_value_is_what_the_schema_says(words: list[str], expected: dict[str, Any]) -> None:
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
def test_what_does_not_fit_is_named_with_what_was_expected(word: str, expected: str) -> None:
    with pytest.raises(BadArgument) as caught:
        read_arguments([word], None, SCHEMA)
    assert str(caught.value).startswith(expected)


def test_what_is_given_twice_must_be_a_list() -> None:
    with pytest.raises(BadArgument, match="given 2 times, and it is no list"):
        read_arguments(["count=1", "count=2"], None, SCHEMA)


def test_single_arguments_win_over_the_object() -> None:
    assert read_arguments(["count=1"], '{"count": 2, "name": "x"}', SCHEMA) == {"count": 1, "name": "x"}


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text('{"a":' * 100_000)
    with pytest.raises(BadArgument, match="not valid JSON"):
        read_arguments([f"@{tmp_path}/deep.json"], None, {})
    with pytest.raises(BadArgument, match="it is not a regular file"):
        read_arguments(["@/dev/zero"], None, {})
    assert read_arguments(["a=" + "[" * 100_000], None, {}) == {"a": "[" * 100_000}

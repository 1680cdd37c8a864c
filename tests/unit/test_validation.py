from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Tool
from emceepee.validation import SHOWN_CHARS, mismatches
from emceepee.wire.json_types import JsonObject
from support.sessions.catalogue import CATALOGUE

EACH = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
ODD = ["", "soon", "x" * 1000, 0, -1, 1.5, 10**30, True, None, [], [5], ["x"], {}, {"a": 1}, {"enabled": "perhaps"}]
LIBRARY_PHRASES = (
    *("Input should", "Field required", "should have", "Value error", "valid string", "valid integer", "valid dict"),
    *("unable to", "Extra inputs", "not permitted", "permitted", "pydantic", "type=", "input_value", "instance of"),
    "another value",  # the message for an unforeseen error
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def said(model: type[BaseModel], arguments: Any, private: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the problems by their path, or none if the arguments are valid."""
    try:
        model.model_validate(arguments)
    except ValidationError as error:
        found = mismatches(error, model, private=private)
        return {".".join(map(str, path)): words for path, _, words in found}
    return {}


@pytest.mark.parametrize(
    ("tool", "arguments", "problem"),
    [
        ("get_server_status", {}, {"server": "is missing"}),
        ("get_server_status", {"server": 5}, {"server": "expected a string, found 5"}),
        ("await_activity", {"timeout_ms": "soon"}, {"timeout_ms": 'expected a whole number, found "soon"'}),
        ("await_activity", {"timeout_ms": 100.5}, {"timeout_ms": "expected a whole number, found 100.5"}),
        ("await_activity", {"timeout_ms": None}, {"timeout_ms": "expected a whole number, found null"}),
        ("await_activity", {"timeout_ms": 99}, {"timeout_ms": "must be at least 100, found 99"}),
        ("await_activity", {"timeout_ms": 900_001}, {"timeout_ms": "may be at most 900000, found 900001"}),
        ("list_tools", {"limit": 0}, {"limit": "must be at least 1, found 0"}),
        ("list_tools", {"detail": "all"}, {"detail": 'expected one of names, summary, full, found "all"'}),
        ("list_tools", {"detail": ["full"]}, {"detail": "expected one of names, summary, full, found a list"}),
        ("get_logs", {"sources": ["stdin"]}, {"sources.0": 'expected one of protocol, stderr, stdout, found "stdin"'}),
        ("get_logs", {"sources": "stderr"}, {"sources": 'expected a list, found "stderr"'}),
        ("get_logs", {"clear": "perhaps"}, {"clear": 'expected true or false, found "perhaps"'}),
        ("execute_tool", {"server": "a", "tool": "b", "args": [1]}, {"args": "expected an object, found a list"}),
        ("read_resource", {"server": "a", "uri": ""}, {"uri": "must not be empty"}),
        (
            "set_timer",
            {"duration_ms": 1, "message": "x" * 501},
            {"message": "may have at most 500 characters, found 501"},
        ),
        (
            "respond_to_sampling",
            {"request_id": "r", "role": "assistant", "model": "m", "content": 5},
            {"content": "expected a string, an object or a list, found 5"},
        ),
        ("add_server", {"name": "a\nb", "url": "http://h"}, {"name": "must not have control characters"}),
        (
            "add_server",
            {"name": "a", "command": "x", "restartConfig": 5},
            {"restartConfig": "expected an object, found 5"},
        ),
        (
            "add_server",
            {"name": "a", "command": "x", "restartConfig": {"maxAttemps": 1, "backoffMultiplier": 0.5}},
            {
                "restartConfig.backoffMultiplier": "must be at least 1, found 0.5",
                "restartConfig.maxAttemps": "no such key; did you mean maxAttempts or maxDelayMs?",
            },
        ),
        ("list_servers", {"zzz": 1}, {"zzz": "no such argument; there are limit, cursor, detail, tag"}),
    ],
)
def test_a_validation_problem_is_described_in_plain_words(
    tool: str, arguments: JsonObject, problem: dict[str, str]
) -> None:
    assert said(CATALOGUE[tool].params, arguments) == problem


def test_only_the_type_of_a_private_value_is_shown_in_a_validation_problem() -> None:
    tool = CATALOGUE["add_server"]
    given = {"name": "a", "command": "x", "args": "s3cret", "env": {"A": 54321}, "headers": ["s3cret"]}
    found = said(tool.params, given, tool.private)
    assert found == {
        "headers": "expected an object, found a list",
        "args": "expected a list, found a string",
        "env.A": "expected a string, found a number",
    }


def test_a_long_value_is_not_repeated_in_full_in_a_validation_problem() -> None:
    [words] = said(CATALOGUE["await_activity"].params, {"timeout_ms": "9" * 100_000 + "x"}).values()
    assert len(words) <= len("expected a whole number, found ") + SHOWN_CHARS


def assert_plain(tool: Tool, arguments: Any) -> None:
    for words in said(tool.params, arguments, tool.private).values():
        assert words
        assert [phrase for phrase in LIBRARY_PHRASES if phrase in words] == []


@EACH
def test_no_tool_reports_a_validation_problem_in_the_words_of_pydantic(tool: Tool) -> None:
    """Each argument is tried alone with invalid values; the others are missing."""
    assert_plain(tool, {})
    for name in tool.params.model_fields:
        for value in ODD:
            assert_plain(tool, {name: value})
            assert_plain(tool, {name: [value]})
            assert_plain(tool, {name: {"a": value, "maxAttempts": value, "enabled": value}})


@given(st.sampled_from(TOOLS), st.data())
def test_arbitrary_arguments_never_cause_a_validation_problem_in_the_words_of_pydantic(
    tool: Tool, data: st.DataObject
) -> None:
    names = st.sampled_from([*tool.params.model_fields, "stranger"])
    assert_plain(tool, data.draw(st.dictionaries(names, JSON, max_size=4)))

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pytest

from emceepee.codemode.failures import (
    LONGEST_MESSAGE,
    MOST_READ,
    ScriptFailure,
    line_at,
    only_returns,
    problems_of,
    with_awaits,
)
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic_monty import MontyTypingError, SourceRange


@dataclass
class Place:
    """A source position as the sandbox reports it."""

    filename: str
    start: int


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (Place("<python-input-0>", 0), None),
        (Place("<python-input-0>", 8), 1),
        (Place("<python-input-0>", len("prelude\nä€\n".encode())), 2),
        (Place("<string>", 8), None),
        (Place("", 0), None),
    ],
)
def test_a_source_position_is_mapped_to_the_line_of_the_script(place: Place, line: int | None) -> None:
    assert line_at("prelude\nä€\ncall()", cast("SourceRange", place), before=1) == line


def not_awaited(row: int, column: int) -> JsonObject:
    return {"code": "unused-awaitable", "location": {"row": row, "column": column}}


def test_a_missing_await_is_inserted_before_calls() -> None:
    code = "f(); g()\nif x:\n    h()"
    assert with_awaits(code, [not_awaited(1, 1), not_awaited(1, 6), not_awaited(3, 5)]) == (
        "await f(); await g()\nif x:\n    await h()"
    )


def test_awaits_are_not_inserted_if_a_script_has_other_errors() -> None:
    assert with_awaits("f()", []) is None
    assert with_awaits("f()", [not_awaited(1, 1), {"code": "invalid-syntax"}]) is None
    assert with_awaits("f()", [not_awaited(9, 1)]) is None


def test_a_return_outside_a_function_is_accepted() -> None:
    outside: JsonObject = {"message": "`return` statement outside of a function"}
    assert [only_returns([outside]), only_returns([]), only_returns([outside, {"message": "x"}])] == [
        True,
        False,
        False,
    ]


def test_a_long_script_failure_message_is_truncated() -> None:
    assert ScriptFailure("E", "x" * 10_000, 3).body() == {
        "name": "E",
        "message": "x" * LONGEST_MESSAGE + "…",
        "line": 3,
    }


class Refusal:
    """A type check failure as the sandbox reports it."""

    def __init__(self, text: str) -> None:
        self.text = text

    def display(self) -> str:
        return self.text

    def __str__(self) -> str:
        return "refused"


def problems(text: str) -> list[JsonObject]:
    return problems_of(cast("MontyTypingError", Refusal(text)))


def test_only_a_limited_number_of_type_check_problems_is_read() -> None:
    found = [{"severity": "error", "message": "{x}", "location": {"row": row}} for row in range(MOST_READ * 2)]
    assert problems(json.dumps(found, indent=2)) == found[:MOST_READ]
    warning = {"severity": "warning", "message": "w"}
    assert problems(json.dumps([warning, found[0]])) == [found[0]]


@pytest.mark.parametrize("text", ["", "[]", "not JSON", "[{", '[{"severity": "warning"}]'])
def test_an_unparsable_type_check_output_is_reported_as_it_is(text: str) -> None:
    (found,) = problems(text)
    assert found == {"message": "refused"} if text == "[{" else {"message": text}

from emceepee.codemode.failures import LONGEST_MESSAGE, ScriptFailure, only_returns, with_awaits
from emceepee.json_types import JsonObject


def not_awaited(row: int, column: int) -> JsonObject:
    return {"code": "unused-awaitable", "location": {"row": row, "column": column}}


def test_awaits_are_put_before_calls_that_lack_only_that() -> None:
    code = "f(); g()\nif x:\n    h()"
    assert with_awaits(code, [not_awaited(1, 1), not_awaited(1, 6), not_awaited(3, 5)]) == (
        "await f(); await g()\nif x:\n    await h()"
    )


def test_nothing_is_changed_where_more_is_wrong() -> None:
    assert with_awaits("f()", []) is None
    assert with_awaits("f()", [not_awaited(1, 1), {"code": "invalid-syntax"}]) is None
    assert with_awaits("f()", [not_awaited(9, 1)]) is None


def test_a_return_outside_of_a_function_is_no_mistake() -> None:
    outside: JsonObject = {"message": "`return` statement outside of a function"}
    assert [only_returns([outside]), only_returns([]), only_returns([outside, {"message": "x"}])] == [
        True,
        False,
        False,
    ]


def test_a_message_is_cut() -> None:
    assert ScriptFailure("E", "x" * 10_000, 3).body() == {
        "name": "E",
        "message": "x" * LONGEST_MESSAGE + "…",
        "line": 3,
    }

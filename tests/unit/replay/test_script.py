"""Which recorded answer a request gets."""

import pytest

from emceepee.replay.script import NotRecorded, Script
from support.recordings import call, recording, result


def a_script() -> Script:
    return Script(
        recording(
            call(1, 0, "add", a=1, b=2),
            result(1, 0, "first"),
            call(2, 0, "add", a=1, b=2),
            result(2, 0, "second"),
            call(3, 0, "open", password="***", url="https://a.org/?q=***"),
            result(3, 0, "opened"),
        )
    )


def answer(script: Script, tool: str, **arguments: object) -> object:
    index = script.next("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": 9}})
    found = script.exchange(index).result
    assert found is not None
    return found["content"][0]["text"]


def test_equal_requests_get_their_answers_in_order_and_then_the_last_again() -> None:
    script = a_script()
    assert [answer(script, "add", b=2.0, a=1) for _ in range(4)] == ["first", "second", "second", "second"]
    script.restart()
    assert answer(script, "add", a=1, b=2) == "first"


def test_what_was_masked_is_no_part_of_the_comparison() -> None:
    assert answer(a_script(), "open", password="another", url="https://a.org/?q=cats") == "opened"


def test_empty_arguments_are_the_same_as_none() -> None:
    script = Script(recording(call(1, 0, "list"), result(1, 0, "all")))
    assert script.next("tools/call", {"name": "list"}) == script.next("tools/call", {"name": "list", "arguments": None})


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        (
            "tools/call",
            {"name": "add", "arguments": {"a": 1, "b": 3}},
            'Not recorded: tools/call {"arguments":{"a":1,"b":3},"name":"add"}. '
            'The nearest is tools/call {"arguments":{"a":1,"b":2},"name":"add"}, line 3.',
        ),
        ("prompts/get", {"name": "x"}, 'Not recorded: prompts/get {"name":"x"}. The recording has: tools/call.'),
        ("tools/call", {"name": "x" * 9999}, "…. The nearest is tools/call"),
    ],
)
def test_a_request_that_was_not_recorded_names_the_nearest(method: str, params: dict[str, object], words: str) -> None:
    with pytest.raises(NotRecorded) as error:
        a_script().next(method, params)
    assert words in str(error.value)


def test_the_same_tool_is_nearer_than_the_same_arguments() -> None:
    script = Script(
        recording(call(1, 0, "sub", a=1, b=3), result(1, 0, "x"), call(2, 0, "add", z=7), result(2, 0, "y"))
    )
    with pytest.raises(NotRecorded, match="line 5"):
        script.next("tools/call", {"name": "add", "arguments": {"a": 1, "b": 3}})

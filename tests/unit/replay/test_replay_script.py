"""Which recorded response a request gets."""

from difflib import SequenceMatcher

import pytest

from emceepee.replay.replay_script import NotRecorded, ReplayScript
from support.recordings import call, recording, result


def a_script() -> ReplayScript:
    return ReplayScript(
        recording(
            call(1, 0, "add", a=1, b=2),
            result(1, 0, "first"),
            call(2, 0, "add", a=1, b=2),
            result(2, 0, "second"),
            call(3, 0, "open", password="***", url="https://a.org/?q=***"),
            result(3, 0, "opened"),
        )
    )


def answer(script: ReplayScript, tool: str, **arguments: object) -> object:
    index = script.next("tools/call", {"name": tool, "arguments": arguments, "_meta": {"progressToken": 9}})
    found = script.exchange(index).result
    assert found is not None
    return found["content"][0]["text"]


def test_equal_replay_requests_get_their_answers_in_order_and_then_the_last_one_again() -> None:
    script = a_script()
    assert [answer(script, "add", b=2.0, a=1) for _ in range(4)] == ["first", "second", "second", "second"]
    script.restart()
    assert answer(script, "add", a=1, b=2) == "first"


def test_masked_values_are_ignored_when_replay_requests_are_compared() -> None:
    assert answer(a_script(), "open", password="another", url="https://a.org/?q=cats") == "opened"


def test_empty_and_missing_arguments_are_equal_in_a_replay() -> None:
    script = ReplayScript(recording(call(1, 0, "list"), result(1, 0, "all")))
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
def test_an_unrecorded_request_names_the_most_similar_one(method: str, params: dict[str, object], words: str) -> None:
    with pytest.raises(NotRecorded) as error:
        a_script().next(method, params)
    assert words in str(error.value)


def test_replayed_tasks_match_regardless_of_their_ttl_and_differ_from_plain_calls() -> None:
    begun = call(1, 0, "dig")
    begun["params"]["task"] = {"ttl": 600_000}
    script = ReplayScript(recording(begun, result(1, 0, "begun"), call(2, 0, "dig"), result(2, 0, "dug")))
    for task in ({"ttl": 1}, {"ttl": 600_000}, {}):
        assert script.next("tools/call", {"name": "dig", "arguments": {}, "task": task}) == 0
    assert answer(script, "dig") == "dug"


def test_only_a_few_recorded_requests_are_compared_in_detail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each detailed comparison blocks the event loop for milliseconds."""
    compared: list[str] = []

    class Counting(SequenceMatcher[str]):
        def ratio(self) -> float:
            compared.append("closely")
            return super().ratio()

        def quick_ratio(self) -> float:
            compared.append("quickly")
            return super().quick_ratio()

    monkeypatch.setattr("emceepee.replay.replay_script.SequenceMatcher", Counting)
    others = [
        entry
        for number in range(3000)
        for entry in (call(number, 0, f"t{number}", text="ab" * 150), result(number, 0, ""))
    ]
    near = [call(9000, 0, "add", a=1, b="x" * 200), result(9000, 0, "")]
    with pytest.raises(NotRecorded, match=r'"name":"add"}, line 6003'):
        ReplayScript(recording(*others, *near)).next("tools/call", {"name": "add", "arguments": {"a": 2}})
    assert compared.count("closely") <= 10
    assert compared.count("quickly") <= 200
    compared.clear()
    with pytest.raises(NotRecorded, match="The nearest is"):
        ReplayScript(recording(*others)).next("tools/call", {"name": "new", "arguments": {"text": "ba" * 150}})
    assert compared.count("closely") <= 10
    assert compared.count("quickly") <= 200


def test_an_equal_tool_counts_more_than_equal_arguments_when_replay_requests_are_compared() -> None:
    script = ReplayScript(
        recording(call(1, 0, "sub", a=1, b=3), result(1, 0, "x"), call(2, 0, "add", z=7), result(2, 0, "y"))
    )
    with pytest.raises(NotRecorded, match="line 5"):
        script.next("tools/call", {"name": "add", "arguments": {"a": 1, "b": 3}})

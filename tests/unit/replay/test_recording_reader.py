"""An untrusted file is parsed as a recording, or rejected with the line of the error."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.replay import recording_reader as reading
from emceepee.replay.recording import Notice, RecordedQuestions
from emceepee.replay.recording_reader import BadRecording, parse_recording, read_recording
from support.recordings import HEADER, OPENED, call, lines, notice, question, recording, result


def test_a_recorded_exchange_contains_the_messages_during_its_request_and_its_duration() -> None:
    found = recording(
        call(1, 1.0, "dig"),
        notice(1, 1.5, "progress", progress=1),
        question(1, 2.0, "q1", "Deeper?"),
        {"at": 9.0, "type": "answer", "id": "q1", "result": {"action": "accept"}},
        result(1, 9.25, "done"),
        notice(None, 10.0, "tools/list_changed"),
    )
    (exchange,) = found.exchanges
    first, second = exchange.steps
    assert isinstance(first, Notice)
    assert (first.wait, first.method) == (0.5, "notifications/progress")
    assert isinstance(second, RecordedQuestions)
    assert (second.wait, second.asked["q1"]["params"]["message"]) == (0.5, "Deeper?")
    assert (exchange.wait, exchange.result) == (0.25, {"content": [{"type": "text", "text": "done"}]})
    assert [later.method for later in exchange.later] == ["notifications/tools/list_changed"]


def asking(number: int, at: float, state: str | None) -> dict[str, Any]:
    asked = {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    answer = {"resultType": "input_required", "inputRequests": asked}
    return {
        "at": at,
        "type": "result",
        "id": number,
        "result": answer | ({} if state is None else {"requestState": state}),
    }


@pytest.mark.parametrize("state", [None, "s1"])
def test_a_recorded_call_that_was_repeated_with_answers_is_one_exchange(state: str | None) -> None:
    again = call(2, 3.0, "ship")
    again["params"] |= {"inputResponses": {"who": {"action": "accept"}}} | (
        {} if state is None else {"requestState": state}
    )
    found = recording(call(1, 1.0, "ship"), asking(1, 1.5, state), again, result(2, 3.25, "shipped"))
    (exchange,) = found.exchanges
    (step,) = exchange.steps
    assert isinstance(step, RecordedQuestions)
    assert (list(step.asked), exchange.wait) == (["who"], 0.25)
    assert exchange.result == {"content": [{"type": "text", "text": "shipped"}]}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([call(1, 0, "dig")], "the recording ends before its answer"),
        ([call(1, 0, "dig"), {"at": 1, "type": "cancelled", "id": 1}], "it was cancelled"),
        ([call(1, 0, "dig"), {"at": 1, "type": "failed", "id": 1, "reason": "it exited"}], "it exited"),
        ([call(1, 0, "dig"), asking(1, 1, None)], "what the server asked was not answered"),
    ],
)
def test_a_recorded_request_without_an_answer_states_why(entries: list[dict[str, Any]], words: str) -> None:
    (exchange,) = recording(*entries).exchanges
    assert exchange.result is None
    assert exchange.error is not None
    assert words in exchange.error["message"]


def test_a_second_recording_in_a_file_continues_the_first() -> None:
    both = lines(call(1, 0, "a"), result(1, 1, "one")) + lines(call(1, 0, "b"), result(1, 1, "two"))
    found = parse_recording(both)
    assert [exchange.params["name"] for exchange in found.exchanges] == ["a", "b"]


def test_a_recording_that_was_cut_has_a_note() -> None:
    assert "was cut: full" in recording({"type": "cut", "reason": "full"}).notes[0]


@pytest.mark.parametrize("kind", ["result", "error", "failed", "cancelled"])
def test_after_a_cut_an_answer_whose_request_was_lost_is_ignored(kind: str) -> None:
    lost = {"at": 1, "type": kind, "id": 1, "result": {}, "error": {}, "reason": ""}
    found = recording(
        {"type": "cut", "reason": "1 lines could not be written"}, lost, call(2, 2, "a"), result(2, 3, "b")
    )
    assert [exchange.params["name"] for exchange in found.exchanges] == ["a"]
    with pytest.raises(BadRecording, match="line 7 ends request 1, which does not stand before it"):
        parse_recording(lines({"type": "cut", "reason": "full"}, lost) + lines(lost))


def test_a_truncated_line_ends_its_recording_with_a_note() -> None:
    """The cause is a full disk or the death of the process."""
    broken = [line + b"\n" for line in lines(call(1, 0, "a"), result(1, 1, "one"), call(2, 2, "b"))] + [
        b'{"at": 3, "ty'
    ]
    found = parse_recording(broken)
    assert [exchange.params["name"] for exchange in found.exchanges] == ["a", "b"]
    assert found.notes == ["line 6: the recording was cut off within it"]
    again = [line + b"\n" for line in lines(call(1, 0, "c"), result(1, 1, "three"))]
    found = parse_recording([*broken[:-1], broken[-1] + b"\n", *again])
    assert [exchange.params["name"] for exchange in found.exchanges] == ["a", "b", "c"]
    assert len(found.notes) == 1


def test_unknown_recording_entries_are_ignored() -> None:
    assert recording({"type": "closed", "reason": "end"}, {"type": "of a later version"}).exchanges == []


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([], "is empty"),
        ([b"Dear diary"], "line 1 is not JSON; a recording is what"),
        ([b"[1]"], "line 1 is not a JSON object"),
        ([b'{"type": "opened"}'], 'line 1 is not the first line of a recording, which has "emceepee_recording"'),
        ([json.dumps(HEADER | {"emceepee_recording": 2}).encode()], "version 2; this emceepee reads version 1"),
        ([json.dumps(HEADER).encode()], "no connection was recorded"),
        ([*lines(), b"{\n"], "line 3 is not JSON"),
        ([*lines(), b"{\n", *lines(call(1, 0, "a"))[2:]], "line 3 is not JSON"),
        ([*lines(), b"{\n", b"{"], "line 3 is not JSON"),
        (lines({"type": 3}), 'line 3 needs a text under "type"'),
        (lines({"type": "request", "id": "1", "method": "a", "params": {}}), 'line 3 needs a whole number under "id"'),
        (lines({"type": "request", "id": 1, "method": "a", "params": []}), 'line 3 needs an object under "params"'),
        (
            lines({"type": "request", "id": 1, "method": "a", "params": {}}),
            'line 3 needs a number of seconds under "at"',
        ),
        (lines(call(1, 1e300, "a")), 'line 3 needs a number of seconds under "at"'),
        (lines(call(1, 0, "a"), call(1, 0, "b")), "line 4 asks with the id 1, which is in use"),
        (lines(result(7, 0, "a")), "line 3 ends request 7, which does not stand before it"),
        (lines(call(1, 0, "a"), {"at": 1, "type": "error", "id": 1}), 'line 4 needs an object under "error"'),
        ([*lines(), b'{"a":' * 300 + b"1" + b"}" * 300 + b"\n"], "line 3 is not JSON"),
    ],
)
def test_an_invalid_recording_is_reported_with_its_line(bad: list[bytes], words: str) -> None:
    with pytest.raises(BadRecording) as error:
        parse_recording(bad)
    assert words in str(error.value)


def test_a_recording_over_the_size_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "large.jsonl"
    file.write_bytes(b"\n".join(lines()))
    monkeypatch.setattr(reading, "MOST_BYTES", 100)
    with pytest.raises(BadRecording, match="is larger than"):
        read_recording(file)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_LINES", 1)
    with pytest.raises(BadRecording, match="more than 1 lines"):
        read_recording(file)
    with pytest.raises(BadRecording, match="cannot be read: No such file"):
        read_recording(tmp_path / "missing.jsonl")


_VALUES = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3))
_ENTRIES = st.dictionaries(
    st.sampled_from(["at", "type", "id", "method", "params", "result", "error", "during", "server", "reason"]),
    _VALUES
    | st.sampled_from(["request", "result", "question", "answer", "notification", "opened", "cut", 1, 2, 0.5])
    | st.just({"resultType": "input_required", "inputRequests": {"a": {"method": "m", "params": {}}}}),
)


@given(st.lists(_ENTRIES, max_size=8))
def test_any_recording_file_is_parsed_or_rejected(entries: list[dict[str, Any]]) -> None:
    with suppress(BadRecording):
        parse_recording([json.dumps(entry).encode() for entry in (HEADER, OPENED, *entries)])

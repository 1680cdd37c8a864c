"""Data that a recording omits."""

import json

from emceepee.backends.recording.recording_mask import masked, masked_answer, masked_params, masked_result


def test_values_under_telling_names_lose_their_content_and_keep_their_type() -> None:
    given = {"password": "hunter2", "token": 7, "api_key": ["a"], "secret": {"a": 1}, "name": "ann", "has_token": True}
    assert masked([given]) == [
        {"password": "***", "token": 0, "api_key": [], "secret": {}, "name": "ann", "has_token": True}
    ]


def test_addresses_and_json_in_texts_lose_their_secrets() -> None:
    assert masked("see https://ann:pw@example.org/?key=abc") == "see https://example.org/?key=***"
    assert json.loads(masked('{"password": "hunter2", "a": 1}')) == {"password": "***", "a": 1}


def test_a_text_of_json_without_secrets_stays_as_it_was_written() -> None:
    text = '{\n  "about": "a token ring",\n  "size": 3\n}'
    assert masked(text) == text


def test_the_names_in_schemas_are_not_taken_for_secrets() -> None:
    tool = {"name": "log_in", "inputSchema": {"type": "object", "properties": {"password": {"type": "string"}}}}
    assert masked({"tools": [tool]}) == {"tools": [tool]}


def test_requests_keep_nothing_that_belongs_to_one_conversation() -> None:
    params = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 3}}
    assert masked_params(params) == {"name": "add", "arguments": {"a": 1}}
    assert masked_params({"progressToken": 3, "progress": 1}) == {"progress": 1}
    assert masked_params(None) == {}


def test_what_a_person_filled_in_is_never_kept() -> None:
    answer = {"action": "accept", "content": {"street": "Elm", "number": 5}}
    assert masked_answer(answer) == {"action": "accept", "content": {"street": "***", "number": "***"}}
    assert masked_params({"name": "ship", "inputResponses": {"where": answer}}) == {
        "name": "ship",
        "inputResponses": {"where": {"action": "accept", "content": {"street": "***", "number": "***"}}},
    }


def test_of_the_state_between_two_rounds_only_whether_it_is_the_same_is_kept() -> None:
    """It may hold the answers of earlier rounds."""
    asked = masked_result({"resultType": "input_required", "requestState": '{"street": "Elm"}'})
    again = masked_params({"name": "ship", "requestState": '{"street": "Elm"}'})
    other = masked_params({"name": "ship", "requestState": '{"street": "Oak"}'})
    assert asked["requestState"] == again["requestState"] != other["requestState"]
    assert "Elm" not in json.dumps([asked, again])
    for state in (None, 7, ["Elm"]):
        assert "Elm" not in json.dumps(masked_params({"requestState": state}))
    assert masked_params({"requestState": None}) == {"requestState": None}
    mine = {"structuredContent": {"requestState": "of a tool"}}
    assert masked_result(mine) == mine


def test_the_words_of_a_model_are_kept() -> None:
    answer = {"role": "assistant", "content": {"type": "text", "text": "Tea."}, "model": "m"}
    assert masked_answer(answer) == answer

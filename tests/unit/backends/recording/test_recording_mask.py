"""Data that a recording omits."""

import json

from emceepee.backends.recording.recording_mask import masked, masked_answer, masked_params, masked_result


def test_values_under_sensitive_names_are_masked_and_keep_their_type() -> None:
    given = {"password": "hunter2", "token": 7, "api_key": ["a"], "secret": {"a": 1}, "name": "ann", "has_token": True}
    assert masked([given]) == [
        {"password": "***", "token": 0, "api_key": [], "secret": {}, "name": "ann", "has_token": True}
    ]


def test_urls_and_json_in_texts_lose_their_secrets() -> None:
    assert masked("see https://ann:pw@example.org/?key=abc") == "see https://example.org/?key=***"
    assert json.loads(masked('{"password": "hunter2", "a": 1}')) == {"password": "***", "a": 1}


def test_json_text_without_secrets_is_recorded_unchanged() -> None:
    text = '{\n  "about": "a token ring",\n  "size": 3\n}'
    assert masked(text) == text


def test_property_names_in_schemas_are_not_masked_as_secrets() -> None:
    tool = {"name": "log_in", "inputSchema": {"type": "object", "properties": {"password": {"type": "string"}}}}
    assert masked({"tools": [tool]}) == {"tools": [tool]}


def test_recorded_requests_omit_metadata_of_their_conversation() -> None:
    params = {"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 3}}
    assert masked_params(params) == {"name": "add", "arguments": {"a": 1}}
    assert masked_params({"progressToken": 3, "progress": 1}) == {"progress": 1}
    assert masked_params(None) == {}


def test_form_answers_are_masked_in_a_recording() -> None:
    answer = {"action": "accept", "content": {"street": "Elm", "number": 5}}
    assert masked_answer(answer) == {"action": "accept", "content": {"street": "***", "number": "***"}}
    assert masked_params({"name": "ship", "inputResponses": {"where": answer}}) == {
        "name": "ship",
        "inputResponses": {"where": {"action": "accept", "content": {"street": "***", "number": "***"}}},
    }


def test_request_state_is_recorded_only_as_a_marker_for_equality() -> None:
    """The request state may contain the answers of earlier rounds."""
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


def test_sampling_answers_of_a_model_are_recorded_unmasked() -> None:
    answer = {"role": "assistant", "content": {"type": "text", "text": "Tea."}, "model": "m"}
    assert masked_answer(answer) == answer

import json

from emceepee.errors import NotAllowed
from emceepee.tools.declaration.declaration import BackendResult
from emceepee.tools.replies.replies import error_reply, reply
from emceepee.wire.json_types import JsonObject


def test_an_own_result_is_returned_as_compact_json_text_and_structured_content() -> None:
    result = reply({"a": [1, None], "ä": "x"})
    assert result == {
        "content": [{"type": "text", "text": '{"a":[1,null],"ä":"x"}'}],
        "structuredContent": {"a": [1, None], "ä": "x"},
    }
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


def test_a_backend_result_is_returned_unchanged() -> None:
    result: JsonObject = {"content": [{"type": "hologram", "x": None}], "isError": True, "_meta": {"a": 1}, "zz": 2}
    assert reply(BackendResult(result)) is result


def test_an_error_reply_has_a_sentence_for_the_model_and_a_code_for_programs() -> None:
    page = "https://emceepee.github.io/emceepee/errors/ERR_NOT_ALLOWED.html"
    details = {"a": 1, "help": page}
    assert error_reply(NotAllowed("Not so. Do this.", details={"a": 1})) == {
        "content": [{"type": "text", "text": "Not so. Do this."}],
        "isError": True,
        "structuredContent": {"error": {"code": "ERR_NOT_ALLOWED", "message": "Not so. Do this.", "details": details}},
    }

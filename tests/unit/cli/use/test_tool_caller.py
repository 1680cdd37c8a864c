"""How commands use replies that were written for models, and how they read addresses and tokens."""

import json

import pytest

from emceepee.cli.serving_arguments import bare_token
from emceepee.cli.use.tool_caller import error_report, error_words, mcp_url, without_notices
from emceepee.errors import ErrorCode, NotAllowed
from emceepee.tools.replies.notices import notice_text
from emceepee.tools.replies.replies import error_reply
from emceepee.wire.json_types import JsonObject

NOTICE = {"type": "text", "text": notice_text({"events_since_last_response": [], "more": 1, "events_dropped": 2})}
PENDING = {"type": "text", "text": notice_text({"pending_client_action": {}})}
MOVED = {"type": "text", "text": notice_text({"session_moved": "It did."})}
UNSAVED = {"type": "text", "text": notice_text({"state_not_saved": "It is not."})}
BARE = {"type": "text", "text": json.dumps({"events_since_last_response": []})}  # of an emceepee before 0.3
OWN = {"type": "text", "text": '{"events_since_last_response": 1, "mine": 2}'}
QUOTED = {"type": "text", "text": 'The log says:\n{"events_since_last_response":[]}'}


@pytest.mark.parametrize("own", [OWN, QUOTED])
def test_only_notices_are_removed_from_a_tool_reply(own: JsonObject) -> None:
    result = {
        "content": [NOTICE, own, BARE, NOTICE, PENDING, MOVED, UNSAVED],
        "structuredContent": {"sum": 1, "emceepee": {"events_since_last_response": []}},
        "_meta": {},
    }
    kept = {"content": [NOTICE, own], "structuredContent": {"sum": 1}, "_meta": {}}
    assert without_notices(result) == kept
    assert without_notices({"structuredContent": {"emceepee": {"own": 1}}}) == {
        "structuredContent": {"emceepee": {"own": 1}}
    }
    beside = {"tasks": [], "events_since_last_response": [], "more": 3, "pending_client_action": {}}
    assert without_notices({"structuredContent": beside}) == {"structuredContent": {"tasks": []}}
    assert without_notices({"structuredContent": {"more": 3}}) == {"structuredContent": {"more": 3}}
    assert without_notices({"content": "none"}) == {"content": "none"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("127.0.0.1:8080", "http://127.0.0.1:8080/mcp"),
        ("http://x.test/", "http://x.test/mcp"),
        ("https://x.test/mcp", "https://x.test/mcp"),
        ("http://x.test?session=mine", "http://x.test/mcp?session=mine"),
        ("http://x.test/mcp?session=mine", "http://x.test/mcp?session=mine"),
    ],
)
def test_the_path_of_the_mcp_endpoint_is_optional(given: str, expected: str) -> None:
    assert mcp_url(given) == expected


def test_a_token_is_accepted_with_or_without_its_principal_name() -> None:
    assert [bare_token(text) for text in ("ada=secret", " secret ", "c2VjcmV0==")] == ["secret", "secret", "c2VjcmV0=="]


def test_an_own_error_is_printed_with_the_page_for_its_code() -> None:
    result = error_reply(NotAllowed("Not so. Do this."))
    assert error_words(result) == "Not so. Do this."
    assert error_report(result) == f"Not so. Do this.\nSee {ErrorCode.NOT_ALLOWED.help_url}"


@pytest.mark.parametrize("structured", [None, "x", {"error": "x"}, {"error": {"details": {"help": "https://x.test"}}}])
def test_a_help_url_from_a_backend_error_is_not_printed(structured: object) -> None:
    result: JsonObject = {"content": [{"type": "text", "text": "no"}], "structuredContent": structured}
    assert error_report(result) == "no"

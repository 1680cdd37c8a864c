"""Responses that count as a lost session."""

import pytest

from emceepee.backends.http.session_loss import says_session_lost, status_says_session_lost
from emceepee.wire.json_types import JsonObject


def an_error(words: str, *, code: int = -32000, key: int | None = None) -> JsonObject:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": words}}


@pytest.mark.parametrize(
    ("status", "words", "message", "is_lost"),
    [
        (404, "anything", None, True),
        (404, "no such page", an_error("no such page"), False),
        (404, "Session not found", an_error("Session not found", key=7), True),
        (404, "Not Found", an_error("Not Found", code=-32001), True),
        (404, "Not Found", an_error("Not Found", code=-32001, key=7), False),
        (404, "", {"jsonrpc": "2.0", "id": 7, "result": {}}, False),
        (400, "Bad Request: No valid session ID provided", None, True),
        (400, "Invalid or missing session ID\n", None, True),
        (400, "Bad Request: No valid session ID provided.", None, False),
        (400, "your session expired", an_error("your session expired", code=-32001), False),
        (401, "Session not found", None, False),
        (500, "Session not found", None, False),
    ],
)
def test_a_bare_404_or_a_known_session_error_counts_as_a_lost_session(
    status: int, words: str, message: JsonObject | None, is_lost: bool
) -> None:
    assert status_says_session_lost(status, words, message) is is_lost


def test_an_error_that_merely_mentions_a_session_does_not_count_as_a_lost_session() -> None:
    assert says_session_lost("Session not found")
    assert not says_session_lost("browser Session not found")

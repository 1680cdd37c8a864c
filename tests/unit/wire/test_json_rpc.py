from typing import Any

import pytest
from mcp_types import CLIENT_INFO_META_KEY

from emceepee.wire.json_rpc import (
    InvalidMessage,
    Notification,
    Request,
    Response,
    classify,
    client_label,
    error_message,
    is_client_timeout,
    notification_message,
    progress_token,
    result_message,
)
from emceepee.wire.json_types import JsonObject


def message(**parts: Any) -> JsonObject:
    return {"jsonrpc": "2.0", **parts}


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (message(id=1, method="m"), Request(1, "m", None)),
        (message(id="1", method="m", params={}), Request("1", "m", {})),
        (message(id=0, method="m", params=None), Request(0, "m", None)),
        (message(id="", method="m"), Request("", "m", None)),
        (message(id=-5, method="", extra=1), Request(-5, "", None)),
        (message(method="n"), Notification("n", None)),
        (message(method="n", params={"a": 1}), Notification("n", {"a": 1})),
        (message(id=1, result={}), Response(1, message(id=1, result={}))),
        (message(id="a", error={}), Response("a", message(id="a", error={}))),
        (message(id=1, method=None, result=None), Response(1, message(id=1, method=None, result=None))),
    ],
)
def test_a_message_is_classified_by_its_parts(value: JsonObject, meaning: object) -> None:
    assert classify(value) == meaning


@pytest.mark.parametrize(
    ("value", "key", "word"),
    [
        (None, None, "a message is a JSON object"),
        (5, None, "a message is a JSON object"),
        ([], None, "a message is a JSON object"),
        ("x", None, "a message is a JSON object"),
        ({}, None, "jsonrpc"),
        ({"id": 7, "method": "m"}, 7, "jsonrpc"),
        ({"jsonrpc": "1.0", "id": "a", "method": "m"}, "a", "jsonrpc"),
        ({"jsonrpc": 2.0, "id": 7, "method": "m"}, 7, "jsonrpc"),
        (message(id=7), 7, "method must be a string"),
        (message(id=7, method=5), 7, "method must be a string"),
        (message(id=7, method=["m"]), 7, "method must be a string"),
        (message(), None, "method must be a string"),
        (message(id=7, method="m", params=[]), 7, "params must be an object"),
        (message(id=7, method="m", params="x"), 7, "params must be an object"),
        (message(id=None, method="m"), None, "id must be a string or an integer"),
        (message(id=True, method="m"), None, "id must be a string or an integer"),
        (message(id=1.5, method="m"), None, "id must be a string or an integer"),
        (message(id={}, method="m"), None, "id must be a string or an integer"),
    ],
)
def test_an_invalid_message_is_answered_with_the_reason(value: Any, key: Any, word: str) -> None:
    verdict = classify(value)
    assert isinstance(verdict, InvalidMessage)
    assert verdict.reply["id"] == key
    assert verdict.reply["error"]["code"] == -32600
    assert word in verdict.reply["error"]["message"]


@pytest.mark.parametrize("key", [None, True, 1.5, []])
def test_a_response_is_never_answered_even_if_its_id_is_invalid(key: Any) -> None:
    """Otherwise two peers that reject each other's errors would never stop."""
    outcomes: list[JsonObject] = [{"error": {"code": -32700, "message": "Parse error"}}, {"result": {}}]
    for outcome in outcomes:
        assert isinstance(classify(message(id=key, **outcome)), Response)
        assert isinstance(classify(message(**outcome)), Response)


def test_a_response_contains_the_id_of_its_request_unchanged() -> None:
    assert result_message("1", {"a": 1}) == {"jsonrpc": "2.0", "id": "1", "result": {"a": 1}}
    assert error_message(None, -1, "x") == {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": "x"}}
    assert error_message(1, -1, "x", [])["error"] == {"code": -1, "message": "x", "data": []}


def test_a_notification_message_has_no_id_and_only_the_given_params() -> None:
    assert notification_message("x") == {"jsonrpc": "2.0", "method": "x"}
    assert notification_message("x", {}) == {"jsonrpc": "2.0", "method": "x", "params": {}}


@pytest.mark.parametrize(
    ("params", "token"),
    [
        (None, None),
        ({}, None),
        ({"_meta": None}, None),
        ({"_meta": []}, None),
        ({"_meta": {}}, None),
        ({"_meta": {"progressToken": 0}}, 0),
        ({"_meta": {"progressToken": "t"}}, "t"),
        ({"_meta": {"progressToken": True}}, None),
        ({"_meta": {"progressToken": 1.5}}, None),
        ({"_meta": {"progressToken": {}}}, None),
    ],
)
def test_a_progress_token_is_a_string_or_an_integer(params: JsonObject | None, token: Any) -> None:
    assert progress_token(params) == token


@pytest.mark.parametrize(
    ("reason", "is_timeout"),
    [
        ("McpError: MCP error -32001: Request timed out", True),  # TypeScript SDK 1, its own timeout
        ("SdkError: Request timed out", True),  # TypeScript client 2, likewise
        ("TimeoutError: The operation was aborted due to timeout", True),  # both, with AbortSignal.timeout
        ("timed out after 0.3s", True),  # Python SDK 2 and FastMCP
        ("request timeout", True),  # the Rust SDK
        ("context deadline exceeded", True),  # the Go SDK
        ("REQUEST TIMED OUT", True),
        ("AbortError: This operation was aborted", False),  # both of TypeScript, when a program gives up
        ("caller cancelled", False),  # Python SDK 2 and FastMCP, likewise
        ("context canceled", False),  # the Go SDK, likewise
        ("user said no", False),
        ("", False),
        (None, False),
        (-32001, False),
        (["timeout"], False),
    ],
)
def test_the_cancel_reason_shows_whether_the_client_timed_out(reason: Any, is_timeout: bool) -> None:
    assert is_client_timeout(Notification("notifications/cancelled", {"requestId": 1, "reason": reason})) is is_timeout


def test_a_cancellation_without_a_reason_is_not_a_timeout() -> None:
    assert not is_client_timeout(Notification("notifications/cancelled", {"requestId": 1}))
    assert not is_client_timeout(Notification("notifications/cancelled", None))


@pytest.mark.parametrize(
    ("info", "label"),
    [
        ({"name": "claude-code", "version": "2.1.0"}, "claude-code 2.1.0"),
        ({"name": "claude-code"}, "claude-code"),
        ({"name": "x" * 200, "version": "1"}, "x" * 100),
        ({"name": "a\x1b[31m\nb\u202e", "version": "\x00"}, "a[31mb"),
        ({"name": " ", "version": ""}, None),
        ({"name": 5, "version": None}, None),
        ({}, None),
        ("text", None),
        (None, None),
    ],
)
def test_the_client_label_contains_its_name_and_version_in_either_era(info: Any, label: str | None) -> None:
    assert client_label({"clientInfo": info}) == label
    assert client_label({"_meta": {CLIENT_INFO_META_KEY: info}}) == label


@pytest.mark.parametrize("params", [None, [], "x", {}, {"_meta": None}, {"_meta": []}])
def test_a_client_without_a_name_has_no_label(params: Any) -> None:
    assert client_label(params) is None

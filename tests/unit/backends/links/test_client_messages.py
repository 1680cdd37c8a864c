"""The messages that every link sends, and the parsing of their responses."""

from typing import Any

import pytest

from emceepee.backends.link import LinkError, RpcError
from emceepee.backends.links.client_messages import (
    cancel_message,
    names_none,
    names_request,
    number_of,
    outcome,
    request_message,
)
from emceepee.wire.json_types import JsonObject


def test_building_a_request_leaves_its_parameters_and_meta_unchanged() -> None:
    params: JsonObject = {"_meta": {"a": 1}}
    meta: JsonObject = {"b": 2}
    message = request_message(5, "tools/call", params, meta=meta, wants_progress=True)
    assert message["params"] == {"_meta": {"a": 1, "b": 2, "progressToken": 5}}
    assert (params, meta) == ({"_meta": {"a": 1}}, {"b": 2})


def test_a_request_message_contains_only_the_fields_that_are_set() -> None:
    odd = request_message(5, "x", {"_meta": "odd"}, meta=None, wants_progress=True)
    assert odd["params"] == {"_meta": {"progressToken": 5}}
    bare = request_message(5, "x", None, meta=None, wants_progress=False)
    assert bare == {"jsonrpc": "2.0", "id": 5, "method": "x"}


def test_a_cancel_message_is_a_notification_that_names_its_request() -> None:
    assert cancel_message(5) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 5, "reason": "cancelled by the caller"},
    }


@pytest.mark.parametrize("message", [None, [], "x", {}, {"result": []}])
def test_an_invalid_response_message_has_no_outcome(message: Any) -> None:
    with pytest.raises(LinkError):
        outcome(message)


def test_the_outcome_of_a_response_is_its_result_or_its_full_error() -> None:
    assert outcome({"result": {"a": 1}}) == {"a": 1}
    with pytest.raises(RpcError) as refused:
        outcome({"error": {"code": 1, "message": "no", "data": 2}})
    assert refused.value.error == {"code": 1, "message": "no", "data": 2}


@pytest.mark.parametrize(("key", "is_ours"), [(7, True), ("7", True), (7.0, True), (8, False), (None, False)])
def test_a_response_matches_our_request_by_its_id(key: Any, is_ours: bool) -> None:
    assert names_request(key, 7) is is_ours
    assert (number_of(key) == 7) is is_ours


@pytest.mark.parametrize(("key", "is_none"), [(None, True), ("server-error", True), ("8", False), (8, False)])
def test_an_error_response_may_name_no_request(key: Any, is_none: bool) -> None:
    assert names_none(key) is is_none

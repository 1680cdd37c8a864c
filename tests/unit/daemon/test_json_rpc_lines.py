"""Knowledge of the protocol in the pipe to a daemon."""

from typing import Any

import pytest

from emceepee.daemon.json_rpc_lines import REPEATABLE_METHODS, REPEATABLE_TOOLS, change_nothing, is_not_begun
from emceepee.tools.catalogue import TOOLS
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import REQUEST_CANCELLED, SHUTTING_DOWN, error_message, result_message
from emceepee.wire.protocol import CLIENT_METHODS, INVALID_REQUEST

WAITING_TOOLS = {"await_activity", "get_task_result"}


def test_the_repeatable_tools_are_exactly_the_read_only_ones_that_do_not_wait() -> None:
    assert {tool.name for tool in TOOLS if tool.effect.read_only} - WAITING_TOOLS == REPEATABLE_TOOLS


def test_the_repeatable_methods_exist() -> None:
    assert REPEATABLE_METHODS < CLIENT_METHODS


def test_the_refusal_of_a_stopping_daemon_is_distinguished_from_other_responses() -> None:
    assert is_not_begun(encode(error_message(1, INVALID_REQUEST, SHUTTING_DOWN)))
    others = [
        error_message(1, REQUEST_CANCELLED, SHUTTING_DOWN),
        error_message(1, INVALID_REQUEST, "no"),
        result_message(1, {"text": SHUTTING_DOWN}),
    ]
    assert not any(is_not_begun(encode(other)) for other in others)


@pytest.mark.parametrize(
    "message",
    [
        {"method": "tools/call"},
        {"method": "tools/call", "params": {"name": "execute_tool"}},
        {"method": "tools/call", "params": {"name": ["list_tools"]}},
        {"method": "tools/call", "params": ["list_tools"]},
        {"method": ["ping"]},
        {"method": "resources/subscribe"},
        {"id": 1, "result": {}},
    ],
)
def test_a_request_that_may_have_effects_is_not_repeated(message: dict[str, Any]) -> None:
    assert not change_nothing([message])
    assert not change_nothing([{"method": "ping"}, message])
    assert change_nothing([{"method": "ping"}])
    assert not change_nothing([])

import pytest

from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.declaration.hints import Load, ToolEffect
from emceepee.wire.json_types import JsonObject
from support.sessions.catalogue import CATALOGUE

EACH = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
READ_ONLY = {
    *("list_servers", "get_server_status", "list_tools", "list_resources", "list_resource_templates"),
    *("read_resource", "list_prompts", "get_prompt", "complete", "get_elicitations", "get_sampling_requests"),
    *("list_tasks", "get_task", "get_task_result", "list_timers", "get_timer", "await_activity", "read_result"),
    "codemode_search",
}
CORE = {
    *("list_servers", "add_server", "list_tools", "execute_tool", "codemode_search"),
    *("read_resource", "await_activity", "get_task_result", "respond_to_elicitation", "codemode_execute"),
}


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (ToolEffect(), {"destructiveHint": True}),
        (ToolEffect(read_only=True), {"readOnlyHint": True}),
        (ToolEffect(read_only=True, destructive=False, idempotent=True), {"readOnlyHint": True}),
        (ToolEffect(destructive=False), {"destructiveHint": False}),
        (ToolEffect(idempotent=True), {"destructiveHint": True, "idempotentHint": True}),
        (ToolEffect(open_world=False), {"destructiveHint": True, "openWorldHint": False}),
        (ToolEffect(read_only=True, open_world=False), {"readOnlyHint": True, "openWorldHint": False}),
    ],
)
def test_tool_annotations_contain_the_most_important_hint_and_non_default_ones(
    effect: ToolEffect, said: JsonObject
) -> None:
    assert effect.annotations() == said


def test_exactly_these_tools_are_read_only() -> None:
    assert {tool.name for tool in TOOLS if tool.effect.read_only} == READ_ONLY


def test_destructive_tools_are_annotated_as_destructive() -> None:
    destructive = {tool.name for tool in TOOLS if tool.effect.destructive and not tool.effect.read_only}
    assert destructive == {
        *("remove_server", "reconnect_server", "execute_tool", "respond_to_elicitation", "cancel_task"),
        *("cancel_elicitation_request", "cancel_sampling_request", "delete_timer", "close_session"),
        *("codemode_execute", "add_server"),  # the latter with `replace`
    }


def test_tools_about_own_records_are_annotated_as_closed_world() -> None:
    own = {tool.name for tool in TOOLS if not tool.effect.open_world}
    assert own == {
        *("list_servers", "get_server_status", "get_notifications", "get_logs", "await_activity"),
        *("get_elicitations", "get_sampling_requests", "list_tasks", "get_task", "get_task_result"),
        *("set_timer", "list_timers", "get_timer", "delete_timer", "open_session", "read_result"),
    }


@EACH
def test_every_tool_has_a_short_unique_title(tool: Tool) -> None:
    assert 5 <= len(tool.title) <= 40
    assert [other.name for other in TOOLS if other.title == tool.title] == [tool.name]


@EACH
def test_every_tool_is_either_always_loaded_or_found_by_a_few_words(tool: Tool) -> None:
    assert tool.load.always == (tool.name in CORE)
    assert (tool.load.search is None) == tool.load.always
    assert len(tool.load.search or "") <= 50


def test_only_the_list_of_tools_requests_a_larger_result_size() -> None:
    assert {tool.name: tool.load.result_chars for tool in TOOLS if tool.load.result_chars} == {"list_tools": 100_000}


def test_load_hints_use_the_keys_that_clients_know() -> None:
    assert CATALOGUE["list_tools"].load.meta() == {
        "anthropic/alwaysLoad": True,
        "anthropic/maxResultSizeChars": 100_000,
    }
    assert Load(search="a b").meta() == {"anthropic/searchHint": "a b"}
    assert Load().meta() == {}

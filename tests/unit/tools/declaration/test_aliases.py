import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codemode.bindings import BadScriptCall
from emceepee.errors import InvalidArguments
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.aliases import own_call
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.tools_for_scripts import ToolsForScripts
from emceepee.wire.json_types import JsonObject
from support.sessions.catalogue import CATALOGUE

ALIASED = [(tool.name, other, own) for tool in TOOLS for other, own in tool.aliases.others.items()]
TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
CALL: JsonObject = {"server": "a", "tool": "b"}


def resolved(tool: str, /, **arguments: Any) -> JsonObject:
    return CATALOGUE[tool].aliases.resolve(arguments)


def refused(tool: str, /, **arguments: Any) -> dict[str, str]:
    with pytest.raises(InvalidArguments) as caught:
        CATALOGUE[tool].check(resolved(tool, **arguments))
    return {item["argument"]: item["problem"] for item in caught.value.details["problems"]}


@pytest.mark.parametrize(
    ("tool", "other", "own"),
    [
        ("get_task", "taskId", "task_id"),
        ("get_task_result", "taskId", "task_id"),
        ("cancel_task", "taskId", "task_id"),
        ("respond_to_elicitation", "requestId", "request_id"),
        ("respond_to_sampling", "requestId", "request_id"),
        ("cancel_sampling_request", "requestId", "request_id"),
        ("get_timer", "timerId", "timer_id"),
        ("delete_timer", "timerId", "timer_id"),
        ("await_activity", "lastEventId", "last_event_id"),
        ("remove_server", "server", "name"),
        ("reconnect_server", "server", "name"),
        ("add_server", "server", "name"),
        ("get_server_status", "name", "server"),
        ("read_resource", "name", "server"),
        ("get_logs", "name", "server"),
        ("execute_tool", "arguments", "args"),
        ("get_prompt", "args", "arguments"),
    ],
)
def test_an_argument_is_accepted_under_its_alias(tool: str, other: str, own: str) -> None:
    assert resolved(tool, **{other: "x"}) == {own: "x"}


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("get_prompt", "name"),  # the name of the prompt
        ("add_server", "arguments"),  # its args are those of the program, and not an object
        ("list_tools", "name"),  # its server is a pattern, and the name may be a tool's
        ("complete", "arguments"),
        ("list_servers", "server"),
    ],
)
def test_an_ambiguous_name_is_not_accepted_as_an_alias(tool: str, name: str) -> None:
    assert resolved(tool, **{name: "x"}) == {name: "x"}


def test_an_argument_and_its_alias_must_agree() -> None:
    assert resolved("get_task", task_id="a", taskId="a") == {"task_id": "a"}
    assert refused("get_task", task_id="a", taskId="b") == {
        "taskId": "stands for task_id, which is given as well and differs; pass one of them"
    }
    assert refused("execute_tool", server="a", name="b") == {
        "tool": "is missing",
        "name": "stands for server, which is given as well and differs; pass one of them",
    }


@pytest.mark.parametrize(
    ("tool", "argument", "rest"),
    [
        ("execute_tool", "args", CALL),
        ("get_prompt", "arguments", {"server": "a", "name": "b"}),
        ("respond_to_elicitation", "content", {"request_id": "r", "action": "accept"}),
        ("complete", "context", {"server": "a", "ref": "b", "argument": "c", "value": ""}),
    ],
)
def test_an_object_argument_may_be_given_as_json_text(tool: str, argument: str, rest: JsonObject) -> None:
    given = {"city": "Łódź", "note": "1\n2"}
    assert resolved(tool, **rest, **{argument: f" {json.dumps(given)}\n"}) == {**rest, argument: given}
    for other in ("", "soon", "[1]", "5", "null", '{"a": 1', "{'a': 1}"):
        assert refused(tool, **rest, **{argument: other})[argument].startswith("expected an object, found ")


def test_json_text_is_accepted_under_an_alias_and_compared_as_an_object() -> None:
    assert resolved("execute_tool", **CALL, arguments='{"a": 1}') == {**CALL, "args": {"a": 1}}
    assert resolved("execute_tool", **CALL, arguments='{"a": 1}', args={"a": 1}) == {**CALL, "args": {"a": 1}}


def test_an_argument_that_may_be_text_is_never_parsed_as_json() -> None:
    given = {"requestId": "r", "role": "assistant", "model": "m", "content": '{"a": 1}'}
    assert resolved("respond_to_sampling", **given)["content"] == '{"a": 1}'


def test_no_alias_is_in_a_tool_schema() -> None:
    assert [alias for alias in ALIASED if alias[1] in CATALOGUE[alias[0]].input_schema["properties"]] == []


# Input that was valid before stays unchanged.


def of_type(item: JsonObject) -> st.SearchStrategy[Any]:
    """Return a strategy for values that the argument accepts."""
    if "enum" in item:
        return st.sampled_from(item["enum"])
    match item.get("type"):
        case "integer":
            return st.integers(item.get("minimum", 1), item.get("maximum", 1000))
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(of_type(item["items"]), max_size=2)
        case "object":
            return st.dictionaries(TEXT, TEXT, max_size=2)
    return TEXT


@given(st.sampled_from(TOOLS), st.data())
def test_a_call_without_aliases_is_not_even_copied(tool: Tool, data: st.DataObject) -> None:
    shape = {name: of_type(item) for name, item in tool.input_schema["properties"].items()}
    required = tool.input_schema.get("required", [])
    arguments = data.draw(
        st.fixed_dictionaries(
            {name: shape[name] for name in required},
            optional={name: shape[name] for name in shape if name not in required},
        )
    )
    assert tool.aliases.resolve(arguments) is arguments


@given(st.sampled_from(TOOLS), st.data())
def test_aliases_do_not_change_a_call_that_is_valid_without_them(tool: Tool, data: st.DataObject) -> None:
    """For any values: input that is valid without aliases stays valid and unchanged."""
    names = st.sampled_from([*tool.input_schema["properties"], *tool.aliases.others, "stranger"])
    arguments = data.draw(st.dictionaries(names, JSON, max_size=5))
    before = dict(arguments)
    resolved = tool.aliases.resolve(arguments)
    assert arguments == before
    try:
        plain = tool.check(arguments)
    except InvalidArguments:
        return
    assert tool.check(resolved) == plain


@given(st.sampled_from(ALIASED), st.data())
def test_an_alias_means_the_same_as_its_argument_and_changes_nothing_else(
    alias: tuple[str, str, str], data: st.DataObject
) -> None:
    tool, other, own = CATALOGUE[alias[0]], alias[1], alias[2]
    rest = [name for name in tool.input_schema["properties"] if name != own]
    arguments = data.draw(st.dictionaries(st.sampled_from([*rest, "stranger"]), JSON, max_size=4))
    value = data.draw(JSON)
    assert tool.aliases.resolve({**arguments, other: value}) == tool.aliases.resolve({**arguments, own: value})


# Calls of emceepee's own tools inside execute_tool.

TIMERS = {"tool": "list_timers", "args": {"a": 1}}


@pytest.mark.parametrize(
    ("arguments", "inner"),
    [
        ({"server": "emceepee", **TIMERS}, {"a": 1}),
        ({"name": "emceepee", "tool": "list_timers", "arguments": {"a": 1}}, {"a": 1}),
        ({"server": "emceepee", "tool": "list_timers", "args": '{"a":1}'}, {"a": 1}),
        ({"server": "emceepee", "tool": "list_timers", "session": "s"}, {"session": "s"}),
        ({"server": "emceepee", "tool": "list_timers", "args": "{"}, "{"),
    ],
)
def test_the_inner_call_of_execute_tool_is_found_in_any_spelling(arguments: dict[str, Any], inner: object) -> None:
    assert own_call({"name": "execute_tool", "arguments": arguments}) == {"name": "list_timers", "arguments": inner}


@pytest.mark.parametrize(
    "params",
    [
        {"name": "list_tools", "arguments": {"server": "emceepee"}},
        {"name": "execute_tool", "arguments": {"server": "one", "name": "emceepee", **TIMERS}},
        {"name": "execute_tool", "arguments": ["emceepee"]},
        {"name": "execute_tool"},
    ],
)
def test_a_call_of_another_server_or_tool_is_not_an_inner_call(params: dict[str, Any]) -> None:
    assert own_call(params) is None


def test_a_script_calls_the_inner_tool_through_any_number_of_wrappers() -> None:
    tools = ToolsForScripts(TOOLS)
    wrapped = {"server": "emceepee", "tool": "execute_tool", "args": {"server": "emceepee", **TIMERS}}
    assert tools.resolve("execute_tool", wrapped) == ("list_timers", {"a": 1})
    assert tools.resolve("execute_tool", {"server": "one", **TIMERS}) == ("execute_tool", {"server": "one", **TIMERS})
    assert tools.resolve("execute_tool", {"server": "emceepee", "tool": "list_timers"}) == ("list_timers", {})
    for wrong in ({"tool": 7}, {"tool": "list_timers", "args": "{"}):
        with pytest.raises(BadScriptCall):
            tools.resolve("execute_tool", {"server": "emceepee", **wrong})

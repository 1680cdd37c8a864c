"""The maximum of an argument in tools/list is the configured one, and validation enforces it."""

from typing import Any

import pytest

from emceepee.errors import InvalidArguments
from emceepee.state.limits import Limits
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.argument_limits import fit_tools
from emceepee.tools.declaration.declaration import Tool
from emceepee.wire.json_types import JsonObject

REQUIRED: dict[str, JsonObject] = {
    "execute_tool": {"server": "s", "tool": "t"},
    "read_resource": {"server": "s", "uri": "u"},
    "get_prompt": {"server": "s", "name": "p"},
    "get_task_result": {"task_id": "t"},
    "await_activity": {},
    "set_timer": {"message": "m"},
    "add_server": {"name": "a", "url": "http://h"},
}
BOUNDED = [
    ("execute_tool", "timeout_ms", "longest_call_seconds"),
    ("read_resource", "timeout_ms", "longest_call_seconds"),
    ("get_prompt", "timeout_ms", "longest_call_seconds"),
    ("add_server", "timeout_ms", "longest_call_seconds"),
    ("await_activity", "timeout_ms", "longest_call_seconds"),
    ("execute_tool", "task_ttl_ms", "longest_task_ttl_seconds"),
    ("get_task_result", "timeout_ms", "longest_task_ttl_seconds"),
    ("set_timer", "duration_ms", "longest_timer_seconds"),
]


def fitted(name: str, **limits: float) -> Tool:
    return next(tool for tool in fit_tools(TOOLS, Limits(**limits)) if tool.name == name)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [0.05, 10, 100_000])
@pytest.mark.parametrize(("name", "argument", "limit"), BOUNDED)
def test_the_configured_argument_limit_is_listed_and_checked(
    name: str, argument: str, limit: str, seconds: float
) -> None:
    tool, most = fitted(name, **{limit: seconds}), round(seconds * 1000)
    assert tool.input_schema["properties"][argument]["maximum"] == most
    checked: Any = tool.check(REQUIRED[name] | {argument: most})
    assert getattr(checked, argument) == most
    with pytest.raises(InvalidArguments, match=f"{argument}: may be at most {most}, found {most + 1}"):
        tool.check(REQUIRED[name] | {argument: most + 1})


@pytest.mark.parametrize(("name", "argument", "limit"), BOUNDED)
def test_without_a_configuration_the_documented_argument_limit_applies(name: str, argument: str, limit: str) -> None:
    assert fitted(name).input_schema["properties"][argument]["maximum"] == getattr(Limits(), limit) * 1000


def test_tools_without_configured_limits_are_the_same_objects() -> None:
    assert fit_tools(TOOLS, Limits()) == list(TOOLS)
    changed = [
        tool.name
        for tool, usual in zip(fit_tools(TOOLS, Limits(longest_timer_seconds=5)), TOOLS, strict=True)
        if tool is not usual
    ]
    assert changed == ["set_timer"]


def test_fitting_a_tool_to_a_limit_changes_nothing_else() -> None:
    usual, other = fitted("add_server"), fitted("add_server", longest_call_seconds=5)
    assert (other.private, other.description, other.effect) == (usual.private, usual.description, usual.effect)
    assert list(other.input_schema["properties"]) == list(usual.input_schema["properties"])
    with pytest.raises(InvalidArguments, match="emceepee itself sets Host"):
        other.check(REQUIRED["add_server"] | {"headers": {"Host": "x"}})
    with pytest.raises(InvalidArguments, match="no such argument"):
        other.check(REQUIRED["add_server"] | {"stranger": 1})


def test_a_fitted_default_stays_within_the_limit_and_the_description_shows_it() -> None:
    waiting: Any = fitted("await_activity", longest_call_seconds=5).check({})
    assert waiting.timeout_ms == 5000
    described = fitted("execute_tool", quiet_call_seconds=20, task_ttl_seconds=30).input_schema["properties"]
    assert described["timeout_ms"]["description"].endswith("default 20000")
    assert described["task_ttl_ms"]["description"].endswith("default 30000")
    listed = fitted("list_tools", full_list_bytes=65_536).input_schema["properties"]["detail"]
    assert listed["description"].endswith("up to 64 kB")
    assert (listed["default"], listed["enum"]) == ("full", ["names", "summary", "full"])

import tracemalloc

import pytest

from emceepee.errors import InvalidArguments, Problem
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import MOST_ENTRIES, Tool
from emceepee.wire.json_types import JsonObject
from support.sessions.catalogue import CATALOGUE

EACH = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def problems(tool: str, /, **arguments: object) -> dict[str, str]:
    with pytest.raises(InvalidArguments) as caught:
        CATALOGUE[tool].check(arguments)
    assert str(caught.value).startswith(f"{tool} cannot be called like this: ")
    return {item["argument"]: item["problem"] for item in caught.value.details["problems"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "stranger", "meant"),
    [
        ("execute_tool", {"server": "a", "tool": "b", "arg": {}}, "arg", "args"),
        ("execute_tool", {"server": "a", "tool": "b", "timeout": 5}, "timeout", "timeout_ms"),
        ("list_tools", {"servers": "x"}, "servers", "server"),
        ("add_server", {"name": "a", "command": "x", "allowed_tools": []}, "allowed_tools", "allowedTools"),
        ("get_prompt", {"server": "a", "name": "b", "argument": {}}, "argument", "arguments"),
        ("get_server_status", {"server": "a", "Server": "b"}, "Server", "server"),
    ],
)
def test_an_unknown_argument_is_rejected_with_the_closest_match(
    tool: str, arguments: JsonObject, stranger: str, meant: str
) -> None:
    found = problems(tool, **arguments)
    assert found[stranger].startswith("no such argument; did you mean ")
    assert meant in found[stranger]


def test_an_unknown_argument_without_a_close_match_is_rejected_with_the_valid_ones() -> None:
    assert problems("remove_server", name="a", zzz=1) == {"zzz": "no such argument; there are name"}


def test_all_argument_problems_are_reported_at_once() -> None:
    assert set(problems("execute_tool", server=5, timeout_ms=-1)) == {"server", "tool", "timeout_ms"}


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"name": "a", "command": "x", "restartConfig": {"maxAttempts": "many"}}, "restartConfig.maxAttempts"),
        ({"name": "a", "command": "x", "args": ["a", 5]}, "args.1"),
        ({"name": "a", "command": "x", "env": {"A": 1}}, "env.A"),
        ({"name": "a"}, "arguments"),
    ],
)
def test_an_argument_problem_is_reported_with_its_path(arguments: JsonObject, where: str) -> None:
    assert list(problems("add_server", **arguments)) == [where]


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "code"),
    [
        ("get_task", {}, "task_id", "required"),
        ("get_task", {"task_id": "a", "zzz": 1}, "zzz", "additionalProperties"),
        ("get_task", {"task_id": 5}, "task_id", "type"),
        ("await_activity", {"timeout_ms": -1}, "timeout_ms", "minimum"),
        ("await_activity", {"timeout_ms": 10**9}, "timeout_ms", "maximum"),
        ("respond_to_elicitation", {"request_id": "a", "action": "maybe"}, "action", "enum"),
        ("add_server", {"name": "", "command": "x"}, "name", "minLength"),
        ("add_server", {"name": "a", "command": "x", "env": {"A": 1}}, "env.A", "type"),
        ("add_server", {"name": "a"}, None, None),
    ],
)
def test_an_argument_problem_has_the_fields_of_a_form_problem_and_its_earlier_names(
    tool: str, arguments: JsonObject, field: str | None, code: str | None
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        CATALOGUE[tool].check(arguments)
    [told] = caught.value.details["problems"]
    assert set(told) == {*Problem._fields, "argument", "problem"}
    assert (told["field"], told["code"]) == (field, code)
    assert (told["argument"], told["problem"]) == (field or "arguments", told["message"])


@EACH
def test_every_tool_rejects_unknown_arguments(tool: Tool) -> None:
    assert "xyzzy" in problems(tool.name, xyzzy=1)


@pytest.mark.parametrize("argument", ["command", "cwd"])
def test_an_overlong_path_argument_is_rejected_without_repeating_it(argument: str) -> None:
    given = {"command": "x"} | {argument: "/" * 4097}
    assert problems("add_server", name="a", **given) == {argument: "may have at most 4096 characters"}
    CATALOGUE["add_server"].check({"name": "a", "command": "x"} | {argument: "/" * 4096})


@pytest.mark.parametrize(
    ("tool", "name", "value"),
    [
        ("get_logs", "sources", ["x"] * 500_000),
        ("get_prompt", "arguments", {str(number): number for number in range(200_000)}),
        ("respond_to_sampling", "content", [1] * 500_000),
        ("add_server", "args", [1] * 500_000),
        ("add_server", "oauth", {"identity_provider": {str(number): number for number in range(200_000)}}),
        ("add_server", "oauth", [[[]] * 1000] * 500),
        ("add_server", "args", [1] * (MOST_ENTRIES + 1)),
    ],
)
def test_an_argument_with_too_many_entries_is_rejected_before_each_is_checked(
    tool: str, name: str, value: object
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidArguments) as caught:
            CATALOGUE[tool].check({name: value})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    [problem] = caught.value.details["problems"]
    assert (problem["field"], problem["code"]) == (name, "maxItems")
    assert problem["message"] == "may have at most 10000 entries"
    assert peak < 1 << 20


def test_large_objects_and_long_lists_within_the_limit_are_accepted() -> None:
    wide: JsonObject = {"rows": [[number] for number in range(MOST_ENTRIES)]}
    for tool, arguments in (
        ("execute_tool", {"server": "a", "tool": "b", "args": wide}),
        ("respond_to_elicitation", {"request_id": "a", "action": "accept", "content": wide}),
        ("respond_to_sampling", {"request_id": "a", "role": "user", "model": "m", "content": [wide, wide]}),
        ("add_server", {"name": "a", "command": "c", "args": ["x"] * MOST_ENTRIES}),
    ):
        CATALOGUE[tool].check(arguments)


def test_only_the_first_of_many_argument_problems_are_reported() -> None:
    strangers = {f"{'x' * 1000}{number}": 1 for number in range(100)}
    with pytest.raises(InvalidArguments) as caught:
        CATALOGUE["list_servers"].check(strangers)
    assert len(caught.value.details["problems"]) == 20
    assert len(str(caught.value)) < 10_000
    with pytest.raises(InvalidArguments, match="it has 100000 arguments"):
        CATALOGUE["list_servers"].check({f"x{number}": 1 for number in range(100_000)})
    headers = {f"h{number}": 1 for number in range(10_000)}
    with pytest.raises(InvalidArguments) as caught:
        CATALOGUE["add_server"].check({"name": "a", "url": "http://h", "headers": headers})
    assert len(caught.value.details["problems"]) == 20

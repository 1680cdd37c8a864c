import ast

import pytest

from emceepee.codemode.bindings import METHODS, BadScriptCall, bind, camel_case, mcp_stub, read, said, spoken
from emceepee.codemode.values import budget_of
from emceepee.wire.json_types import JsonObject


def test_every_script_method_has_a_stub_under_both_its_names() -> None:
    names = [
        item.name for item in ast.parse(mcp_stub()).body if isinstance(item, ast.AsyncFunctionDef | ast.FunctionDef)
    ]
    assert set(names) == set(METHODS)
    assert camel_case("list_resource_templates") == "listResourceTemplates"


def test_script_arguments_are_bound_by_position_and_by_name_and_none_is_dropped() -> None:
    assert bind(("a", "b", "c"), (1,), {"c": 3, "b": None}, budget_of(100)) == {"a": 1, "c": 3}
    for args, kwargs in (((1, 2), {}), ((1,), {"a": 2})):
        with pytest.raises(BadScriptCall):
            bind(("a",), args, kwargs, budget_of(100))


IMAGE: JsonObject = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [{"type": "text", "text": "a"}, IMAGE]}, ["a", IMAGE]),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "c"}}]}, "c"),
        ({"content": [], "structuredContent": {"a": 1}}, {"a": 1}),
        ({"structuredContent": {"result": [1]}}, {"result": [1]}),
        ({"structuredContent": {"result": [1]}, "_meta": {"fastmcp": {"wrap_result": True}}}, [1]),
        ({"content": "rubbish"}, ""),
        ({}, ""),
    ],
)
def test_a_tool_result_is_reduced_to_its_content(result: JsonObject, expected: object) -> None:
    assert said(result) == expected


def test_resource_and_prompt_results_are_reduced_to_their_content() -> None:
    assert read([{"uri": "a:b", "text": "a"}]) == "a"
    assert read([{"uri": "a:b", "blob": "aGk="}]) == [{"uri": "a:b", "blob": "aGk="}]
    assert read(None) == ""
    assert spoken([{"role": "user", "content": [{"type": "text", "text": "a"}]}, 3]) == [
        {"role": "user", "content": "a"}
    ]

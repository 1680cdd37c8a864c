import pytest
from jsonschema import Draft202012Validator

from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Tool
from emceepee.wire.codec import encode

EACH = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


def test_every_tool_name_is_listed_once() -> None:
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)


@EACH
def test_every_tool_has_a_short_description(tool: Tool) -> None:
    most = 900 if tool.name == "codemode_execute" else 250  # which describes a whole library
    assert 10 <= len(tool.description) <= most
    assert "\n" not in tool.description
    assert tool.description.endswith(".")


@EACH
def test_every_tool_schema_is_valid(tool: Tool) -> None:
    Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["type"] == "object"


@EACH
def test_every_tool_argument_is_described(tool: Tool) -> None:
    assert [name for name, item in tool.input_schema["properties"].items() if not item.get("description")] == []


@EACH
def test_every_tool_schema_and_its_model_agree_on_required_arguments(tool: Tool) -> None:
    required = {name for name, field in tool.params.model_fields.items() if field.is_required()}
    assert set(tool.input_schema.get("required", [])) == required
    assert set(tool.input_schema["properties"]) == set(tool.params.model_fields)


@EACH
def test_no_tool_schema_contains_titles_references_or_nulls(tool: Tool) -> None:
    text = encode(tool.input_schema)
    for waste in (b'"title"', b'"$ref"', b'"$defs"', b'"null"', b'"default":null'):
        assert waste not in text

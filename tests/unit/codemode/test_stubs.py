import ast
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codemode.python_names import python_names
from emceepee.codemode.stubs import parameters, python_type, signature, takes_more, type_budget
from emceepee.wire.json_types import JsonObject

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "array", "items": {"type": "number"}}, "list[float]"),
        ({"type": "object", "properties": {"a": {}}}, "dict[str, Any]"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"anyOf": [{"type": "string"}, {"type": "boolean"}]}, "str | bool"),
        ({"enum": ["a", "b'c", 3, None]}, "Literal['a', \"b'c\", 3, None]"),
        ({"const": True}, "Literal[True]"),
        ({"enum": []}, "Any"),
        ({"enum": [{}]}, "Any"),
        ({"$ref": "#/$defs/x"}, "Any"),
        ({"type": "widget"}, "Any"),
        ({"type": {}}, "Any"),
        ("string", "Any"),
    ],
)
def test_a_schema_becomes_a_python_type_as_far_as_it_is_understood(schema: object, expected: str) -> None:
    assert python_type(schema, type_budget()) == expected


def test_a_stub_signature_has_keyword_parameters_with_required_ones_first() -> None:
    schema: JsonObject = {
        "properties": {"body": {"type": "string"}, "title": {"type": "string"}, "until": {"type": ["string", "null"]}},
        "required": ["title"],
    }
    assert signature("create", schema) == (
        "async def create(*, title: str, body: str | None = ..., until: str | None = ...) -> Any: ..."
    )
    assert signature("anything", {"type": "object"}) == "async def anything(**more: Any) -> Any: ..."
    assert [parameter.words for parameter in parameters(schema)] == ["title: str", "body?: str", "until?: str | None"]


def test_a_stub_accepts_more_arguments_unless_the_schema_forbids_them() -> None:
    named: JsonObject = {"properties": {"a": {}}}
    assert [
        takes_more(named),
        takes_more(named | {"additionalProperties": True}),
        takes_more({}),
        takes_more(None),
    ] == [*(False, True, True, True)]


@given(JSON, st.text())
def test_a_stub_is_one_valid_function_for_any_schema(schema: object, name: str) -> None:
    schema = {"properties": schema, "required": schema} if isinstance(schema, dict | list) else schema
    (function,) = ast.parse(signature(python_names([name])[name], schema)).body
    assert isinstance(function, ast.AsyncFunctionDef)
    assert len(function.body) == 1


def _many(kind: object, depth: int) -> dict[str, object]:
    """Return a small schema that expands to very many types."""
    items = {"type": "string"} if depth == 0 else _many(kind, depth - 1)
    return {"type": kind, "items": items, **{f"key{number}": 0 for number in range(300)}}


@pytest.mark.parametrize(
    "hostile",
    [
        _many(["array"] * 2000, 4),
        {"anyOf": [{"anyOf": [{"anyOf": [{"type": "array"}] * 100}] * 100}] * 100},
        {"enum": ["x" * 1_000_000] * 50},
        {"type": ["string"] * 1_000_000},
    ],
    ids=["types of types", "unions of unions", "long choices", "many types"],
)
def test_an_expensive_schema_becomes_any_within_little_time(hostile: object) -> None:
    schema = {"properties": {f"a{number}": hostile for number in range(100)}, "required": ["a0"] * 1_000_000}
    began = time.process_time()
    found = parameters(schema)
    assert time.process_time() - began < 1
    assert {parameter.type for parameter in found[1:]} == {"Any"}


def test_the_types_of_all_stubs_share_one_budget() -> None:
    schema = {"properties": {f"a{number}": {"enum": ["x" * 190] * 50} for number in range(100)}}
    budget = type_budget()
    total = sum(len(signature("f", schema, budget)) for _ in range(100))
    assert total < 1_000_000

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codemode.stubs import parameters, python_names, python_type, signature, takes_more
from emceepee.json_types import JsonObject

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_names_become_identifiers_that_all_differ() -> None:
    names = ["create-issue", "create issue", "3d", "_x", "from", "ok", "", "naïve", "None", "create_issue_2"]
    assert list(python_names(names).values()) == [
        *("create_issue", "create_issue_2", "x3d", "x_x", "from_", "ok", "x", "na_ve", "None_", "create_issue_2_2"),
    ]


@given(st.lists(st.text(), unique=True))
def test_any_names_become_identifiers_that_all_differ(names: list[str]) -> None:
    found = list(python_names(names).values())
    assert len(set(found)) == len(names)
    assert all(name.isascii() and name.isidentifier() and not name.startswith("_") for name in found)


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
def test_a_schema_is_a_type_as_far_as_it_is_understood(schema: object, expected: str) -> None:
    assert python_type(schema) == expected


def test_a_signature_has_what_must_be_given_first_and_only_keywords() -> None:
    schema: JsonObject = {
        "properties": {"body": {"type": "string"}, "title": {"type": "string"}, "until": {"type": ["string", "null"]}},
        "required": ["title"],
    }
    assert signature("create", schema) == (
        "async def create(*, title: str, body: str | None = ..., until: str | None = ...) -> Any: ..."
    )
    assert signature("anything", {"type": "object"}) == "async def anything(**more: Any) -> Any: ..."
    assert [parameter.words for parameter in parameters(schema)] == ["title: str", "body?: str", "until?: str | None"]


def test_more_is_taken_where_the_schema_says_so_or_says_nothing() -> None:
    named: JsonObject = {"properties": {"a": {}}}
    assert [
        takes_more(named),
        takes_more(named | {"additionalProperties": True}),
        takes_more({}),
        takes_more(None),
    ] == [*(False, True, True, True)]


@given(JSON, st.text())
def test_whatever_a_server_writes_the_stub_is_one_function(schema: object, name: str) -> None:
    schema = {"properties": schema, "required": schema} if isinstance(schema, dict | list) else schema
    (function,) = ast.parse(signature(python_names([name])[name], schema)).body
    assert isinstance(function, ast.AsyncFunctionDef)
    assert len(function.body) == 1

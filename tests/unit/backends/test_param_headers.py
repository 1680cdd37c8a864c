"""Arguments are mirrored in headers as by the SDK, and a schema that the SDK rejects is rejected."""

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from emceepee.backends.param_headers import MOST_SCHEMAS, header_map, param_headers

MARKS = st.sampled_from(["Region", "region", "no token", "", 5])
PLAIN = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["string", "integer", "number", 5]), "x-mcp-header": MARKS}
)
NAMES = st.sampled_from(["a", "b", "c"])
SCHEMAS = st.recursive(
    PLAIN | st.booleans(),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(NAMES, inner),
            "default": inner,
            "x-mcp-header": MARKS,
        },
    ),
    max_leaves=6,
)
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([1])
ARGUMENTS = st.dictionaries(NAMES, st.recursive(VALUES, lambda inner: st.dictionaries(NAMES, inner), max_leaves=4))


@given(SCHEMAS, ARGUMENTS)
def test_param_headers_match_those_of_the_sdk(schema: Any, arguments: dict[str, Any]) -> None:
    ours = header_map(schema)
    if inbound.find_invalid_x_mcp_header(schema) is not None:
        assert ours is None
        return
    assert ours == inbound.x_mcp_header_map(schema)
    assert param_headers(ours, arguments) == inbound.mcp_param_headers(ours, arguments)


def test_an_argument_too_large_for_a_header_is_omitted() -> None:
    assert param_headers({("a",): "A", ("b",): "B"}, {"a": 10**5000, "b": 1}) == {"Mcp-Param-B": "1"}


def test_a_deeply_nested_schema_is_searched_for_headers_to_the_end() -> None:
    schema: dict[str, Any] = {"x-mcp-header": "Deep", "type": "string"}
    for _ in range(5000):
        schema = {"properties": {"a": schema}}
    assert list((header_map(schema) or {}).values()) == ["Deep"]


def test_many_deeply_nested_arguments_use_little_memory() -> None:
    marked = {"type": "string", "x-mcp-header": "Last"}
    schema: dict[str, Any] = {"properties": {**{str(number): {} for number in range(MOST_SCHEMAS // 2)}, "z": marked}}
    for _ in range(95):
        schema = {"properties": {"a": schema}}
    tracemalloc.start()
    try:
        found = header_map(schema)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == {("a",) * 95 + ("z",): "Last"}
    assert peak < 8 << 20


def test_a_tool_whose_schema_has_too_many_parts_is_not_offered() -> None:
    parts: list[dict[str, Any]] = [{}] * MOST_SCHEMAS
    schemas: list[dict[str, Any]] = [{"anyOf": parts}, {"items": {"oneOf": parts}}]
    schemas.append({"$defs": {str(number): {} for number in range(MOST_SCHEMAS)}})
    for schema in schemas:
        assert header_map(schema | {"not": {}}) is None
    assert header_map({"anyOf": parts}) == {}

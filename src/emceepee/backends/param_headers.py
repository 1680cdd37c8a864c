"""Arguments that a 2026-07-28 HTTP backend wants repeated in headers, so that request routers can read them.

A tool's input schema marks them with `x-mcp-header`. A tool with an invalid mark must not be offered.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import PARAM_HEADER_PREFIX, header_value

MARK = "x-mcp-header"
MOST_SCHEMAS = 50_000  # within one schema; processing takes a few milliseconds, and no useful tool has more
HeaderMap = dict[tuple[str, ...], str]  # from an argument's path of property names to its header's name

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")
# Keywords of JSON Schema that contain subschemas, except `properties`. No other keyword is searched: a mark there is
# data. References are not followed.
_ONE = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"}
    | {"not", "if", "then", "else", "contentSchema"}
)
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
_Way = tuple[Any, str]  # the path to the enclosing schema, and the name: complete paths would grow with the depth
_AT_THE_ROOT: _Way = (None, "")
_OFF_THE_WAY = None  # for a schema that a path of property names alone cannot reach


def header_map(schema: Any) -> HeaderMap | None:
    """Return which arguments go into which headers.

    Return None if the schema has a forbidden mark, or more than `MOST_SCHEMAS` schemas in it.
    """
    found: HeaderMap = {}
    used_names = set()
    try:
        for way, part in _schemas(schema, Budget(max_bytes=0, max_nodes=MOST_SCHEMAS)):
            if MARK not in part:
                continue
            name, path = part[MARK], _path(way)
            if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name) or part.get("type") not in _TYPES:
                return None
            if name.lower() in used_names:
                return None
            used_names.add(name.lower())
            found[path] = name
    except OverBudget:
        return None
    return found


def _path(way: _Way | None) -> tuple[str, ...]:
    """Return the property names on the path, outermost first. At the root and off the path, there are none."""
    names: list[str] = []
    while way is not None and way is not _AT_THE_ROOT:
        way, name = way
        names.append(name)
    return tuple(reversed(names))


def _schemas(root: Any, budget: Budget) -> Iterator[tuple[_Way | None, JsonObject]]:
    """Yield every schema within `root`, with the path to it.

    It uses no recursion, because a sender controls the depth.

    Raises: OverBudget.
    """
    waiting: list[tuple[_Way | None, Any]] = [(_AT_THE_ROOT, root)]
    while waiting:
        way, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield way, schema
        for word, value in schema.items():
            if word in _ONE:
                budget.spend()
                waiting.append((_OFF_THE_WAY, value))
            elif word == "properties" and isinstance(value, dict):
                budget.spend(nodes=len(value))
                waiting += [(None if way is None else (way, name), part) for name, part in value.items()]
            elif word in _MANY and isinstance(value, list):
                budget.spend(nodes=len(value))
                waiting += [(_OFF_THE_WAY, part) for part in value]
            elif word in _NAMED and isinstance(value, dict):
                budget.spend(nodes=len(value))
                waiting += [(_OFF_THE_WAY, part) for part in value.values()]


def param_headers(headers: HeaderMap, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of one call. Missing arguments and non-scalar values have no header."""
    values = ((name, _text(_at(arguments, path))) for path, name in headers.items())
    return {f"{PARAM_HEADER_PREFIX}{name}": header_value(text) for name, text in values if text is not None}


def _at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        return None
    try:
        return str(value)
    except ValueError:  # an integer of thousands of digits
        return None

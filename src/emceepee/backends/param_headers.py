"""Arguments that a 2026-07-28 HTTP backend wants repeated in headers, so that what routes requests can read them.

A tool's input schema says so with `x-mcp-header`. A tool that says it in a wrong way must not be offered.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from emceepee.json_types import JsonObject
from emceepee.protocol import PARAM_HEADER_PREFIX, header_value

MARK = "x-mcp-header"
HeaderMap = dict[tuple[str, ...], str]  # the way to an argument, by names of properties, and its header's name

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")
# Where JSON Schema has schemas within a schema, but for `properties`. No other place is looked at: what is marked there
# is data. References are not followed.
_ONE = frozenset(
    {"items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"}
    | {"not", "if", "then", "else", "contentSchema"}
)
_MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset({"patternProperties", "dependentSchemas", "$defs", "definitions"})
_OFF_THE_WAY = None  # of a schema that is not reached by names of properties alone


def header_map(schema: Any) -> HeaderMap | None:
    """Which arguments go into which headers; None if the schema marks one in a way that the protocol forbids."""
    found: HeaderMap = {}
    taken = set()
    for path, part in _schemas(schema):
        if MARK not in part:
            continue
        name = part[MARK]
        if not path or not isinstance(name, str) or not _TOKEN.fullmatch(name) or part.get("type") not in _TYPES:
            return None
        if name.lower() in taken:
            return None
        taken.add(name.lower())
        found[path] = name
    return found


def _schemas(root: Any) -> Iterator[tuple[tuple[str, ...] | None, JsonObject]]:
    """Every schema in it, with the way there. Without recursion: a schema may be as deep as its sender likes."""
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), root)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        for word, value in schema.items():
            if word == "properties" and isinstance(value, dict):
                waiting += [(None if path is None else (*path, name), part) for name, part in value.items()]
            elif word in _ONE:
                waiting.append((_OFF_THE_WAY, value))
            elif word in _MANY and isinstance(value, list):
                waiting += [(_OFF_THE_WAY, part) for part in value]
            elif word in _NAMED and isinstance(value, dict):
                waiting += [(_OFF_THE_WAY, part) for part in value.values()]


def param_headers(headers: HeaderMap, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Those of one call. What is not among its arguments, or is no plain value, has none."""
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
    except ValueError:  # a number of thousands of digits
        return None

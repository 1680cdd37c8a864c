"""A tool's input schema as a Python signature, for the check of a script before it runs.

Servers write the schemas: whatever they hold, what comes out here is identifiers, literals and names of types.
"""

import keyword
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from emceepee.json_types import JsonObject

MOST_PARAMETERS = 100
MOST_CHOICES = 50
DEEPEST = 4
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter, under the name that Python has for it."""

    name: str  # as the server has it
    python_name: str
    type: str
    is_required: bool
    takes_null: bool

    @property
    def stub(self) -> str:
        if self.is_required:
            return f"{self.python_name}: {self.type}"
        return f"{self.python_name}: {self.type if self.takes_null else f'{self.type} | None'} = ..."

    @property
    def words(self) -> str:
        """For people and models."""
        return f"{self.name}{'' if self.is_required else '?'}: {self.type}"


def python_names(names: Iterable[str]) -> dict[str, str]:
    """Each name as an identifier, all different: `create-issue` is `create_issue`, `from` is `from_`, `3d` is `x3d`.

    If two would be the same, the later one gets a number: `create_issue_2`.
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        wanted = _identifier(name)
        choice, number = wanted, 1
        while choice in taken:
            number += 1
            choice = f"{wanted}_{number}"
        taken.add(choice)
        found[name] = choice
    return found


def _identifier(name: str) -> str:
    word = _NOT_IN_NAMES.sub("_", name[:200])
    if not word or word[0].isdigit() or word[0] == "_":
        word = f"x{word}"
    return f"{word}_" if keyword.iskeyword(word) or word in ("None", "True", "False") else word


def parameters(schema: Any) -> list[Parameter]:
    """Of a tool with that input schema: those that must be given first."""
    properties, required = _properties(schema)
    shown = dict(list(properties.items())[:MOST_PARAMETERS])
    names = python_names(shown)
    found = [
        Parameter(
            name=name,
            python_name=names[name],
            type=python_type(item),
            is_required=name in required,
            takes_null=_takes_null(item),
        )
        for name, item in shown.items()
    ]
    return sorted(found, key=lambda parameter: not parameter.is_required)


def takes_more(schema: Any) -> bool:
    """Whether arguments can be given that the schema does not name."""
    properties, _ = _properties(schema)
    more = schema.get("additionalProperties") if isinstance(schema, dict) else None
    return not properties or len(properties) > MOST_PARAMETERS or more is True or isinstance(more, dict)


def signature(python_name: str, schema: Any) -> str:
    """The line of a stub file."""
    shown = [parameter.stub for parameter in parameters(schema)]
    more = ["**more: Any"] if takes_more(schema) else []
    keywords = f"*, {', '.join(shown + more)}" if shown else ", ".join(more)
    return f"async def {python_name}({keywords}) -> Any: ..."


def python_type(schema: Any, depth: int = 0) -> str:
    """The type as an annotation. What is not understood is Any: the server has the last word anyway."""
    if not isinstance(schema, dict) or depth > DEEPEST:
        return "Any"
    for key in ("enum", "const"):
        if key in schema:
            return _choices(schema[key] if key == "enum" else [schema[key]])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _union(python_type(item, depth + 1) for item in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(python_type(schema | {"type": one}, depth + 1) for one in kind)
    if kind == "array":
        return f"list[{python_type(schema.get('items'), depth + 1)}]"
    if kind == "object":
        return "dict[str, Any]"
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _choices(values: Any) -> str:
    if not isinstance(values, list) or not 0 < len(values) <= MOST_CHOICES:
        return "Any"
    if not all(value is None or isinstance(value, str | int | bool) for value in values):
        return "Any"
    return f"Literal[{', '.join(ascii(value) for value in values)}]"


def _union(types: Iterable[str]) -> str:
    found = list(dict.fromkeys(types))
    return "Any" if not found or "Any" in found or len(found) > MOST_CHOICES else " | ".join(found)


def _properties(schema: Any) -> tuple[JsonObject, frozenset[str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    named = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    return properties if isinstance(properties, dict) else {}, frozenset(named)


def _takes_null(schema: Any) -> bool:
    return python_type(schema) == "Any" or "None" in re.split(r"[^A-Za-z]+", python_type(schema))

"""Converts a tool's input schema to a Python signature, for the check of a script before it runs.

Servers write the schemas. For any schema, the signature consists of identifiers, literals, and type names. Types spend
from a budget; when it is exhausted, every further type is Any.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.python_names import python_names
from emceepee.wire.json_types import JsonObject

MOST_PARAMETERS = 100
MOST_CHOICES = 50
LONGEST_CHOICE = 200  # characters
MOST_REQUIRED = 1000  # names that are read
DEEPEST = 4
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter under its Python name."""

    name: str  # the server's name
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
        """The parameter as shown to people and models."""
        return f"{self.name}{'' if self.is_required else '?'}: {self.type}"


def type_budget() -> Budget:
    """The budget for the types of all tools that one script names."""
    return Budget(max_bytes=256 << 10, max_nodes=20_000)


def parameters(schema: Any, budget: Budget | None = None) -> list[Parameter]:
    """Return the parameters of an input schema, required ones first."""
    budget = budget or type_budget()
    properties, required = _properties(schema)
    shown = dict(islice(properties.items(), MOST_PARAMETERS))
    names = python_names(shown)
    found = []
    for name, item in shown.items():
        type_ = _affordable_type(item, budget)
        found.append(
            Parameter(
                name=name,
                python_name=names[name],
                type=type_,
                is_required=name in required,
                takes_null=type_ == "Any" or "None" in re.split(r"[^A-Za-z]+", type_),
            )
        )
    return sorted(found, key=lambda parameter: not parameter.is_required)


def takes_more(schema: Any) -> bool:
    """Return whether the tool accepts arguments that the schema does not name."""
    properties, _ = _properties(schema)
    more = schema.get("additionalProperties") if isinstance(schema, dict) else None
    return not properties or len(properties) > MOST_PARAMETERS or more is True or isinstance(more, dict)


def signature(python_name: str, schema: Any, budget: Budget | None = None) -> str:
    """Return the line of a stub file for a tool."""
    return stub(python_name, schema, parameters(schema, budget))


def stub(python_name: str, schema: Any, taken: list[Parameter]) -> str:
    """Return the line of a stub file, given the parameters already read from the schema."""
    shown = [parameter.stub for parameter in taken]
    more = ["**more: Any"] if takes_more(schema) else []
    keywords = f"*, {', '.join(shown + more)}" if shown else ", ".join(more)
    return f"async def {python_name}({keywords}) -> Any: ..."


def _affordable_type(schema: Any, budget: Budget) -> str:
    try:
        return python_type(schema, budget)
    except OverBudget:
        return "Any"


def python_type(schema: Any, budget: Budget, depth: int = 0) -> str:
    """Return the type as an annotation. An unsupported schema becomes Any: the server validates the arguments anyway.

    Raises: OverBudget.
    """
    budget.spend(8)
    if not isinstance(schema, dict) or depth > DEEPEST:
        return "Any"
    for key in ("enum", "const"):
        if key in schema:
            return _choices(schema[key] if key == "enum" else [schema[key]], budget)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _union(python_type(item, budget, depth + 1) for item in schema[key])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(_simple_type(one, schema, budget, depth) for one in kind)
    return _simple_type(kind, schema, budget, depth)


def _simple_type(kind: Any, schema: JsonObject, budget: Budget, depth: int) -> str:
    budget.spend(8)
    if kind == "array":
        return f"list[{python_type(schema.get('items'), budget, depth + 1)}]"
    if kind == "object":
        return "dict[str, Any]"
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _choices(values: Any, budget: Budget) -> str:
    if not isinstance(values, list) or not 0 < len(values) <= MOST_CHOICES:
        return "Any"
    if not all(value is None or isinstance(value, str | int | bool) for value in values):
        return "Any"
    if any(isinstance(value, str) and len(value) > LONGEST_CHOICE for value in values):
        return "Any"
    shown = f"Literal[{', '.join(ascii(value) for value in values)}]"
    budget.spend(len(shown))
    return shown


def _union(types: Iterable[str]) -> str:
    found = list(dict.fromkeys(types))
    return "Any" if not found or "Any" in found or len(found) > MOST_CHOICES else " | ".join(found)


def _properties(schema: Any) -> tuple[JsonObject, frozenset[str]]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required") if isinstance(schema, dict) else None
    required = required[:MOST_REQUIRED] if isinstance(required, list) else []
    named = [name for name in required if isinstance(name, str)]
    return properties if isinstance(properties, dict) else {}, frozenset(named)

"""Converts parameter models to compact JSON schemas, without keywords that would waste a model's context."""

from typing import Any

from pydantic import BaseModel

from emceepee.wire.json_types import JsonObject

# The schema does not forbid other arguments. The check reports them and suggests the right name; a client that
# validated by the schema would reject the accepted aliases.
_SILENT = (("default", None), ("additionalProperties", False))
# These bounds and defaults are obvious: models do not violate them, and omitted keywords mean the same.
_WEAK = (("minimum", 0), ("minimum", 1), ("minLength", 1), ("default", False), ("additionalProperties", True))


def compact_schema(model: type[BaseModel], *, keeps_bounds: bool = False) -> JsonObject:
    """Return the schema with references resolved, and without titles, null options, null defaults, and weak bounds."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    compacted: JsonObject = _compact(schema, definitions, _SILENT if keeps_bounds else _SILENT + _WEAK)
    compacted.pop("description", None)  # the docstring of the model, which is not the tool's description
    properties, required = compacted.get("properties", {}), compacted.get("required", [])
    needed = {name: item for name, item in properties.items() if name in required}
    return compacted | {"properties": needed | properties}  # required arguments come first


def _compact(node: Any, definitions: JsonObject, silent: tuple[tuple[str, Any], ...]) -> Any:
    if isinstance(node, list):
        return [_compact(item, definitions, silent) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = dict(definitions[node["$ref"].rpartition("/")[2]])
        target.pop("description", None)
        return _compact(target | {key: value for key, value in node.items() if key != "$ref"}, definitions, silent)
    node = dict(node)
    options = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1 and len(node["anyOf"]) == 2:
        del node["anyOf"]
        return _compact(options[0] | node, definitions, silent)
    if "properties" in node:
        node["properties"] = {name: _compact(value, definitions, silent) for name, value in node["properties"].items()}
    kept = {key: value for key, value in node.items() if key != "title" and (key, value) not in silent}
    return {key: value if key == "properties" else _compact(value, definitions, silent) for key, value in kept.items()}

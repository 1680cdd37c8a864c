"""Parameter models as JSON schemas, without the words that cost a model's context and tell it nothing."""

from typing import Any

from pydantic import BaseModel

from emceepee.wire.json_types import JsonObject

# The schema does not forbid other arguments. The check reports them and suggests the right name; a client that
# validated by the schema would reject the accepted aliases.
_SILENT = (("default", None), ("additionalProperties", False))
# Nobody goes below the bounds on purpose, and what is not said is not so, or may be anything.
_WEAK = (("minimum", 0), ("minimum", 1), ("minLength", 1), ("default", False), ("additionalProperties", True))


def compact_schema(model: type[BaseModel], *, keeps_bounds: bool = False) -> JsonObject:
    """The schema with references resolved, and without titles, null alternatives, null defaults and weak bounds."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    compacted: JsonObject = _compact(schema, definitions, _SILENT if keeps_bounds else _SILENT + _WEAK)
    compacted.pop("description", None)  # the model's own docstring; the tool has its description
    properties, required = compacted.get("properties", {}), compacted.get("required", [])
    needed = {name: item for name, item in properties.items() if name in required}
    return compacted | {"properties": needed | properties}  # what must be given comes first


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

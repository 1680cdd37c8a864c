"""Parameter models as JSON schemas, without the words that cost a model's context and tell it nothing."""

from typing import Any

from pydantic import BaseModel

from emceepee.json_types import JsonObject


def compact_schema(model: type[BaseModel]) -> JsonObject:
    """The schema with references resolved, and without titles, null alternatives and null defaults."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})
    compacted: JsonObject = _compact(schema, definitions)
    compacted.pop("description", None)  # the model's own docstring; the tool has its description
    compacted.setdefault("properties", {})
    return compacted


def _compact(node: Any, definitions: JsonObject) -> Any:
    if isinstance(node, list):
        return [_compact(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        target = dict(definitions[node["$ref"].rpartition("/")[2]])
        target.pop("description", None)
        return _compact(target | {key: value for key, value in node.items() if key != "$ref"}, definitions)
    node = dict(node)
    options = [option for option in node.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1 and len(node["anyOf"]) == 2:
        del node["anyOf"]
        return _compact(options[0] | node, definitions)
    if "properties" in node:
        node["properties"] = {name: _compact(value, definitions) for name, value in node["properties"].items()}
    kept = {key: value for key, value in node.items() if key != "title" and not (key == "default" and value is None)}
    return {key: value if key == "properties" else _compact(value, definitions) for key, value in kept.items()}

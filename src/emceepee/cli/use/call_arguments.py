"""Convert command line words to a tool's arguments according to its schema."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from emceepee.bounds.files import read_file
from emceepee.wire.json_types import JsonObject

LARGEST_FILE = 64 << 20
_EXAMPLES = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": 'a list in JSON, such as ["a", "b"], or the same name again for each entry',
    "object": 'an object in JSON, such as {"key": "value"}',
    "null": "null",
}


class BadArgument(Exception):
    """An invalid argument; the message names it and the expected value."""


def read_arguments(words: Sequence[str], given: str | None, schema: JsonObject) -> JsonObject:
    """Parse `words` (key=value, @FILE, or @- for standard input) and `given` (JSON).

    Later ones win. Raises: BadArgument.
    """
    found: JsonObject = {} if given is None else _object(given, "--args")
    texts: dict[str, list[str]] = {}
    for word in words:
        if word.startswith("@"):
            found |= _object(_read_file(word[1:]), word)
            continue
        key, sign, text = word.partition("=")
        if not sign or not key:
            raise BadArgument(f"expected key=value or @FILE, found {word!r}")
        texts.setdefault(key, []).append(text)
    return found | {key: _typed(key, each, schema) for key, each in texts.items()}


def _object(text: str, source: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{source}: not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise BadArgument(f"{source}: expected an object with the tool's arguments")
    return value


def _read_file(name: str) -> str:
    try:
        if name == "-":
            return sys.stdin.read(LARGEST_FILE)
        return read_file(name, LARGEST_FILE, allows_pipe=True).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadArgument(f"@{name}: cannot be read: {error}") from None


def _typed(key: str, texts: Sequence[str], schema: JsonObject) -> Any:
    properties = schema.get("properties")
    rule = properties.get(key) if isinstance(properties, dict) else None
    kinds = set(_kinds(_followed(rule, schema), schema)) if isinstance(rule, dict) else set()
    if "array" in kinds and (len(texts) > 1 or not texts[0].lstrip().startswith("[")):
        assert isinstance(rule, dict)  # otherwise `kinds` would be empty
        items = _followed(rule, schema).get("items")
        inner = {"properties": {key: items if isinstance(items, dict) else {}}, "$defs": schema.get("$defs", {})}
        return [_typed(key, [text], inner) for text in texts]
    if len(texts) > 1:
        raise BadArgument(f"{key}: given {len(texts)} times, but it is not a list")
    return _value(key, texts[0], kinds)


def _value(key: str, text: str, kinds: set[str]) -> Any:
    """Parse the text as JSON if that matches an expected type, else use it as a string if that is allowed.

    Without expected types, accept any JSON value, else a string.
    """
    if kinds == {"string"}:
        return text
    try:
        value: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = text
    kind = _kind_of(value)
    if not kinds:
        return value if kind != "string" else text
    if kind != "string" and (kind in kinds or (kind == "integer" and "number" in kinds)):
        return value
    if kind == "number" and kinds & {"integer"} and float(value).is_integer():
        return int(value)
    if "string" in kinds:
        return text
    expected = " or ".join(_EXAMPLES.get(each, each) for each in sorted(kinds - {"null"} or kinds))
    raise BadArgument(f"{key}: expected {expected}, found {text[:60]!r}")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", list: "array", dict: "object", type(None): "null"}
    return names.get(type(value), "string")


def _kinds(rule: JsonObject, schema: JsonObject, depth: int = 0) -> Iterable[str]:
    kind = rule.get("type")
    if isinstance(kind, str):
        yield kind
    elif isinstance(kind, list):
        yield from (each for each in kind if isinstance(each, str))
    elif isinstance(rule.get("enum"), list):
        yield from (_kind_of(each) for each in rule["enum"])
    elif "const" in rule:
        yield _kind_of(rule["const"])
    for key in ("anyOf", "oneOf"):
        for option in rule.get(key) or () if depth < 5 else ():
            if isinstance(option, dict):
                yield from _kinds(_followed(option, schema), schema, depth + 1)


def _followed(rule: JsonObject, schema: JsonObject) -> JsonObject:
    """Resolve a reference within the same schema."""
    reference = rule.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return rule
    found: Any = schema
    for step in reference[2:].split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}

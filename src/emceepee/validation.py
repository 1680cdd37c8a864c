"""Problems in external data, in emceepee's own words: the validation library's messages are never shown."""

import re
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from emceepee.errors import MOST_PROBLEMS, near_names
from emceepee.wire.codec import encode_text

SHOWN_CHARS = 60  # of a value in an error message
Path = tuple[int | str, ...]
_QUOTED = re.compile("'([^']*)'")
_KINDS: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
    NoneType: "null",
}
# By the first word of the library's error types, which have variants: int_type, int_parsing, int_from_float.
_WANTED = {
    "string": "a string",
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "dict": "an object",
    "model": "an object",
    "list": "a list",
}


# The equivalent JSON Schema keywords. Our own validators have none; every other error is a type error.
_KEYWORDS = {
    "missing": "required",
    "value_error": None,
    "extra_forbidden": "additionalProperties",
    "string_too_short": "minLength",
    "string_too_long": "maxLength",
    "greater_than_equal": "minimum",
    "less_than_equal": "maximum",
    "literal_error": "enum",
    "enum": "enum",
}


class Mismatch(NamedTuple):
    """A problem: the path of names and positions to the value, the violated schema keyword, and a description."""

    path: Path
    code: str | None
    words: str


def mismatches(
    error: ValidationError, model: type[BaseModel], *, private: frozenset[str] = frozenset()
) -> list[Mismatch]:
    """Return one problem per place. For values under a private name, only the type is shown."""
    found: dict[Path, Mismatch] = {}
    for item in error.errors(include_url=False):
        path: Path = item["loc"]
        if alternatives := _alternatives(model, path):
            path = path[:1]  # the library reports a problem for each alternative
        is_private = bool(path) and path[0] in private
        words = _words(item, alternatives, _fields_at(model, path[:-1]), is_private=is_private)
        found.setdefault(path, Mismatch(path, _KEYWORDS.get(item["type"], "type"), words))
        if len(found) == MOST_PROBLEMS:
            break
    return list(found.values())


def _words(item: Any, alternatives: str, known: list[str], *, is_private: bool) -> str:
    kind, value, context = str(item["type"]), item["input"], item.get("ctx", {})
    match kind:
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"])  # our own words, from a validator of the model
        case "extra_forbidden":
            return _stranger(item["loc"], known)
        case "string_too_short":
            return "must not be empty" if context["min_length"] == 1 else f"is shorter than {context['min_length']}"
        case "string_too_long":
            return f"may have at most {context['max_length']} characters, found {len(value)}"
        case "greater_than_equal":
            wanted = f"must be at least {context['ge']:.10g}"
        case "less_than_equal":
            wanted = f"may be at most {context['le']:.10g}"
        case "literal_error" | "enum":
            wanted = f"expected one of {', '.join(_QUOTED.findall(context['expected']))}"
        case _:
            wanted = f"expected {alternatives or _WANTED.get(kind.partition('_')[0], 'another value')}"
    return f"{wanted}, found {_kind(value) if is_private else _shown(value)}"


def _stranger(path: Path, known: list[str]) -> str:
    what = "argument" if len(path) == 1 else "key"
    if near := near_names(str(path[-1]), known):
        return f"no such {what}; did you mean {' or '.join(near)}?"
    return f"no such {what}; there are {', '.join(known) or 'none'}"


def _alternatives(model: type[BaseModel], path: Path) -> str:
    """Describe the types of a field with several types; return an empty text for any other field."""
    field = model.model_fields.get(str(path[0])) if path else None
    options = [option for option in get_args(field.annotation) if option is not NoneType] if field else []
    kinds = [_KINDS.get(get_origin(option) or option, "") for option in options]
    return f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 and all(kinds) else ""


def _fields_at(model: type[BaseModel], path: Path) -> list[str]:
    """Return the field names of the model, or of the nested model at `path`."""
    for name in path:
        field = model.model_fields.get(str(name))
        options = [] if field is None else [*get_args(field.annotation), field.annotation]
        inner = [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
        if not inner:
            return []
        model = inner[0]
    return list(model.model_fields)


def _shown(value: Any) -> str:
    if isinstance(value, dict | list):
        return _kind(value)
    text = encode_text(value[:SHOWN_CHARS] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "another value")

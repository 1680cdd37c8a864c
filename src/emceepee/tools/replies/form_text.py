"""Renders a server's form as a few lines of text, for models that read blocks. The server's own text is quoted."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from emceepee.surface import call_to
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

LONGEST_WORDS = 200  # characters of a title, a description, or a value
MOST_CHOICES = 30
MOST_DIGITS = 30
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")
_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
# A limit of the schema in words, in the order in which they are shown.
_LIMITS = (
    ("minimum", "at least {}"),
    ("maximum", "at most {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} entries"),
    ("maxItems", "at most {} entries"),
    ("format", "format {}"),
    ("pattern", "pattern {}"),
)


def form_text(form: Any, room: int) -> str:
    """Return a line for each field, as many as fit into about `room` characters."""
    fields = form.get("properties") if isinstance(form, dict) else None
    if not isinstance(fields, dict) or not all(isinstance(rule, dict) for rule in fields.values()):
        return "Its form is no list of fields: " + _whole()
    required = form.get("required")
    listed = required if isinstance(required, list) else []
    needed = {name for name in listed if isinstance(name, str) and name in fields}
    lines: list[str] = []
    for name, rule in fields.items():
        line = f"- {_field(name, rule, is_required=name in needed)}"
        if len(line) > room:
            lines.append(f"- {len(fields) - len(lines)} more: {_whole()}")
            break
        room -= len(line)
        lines.append(line)
    return "\n".join(["Fields:", *lines]) if lines else "The form has no fields."


def json_text(value: Any, room: int, whole: str) -> str:
    """Return the value as JSON, or its beginning and the tool that shows all of it."""
    text = encode_text(value)
    return (
        text if len(text) <= room else f"{text[:room]}… (cut: {len(text)} characters; {call_to(whole)} shows it whole)"
    )


def _whole() -> str:
    return f"{call_to('get_elicitations')} shows the whole form"


def _field(name: str, rule: JsonObject, *, is_required: bool) -> str:
    said = [_kind(rule), *_limits(rule)]
    if is_required:
        said.append("required")
    if "default" in rule:
        said.append(f"default {_short(rule['default'])}")
    shown = name if _PLAIN_NAME.fullmatch(name) else _short(name)
    words = [_short(rule[key]) for key in ("title", "description") if isinstance(rule.get(key), str)]
    return f"{shown}: {', '.join(said)}" + (f". {' '.join(words)}" if words else "")


def _kind(rule: JsonObject) -> str:
    items = rule.get("items")
    if rule.get("type") == "array":
        choices = _choices(items) if isinstance(items, dict) else None
        return "list" if choices is None else f"list, each one of {choices}"
    choices = _choices(rule)
    if choices is not None:
        return f"one of {choices}"
    kind = rule.get("type")
    return _TYPES.get(kind, "any value") if isinstance(kind, str) else "any value"


def _limits(rule: JsonObject) -> Iterator[str]:
    for key, words in _LIMITS:
        if isinstance(rule.get(key), int | float | str):
            yield words.format(_short(rule[key]))


def _choices(rule: JsonObject) -> str | None:
    """Return the allowed values with their titles, if they have any."""
    if isinstance(values := rule.get("enum"), list):
        names = rule.get("enumNames")
        titles = names if isinstance(names, list) and len(names) == len(values) else [None] * len(values)
        return _listed(list(zip(values, titles, strict=True)))
    for key in ("oneOf", "anyOf"):
        options = rule.get(key)
        if isinstance(options, list) and all(isinstance(option, dict) and "const" in option for option in options):
            return _listed([(option["const"], option.get("title")) for option in options])
    return None


def _listed(values: list[tuple[Any, Any]]) -> str:
    shown = [
        _short(value) + (f" ({_short(title)})" if isinstance(title, str) and title != value else "")
        for value, title in islice(values, MOST_CHOICES)
    ]
    more = [f"{len(values) - MOST_CHOICES} more: {_whole()}"] if len(values) > MOST_CHOICES else []
    return ", ".join(shown + more)


def _short(value: Any) -> str:
    """Return the value as JSON. Cut a long text, and replace a list or an object by a placeholder."""
    match value:
        case str():
            return encode_text(value if len(value) <= LONGEST_WORDS else value[: LONGEST_WORDS - 1] + "…")
        case bool() | None:
            return encode_text(value)
        case int() if value.bit_length() > MOST_DIGITS * 3:
            return "a very large number"
        case int() | float():
            return encode_text(value)
        case _:
            return "[…]" if isinstance(value, list) else "{…}"

"""What a large JSON text is like: its shape in a line, and a short version of it that is JSON, too.

The text is opened level by level, so that most of it is skipped and never becomes objects.
"""

from typing import Any

import msgspec

from emceepee.codec import encode
from emceepee.json_types import JsonObject

MOST_SAMPLED = 10  # entries of a list that are looked at
DEEPEST = 6  # levels of a shape
LEAST_ROOM = 24  # characters for a value that is cut
open_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
open_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode
_KINDS = {b"{": "object", b"[": "list", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}


def is_json(text: bytes) -> bool:
    """Whether it is an object or a list, and whole."""
    try:
        _opened(text)
    except (ValueError, RecursionError):
        return False
    return True


def shape_of(text: bytes, room: int) -> str:
    """Such as `{items: [{id: number, name?: string} x1200], next: string}`, in at most so many characters.

    Raises: ValueError if it is no JSON.
    """
    shown = ""
    for depth in range(DEEPEST, 0, -1):
        shown = _written(_shape(text, depth))
        if len(shown) <= room:
            return shown
    return shown[: room - 1] + "…"


def preview_of(text: bytes, room: int) -> Any:
    """A value like it that takes at most so many bytes as JSON: marks say what was left out.

    Raises: ValueError if it is no JSON.
    """
    share = room
    for _ in range(8):
        value = _preview(text, share)
        if len(encode(value)) <= room:
            return value
        share = share * 3 // 5
    return "…"


def _opened(text: bytes) -> "dict[str, msgspec.Raw] | list[msgspec.Raw]":
    """Raises: ValueError, RecursionError."""
    match bytes(text[:64]).lstrip()[:1]:
        case b"{":
            return open_object(text)
        case b"[":
            return open_list(text)
    raise ValueError("neither an object nor a list")


def _kind(text: bytes | msgspec.Raw) -> str:
    return _KINDS.get(bytes(memoryview(text)[:64]).lstrip()[:1], "number")


def _shape(text: bytes | msgspec.Raw, depth: int) -> Any:
    kind = _kind(text)
    if kind == "object":
        entries = open_object(text)
        return {key: _shape(value, depth - 1) for key, value in entries.items()} if depth else "{…}"
    if kind == "list":
        items = open_list(text)
        if not depth or not items:
            return [None, len(items)]
        merged = _shape(items[0], depth - 1)
        for item in items[1:MOST_SAMPLED]:
            merged = _merged(merged, _shape(item, depth - 1))
        return [merged, len(items)]
    return kind


def _merged(one: Any, other: Any) -> Any:
    """The shape of what may be either."""
    if one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        names = {name.removesuffix("?"): None for name in (*one, *other)}
        both: JsonObject = {}
        for name in names:
            mine, its = _entry(one, name), _entry(other, name)
            if mine is None or its is None:
                both[f"{name}?"] = (mine or its)[0]  # type: ignore[index]  # one of them has it
            else:
                both[name + ("?" if mine[1] or its[1] else "")] = _merged(mine[0], its[0])
        return both
    if isinstance(one, list) and isinstance(other, list):
        inner = one[0] if other[0] is None else other[0] if one[0] is None else _merged(one[0], other[0])
        return [inner, None]
    kinds = dict.fromkeys([*_written(one).split(" | "), *_written(other).split(" | ")])
    return " | ".join(kinds)


def _entry(shape: JsonObject, name: str) -> tuple[Any, bool] | None:
    """The shape of an entry, and whether it may be missing."""
    if name in shape:
        return shape[name], False
    return (shape[f"{name}?"], True) if f"{name}?" in shape else None


def _written(shape: Any) -> str:
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{name}: {_written(inner)}" for name, inner in shape.items()) + "}"
    if isinstance(shape, list):
        inner, count = shape
        if count == 0:
            return "[]"
        number = "" if count is None else f" x{count}"
        return f"[{'…' if inner is None else _written(inner)}{number}]"
    return str(shape)


def _preview(text: bytes | msgspec.Raw, room: int) -> Any:
    size = len(memoryview(text))
    if size <= room:
        return _decode(text)
    match _kind(text):
        case "object":
            return _short_object(open_object(text), room)
        case "list":
            return _short_list(open_list(text), room)
        case "string":
            value = _decode(text)
            return value[: max(room - 2, 0)] + "…"
    return _decode(text)  # a number is never long enough to matter


def _short_object(entries: "dict[str, msgspec.Raw]", room: int) -> JsonObject:
    shown: JsonObject = {}
    left = room
    for number, (name, value) in enumerate(entries.items()):
        share = max(left // max(min(len(entries) - number, 4), 1), LEAST_ROOM) - len(name) - 4
        if left < LEAST_ROOM + len(name):
            shown["…"] = f"{len(entries) - number} more keys"
            break
        shown[name] = _preview(value, max(share, LEAST_ROOM))
        left -= len(name) + 4 + len(encode(shown[name]))
    return shown


def _short_list(items: "list[msgspec.Raw]", room: int) -> list[Any]:
    shown: list[Any] = []
    left = room - LEAST_ROOM
    for number, item in enumerate(items):
        if left < LEAST_ROOM and shown:
            shown.append(f"… {len(items) - number} more")
            break
        shown.append(_preview(item, max(left // 2 if number < len(items) - 1 else left, LEAST_ROOM)))
        left -= len(encode(shown[-1])) + 1
    return shown

"""The shape of a result in a type-like notation: {total: int, items: [{id: int, title: str}]}."""

from itertools import islice
from typing import Any

from emceepee.search.text import one_line
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

LONGEST_SHAPE = 300  # characters
LONGEST_PARSED = 256 << 10  # characters of text that may be JSON
MOST_KEYS = 20
DEEPEST = 4
LONGEST_KEY = 40
MOST_SHAPES = 500  # tools of a session with a stored shape


class ObservedShapes:
    """The observed result shapes of a session's tools. Each tool's shape is taken once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str | None] = {}

    def observe(self, server: str, tool: str, result: JsonObject) -> None:
        key = (server, tool)
        if key not in self._seen and not result.get("isError"):
            if len(self._seen) >= MOST_SHAPES:
                del self._seen[next(iter(self._seen))]
            self._seen[key] = shape_of_result(result)

    def find(self, server: str, tool: str) -> str | None:
        return self._seen.get((server, tool))

    def forget(self, server: str) -> None:
        self._seen = {key: shape for key, shape in self._seen.items() if key[0] != server}


def shape_of_result(result: JsonObject) -> str | None:
    """Return the shape of the structured content, or of a text that is JSON; None if there is neither."""
    structured = result.get("structuredContent")
    if structured is None:
        structured = _from_text(result.get("content"))
    if not isinstance(structured, dict | list):
        return None
    return one_line(_shape(structured, DEEPEST), LONGEST_SHAPE)


def _from_text(content: Any) -> Any:
    if not isinstance(content, list) or len(content) != 1 or not isinstance(content[0], dict):
        return None
    text = content[0].get("text")
    if not isinstance(text, str) or len(text) > LONGEST_PARSED or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return decode(text.encode())
    except (ValueError, RecursionError):
        return None


def _shape(value: Any, depth: int) -> str:
    match value:
        case dict():
            return "{…}" if depth == 0 else f"{{{_keys(value, depth)}}}"
        case list():
            return f"[{_shape(value[0], depth - 1) if depth else '…'}]" if value else "[]"
        case bool():
            return "bool"
        case None:
            return "null"
        case int():
            return "int"
        case float():
            return "float"
        case _:
            return "str"


def _keys(value: JsonObject, depth: int) -> str:
    shown = [
        f"{one_line(str(key), LONGEST_KEY)}: {_shape(item, depth - 1)}"
        for key, item in islice(value.items(), MOST_KEYS)
    ]
    return ", ".join(shown + ["…"] * (len(value) > MOST_KEYS))

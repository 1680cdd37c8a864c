"""YAML, edited by ruamel.yaml, which keeps comments, quotes and order."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from emceepee.clients.faults import BadDocument

WIDTH = 1 << 20  # columns: lines that are long stay so


def read(text: str) -> Any:
    """Raises: BadDocument."""
    try:
        return YAML(typ="safe", pure=True).load(text) or {}
    except (YAMLError, ValueError, RecursionError) as error:
        raise BadDocument(f"not valid YAML: {_words(error)}") from None


def put(text: str, path: Sequence[str], name: str, value: Any, *, as_list: bool = False) -> str:
    """`as_list`: what to make if there is nothing yet. In a list, what has the same name is replaced."""
    editor, document = _load(text)
    if document is None:
        document = editor.map()
    place: Any = document
    for step in path[:-1]:
        place = place.setdefault(step, {})
    held = place.get(path[-1])
    if isinstance(held, list):
        index = next((index for index, item in enumerate(held) if _is_called(item, name)), None)
        if index is None:
            held.append(value)
        else:
            held[index] = value
    elif isinstance(held, dict):
        held[name] = value
    elif held is None:
        place[path[-1]] = [value] if as_list else {name: value}
    else:
        raise BadDocument(f"{'.'.join(path)}: expected servers")
    return _dump(text, editor, document)


def remove(text: str, path: Sequence[str], names: Iterable[str]) -> str:
    editor, document = _load(text)
    place: Any = document
    for step in path:
        place = place.get(step) if isinstance(place, dict) else None
    gone = set(names)
    if isinstance(place, list):
        for index in reversed(range(len(place))):
            if any(_is_called(place[index], name) for name in gone):
                del place[index]
    elif isinstance(place, dict):
        for name in gone:
            place.pop(name, None)
    else:
        return text
    return _dump(text, editor, document)


def _is_called(item: Any, name: str) -> bool:
    return isinstance(item, dict) and item.get("name") == name


def _load(text: str) -> tuple[YAML, Any]:
    editor = YAML()
    editor.preserve_quotes = True
    editor.width = WIDTH
    dash = _dash_offset(text)
    editor.indent(mapping=_step(text), sequence=2 + dash, offset=dash)
    try:
        return editor, editor.load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise BadDocument(f"not valid YAML: {_words(error)}") from None


def _step(text: str) -> int:
    """How far one mapping stands in from another, in this file."""
    found = re.search(r"^[^\s#-][^\n#]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( +)[^\s#-]", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _dash_offset(text: str) -> int:
    """How far the items of lists stand in, in this file."""
    above = ""
    for line in text.splitlines():
        if line.lstrip().startswith("- ") and above.rstrip().endswith(":"):
            return max(0, len(line) - len(line.lstrip()) - (len(above) - len(above.lstrip(" -"))))
        above = line
    return 2


def _dump(text: str, editor: YAML, document: Any) -> str:
    stream = io.StringIO()
    editor.dump(document, stream)
    rendered = stream.getvalue()
    return rendered.replace("\n", "\r\n") if "\r\n" in text else rendered


def _words(error: Exception) -> str:
    return " ".join(str(error).split())

"""Edit YAML with ruamel.yaml, which preserves comments, quotes, and order."""

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.scanner import RoundTripScanner, Scanner

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.config.document_errors import BadDocument

WIDTH = 1 << 20  # columns; prevents wrapping of long lines
LARGEST_TEXT = 512 << 10  # characters; ruamel.yaml reads some 200,000 per second
MOST_TOKENS, LONGEST_SECONDS = 100_000, 5.0
DEEPEST_FLOW = 100  # levels of brackets; the cost of each token grows with them
_COLLECTIONS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "omap", "pairs", "set")}
_MERGE = "tag:yaml.org,2002:merge"
# Besides its own errors, ruamel.yaml raises these for malicious documents.
_ERRORS = (YAMLError, ValueError, RecursionError, AttributeError, IndexError, KeyError, TypeError)


class _BoundedScanner:
    """Spends from a budget for each token. `_bounded` sets the budget."""

    budget: Budget

    def fetch_more_tokens(self) -> Any:
        self.budget.spend()
        if self.flow_level > DEEPEST_FLOW:  # type: ignore[attr-defined]  # of the scanner that this is mixed into
            raise BadDocument(f"not valid YAML: it is nested deeper than {DEEPEST_FLOW} levels")
        return super().fetch_more_tokens()  # type: ignore[misc]  # of the scanner that this is mixed into


def read(text: str) -> Any:
    """Return plain values. Aliases in the text can make them share parts. Raises: BadDocument."""
    reader = YAML(typ="safe", pure=True)
    node = _bounded(reader, Scanner, text, reader.compose)
    if node is None:
        return {}
    try:
        return _value(node, reader, {}) or {}
    except RecursionError:
        raise BadDocument("not valid YAML: it is nested too deeply") from None


def _bounded(editor: YAML, scanner: type, text: str, load: Any) -> Any:
    """Raises: BadDocument."""
    if len(text) > LARGEST_TEXT:
        raise BadDocument(f"larger than {LARGEST_TEXT >> 10} KiB, which is no configuration in YAML")
    budget = Budget(max_bytes=0, max_nodes=MOST_TOKENS, seconds=LONGEST_SECONDS)
    editor.Scanner = type("BoundedScanner", (_BoundedScanner, scanner), {"budget": budget})
    try:
        return load(text)
    except OverBudget as error:
        raise BadDocument(f"cannot be read: {error}") from None
    except _ERRORS as error:
        raise BadDocument(f"not valid YAML: {_words(error)}") from None


def _value(node: Node, reader: YAML, known: dict[int, Any]) -> Any:
    """Convert each node once, even if many aliases refer to it."""
    if id(node) in known:
        return known[id(node)]
    if not isinstance(node, ScalarNode) and node.tag not in _COLLECTIONS:
        raise BadDocument(f"not valid YAML: {node.tag} means nothing here{_place(node)}")
    if isinstance(node, ScalarNode):
        known[id(node)] = _scalar(node, reader)
    elif isinstance(node, SequenceNode):
        items = known[id(node)] = []
        items += [_value(item, reader, known) for item in node.value]
    elif isinstance(node, MappingNode):
        entries: dict[str, Any] = {}
        known[id(node)] = entries
        _fill(entries, node, reader, known)
    return known[id(node)]


def _fill(entries: dict[str, Any], node: MappingNode, reader: YAML, known: dict[int, Any]) -> None:
    merged: list[Any] = []
    for key, item in node.value:
        value = _value(item, reader, known)
        if not isinstance(key, ScalarNode):
            raise BadDocument(f"not valid YAML: a key must be a text{_place(key)}")
        if key.tag == _MERGE:
            merged += value if isinstance(value, list) else [value]
        else:
            entries[key.value] = value
    for other in merged:
        for name, value in other.items() if isinstance(other, dict) else ():
            entries.setdefault(name, value)


def _scalar(node: ScalarNode, reader: YAML) -> Any:
    """Return a scalar as a JSON type. Dates and times stay text."""
    try:
        value = reader.constructor.construct_object(node)
    except _ERRORS as error:
        raise BadDocument(f"not valid YAML: {_words(error)}") from None
    return value if value is None or isinstance(value, str | bool | int | float) else node.value


def _place(node: Node) -> str:
    return f" (line {node.start_mark.line + 1})"


def put(text: str, path: Sequence[str], name: str, value: Any, *, as_list: bool = False) -> str:
    """Add or replace an entry by name. `as_list` makes a missing container a list instead of a mapping."""
    editor, document = _load(text)
    if document is None:
        document = editor.map()
    place: Any = document
    for step in path[:-1]:
        place = place.setdefault(step, {}) if isinstance(place, dict) else None
    if not isinstance(place, dict):
        raise BadDocument(f"{'.'.join(path)}: expected servers")
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
    return editor, _bounded(editor, RoundTripScanner, text, editor.load)


def _step(text: str) -> int:
    """Return the file's indentation of nested mappings."""
    found = re.search(r"^[^\s#-][^\n#]*:[ \t]*(?:#[^\n]*)?\n(?:[ \t]*(?:#[^\n]*)?\n)*( +)[^\s#-]", text, re.MULTILINE)
    return len(found[1]) if found else 2


def _dash_offset(text: str) -> int:
    """Return the file's indentation of list items."""
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

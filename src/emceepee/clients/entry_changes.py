"""Express a file change as changes of single servers, so that undo works even if the file was edited later."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.clients.changes import FileChange
from emceepee.clients.client_file import editor_of, format_of, value_at
from emceepee.clients.client_program import Format
from emceepee.clients.plain_values import TooDeep, plain
from emceepee.config.document_errors import BadDocument
from emceepee.wire.json_types import JsonObject

Place = tuple[str, ...]  # the keys that lead to an object or a list of servers
MOST_CHARACTERS, MOST_VALUES = 4 << 20, 100_000  # limits for the servers of one file


class Conflict(Exception):
    """An entry was changed later, so it cannot be undone alone; the text is its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryChange:
    """A server that a change added, replaced, or removed.

    `after` is the entry as written, or None if it was removed.
    """

    place: Place
    name: str
    after: Any

    def record(self) -> JsonObject:
        return {"place": list(self.place), "name": self.name, "after": self.after}

    @classmethod
    def of(cls, record: JsonObject) -> "EntryChange":
        """Raises: KeyError, TypeError."""
        return cls(place=tuple(map(str, record["place"])), name=str(record["name"]), after=record["after"])


def entry_changes(change: FileChange) -> list[EntryChange]:
    """Return the servers that differ, or an empty list if the files cannot be parsed."""
    if change.after is None or not change.places:
        return []
    try:
        was, is_now = _read(change.path, change.before), _read(change.path, change.after)
        found: list[EntryChange] = []
        for place in change.places:
            old, new = _entries(was, place), _entries(is_now, place)
            names = [name for name in dict.fromkeys((*old, *new)) if (*place, name) not in change.places]
            changed = [name for name in names if old.get(name) != new.get(name)]
            found += [EntryChange(place=place, name=name, after=new.get(name)) for name in changed]
    except BadDocument:
        return []
    return found


def take_back(path: Path, current: bytes, before: bytes | None, changes: Sequence[EntryChange]) -> bytes | None:
    """Return the current file without these changes, or None if they created the file and nothing else remains in it.

    Raises: Conflict, BadDocument.
    """
    editor, was = editor_of(format_of(path)), _read(path, before)
    text = unchanged = _text(current)
    for change in changes:
        document = editor.read(text)
        old, new = _entries(was, change.place), _entries(document, change.place)
        if old.get(change.name) == new.get(change.name):
            continue  # already undone
        if not _is_as_written(change, new):
            raise Conflict(change.name)
        if change.name in old:
            text = _with_entry(editor, text, change, document, value_at(was, change.place))
        elif change.name in new:
            text = _without_entry(editor, text, change, document)
            text = _without_empty(editor, text, change.place, was)
    if text == unchanged:
        return current
    return None if before is None and not editor.read(text) else text.encode("utf-8")


def _is_as_written(change: EntryChange, now: dict[str, Any]) -> bool:
    """Return whether the entry is as it was written.

    Also true if it was removed later, or if the client added keys to it.
    """
    held = now.get(change.name)
    if isinstance(held, dict) and isinstance(change.after, dict):
        return all(key in held and held[key] == value for key, value in change.after.items())
    return held is None or held == change.after


def _with_entry(editor: ModuleType, text: str, change: EntryChange, document: Any, held: Any) -> str:
    """Restore the entry from `held`, its container before the change."""
    value = next((entry for name, entry in _pairs(held) if name == change.name), None)
    container = value_at(document, change.place)
    if not isinstance(value, dict):
        raise Conflict(change.name)
    if isinstance(container, list) and _counts_items(editor):
        names = _names(container)
        index = names.index(change.name) if change.name in names else len(container)
        return str(editor.put(text, change.place, index, value))
    return str(editor.put(text, change.place, change.name, value))


def _without_entry(editor: ModuleType, text: str, change: EntryChange, document: Any) -> str:
    container = value_at(document, change.place)
    if isinstance(container, list) and _counts_items(editor):
        gone = [index for index, name in enumerate(_names(container)) if name == change.name]
        return str(editor.remove(text, change.place, gone))
    return str(editor.remove(text, change.place, [change.name]))


def _names(items: list[Any]) -> list[Any]:
    return [item.get("name") if isinstance(item, dict) else None for item in items]


def _counts_items(editor: ModuleType) -> bool:
    """Return whether this editor addresses list items by index instead of by the name in them."""
    return editor is editor_of(Format.JSON)


def _without_empty(editor: ModuleType, text: str, place: Place, was: Any) -> str:
    """Remove containers that were created for the entry and are now empty."""
    for depth in range(len(place), 0, -1):
        if value_at(was, place[:depth]) is not None or value_at(editor.read(text), place[:depth]) not in ({}, []):
            break
        text = str(editor.remove(text, place[: depth - 1], [place[depth - 1]]))
    return text


def _read(path: Path, content: bytes | None) -> Any:
    """Raises: BadDocument."""
    return {} if content is None else editor_of(format_of(path)).read(_text(content))


def _text(content: bytes) -> str:
    """Raises: BadDocument."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise BadDocument("not text in UTF-8") from None


def _entries(document: Any, place: Place) -> dict[str, Any]:
    """Raises: BadDocument."""
    budget = Budget(max_bytes=MOST_CHARACTERS, max_nodes=MOST_VALUES)
    try:
        return {name: plain(entry, budget) for name, entry in _pairs(value_at(document, place))}
    except (OverBudget, TooDeep):
        raise BadDocument("it has more servers than can be compared") from None


def _pairs(held: Any) -> list[tuple[str, Any]]:
    if isinstance(held, dict):
        return [(str(name), entry) for name, entry in held.items()]
    items = held if isinstance(held, list) else []
    return [(str(item["name"]), item) for item in items if isinstance(item, dict) and "name" in item]

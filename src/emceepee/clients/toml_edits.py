"""TOML, edited in place by tomlkit."""

from collections.abc import Iterable, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from emceepee.clients.faults import BadDocument


def read(text: str) -> Any:
    """Raises: BadDocument."""
    return _parse(text).unwrap()


def put(text: str, path: Sequence[str], name: str, value: Any) -> str:
    document = _parse(text)
    place: Any = document
    for step in path:
        if step not in place:
            place[step] = tomlkit.table(is_super_table=True)
        place = place[step]
        if not isinstance(place, dict):
            raise BadDocument(f"{'.'.join(path)}: expected a table")
    place[name] = _table(value)
    return _rendered(text, document)


def remove(text: str, path: Sequence[str], names: Iterable[str]) -> str:
    document = _parse(text)
    place: Any = document
    for step in path:
        place = place.get(step)
        if not isinstance(place, dict):
            return text
    for name in names:
        place.pop(name, None)
    return _rendered(text, document)


def _table(value: dict[str, Any]) -> Any:
    """A table of its own for each object, after what is plain, as TOML wants it."""
    table = tomlkit.table()
    for name, item in sorted(value.items(), key=lambda pair: isinstance(pair[1], dict)):
        table[name] = _table(item) if isinstance(item, dict) else item
    return table


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, ValueError, RecursionError) as error:
        raise BadDocument(f"not valid TOML: {error}") from None


def _rendered(text: str, document: tomlkit.TOMLDocument) -> str:
    rendered = tomlkit.dumps(document)
    return rendered.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else rendered

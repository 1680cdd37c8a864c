"""Edit TOML in place with tomlkit."""

from collections.abc import Iterable, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.parser import Parser

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.config.document_errors import BadDocument

_ERRORS = (TOMLKitError, ValueError, AttributeError, KeyError, IndexError, TypeError)
LARGEST_TEXT = 512 << 10  # characters
MOST_ITEMS, LONGEST_SECONDS = 50_000, 5.0


def read(text: str) -> Any:
    """Raises: BadDocument."""
    try:
        return _parse(text).unwrap()
    except (RecursionError, *_ERRORS) as error:
        raise BadDocument(f"not valid TOML: {error}") from None


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
    """Build a table with plain values first and nested objects as tables after them, as TOML requires."""
    table = tomlkit.table()
    for name, item in sorted(value.items(), key=lambda pair: isinstance(pair[1], dict)):
        table[name] = _table(item) if isinstance(item, dict) else item
    return table


class _BoundedParser(Parser):
    """Spends from a budget for each key and value: the cost of a key grows with the number of keys before it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._budget = Budget(max_bytes=0, max_nodes=MOST_ITEMS, seconds=LONGEST_SECONDS)

    def _parse_key_value(self, *args: Any, **options: Any) -> Any:
        self._budget.spend()
        return super()._parse_key_value(*args, **options)

    def _parse_value(self) -> Any:
        self._budget.spend()
        return super()._parse_value()

    def _parse_table(self, *args: Any, **options: Any) -> Any:
        self._budget.spend()
        return super()._parse_table(*args, **options)


def _parse(text: str) -> tomlkit.TOMLDocument:
    if len(text) > LARGEST_TEXT:
        raise BadDocument(f"larger than {LARGEST_TEXT >> 10} KiB, which is no configuration in TOML")
    try:
        return _BoundedParser(text).parse()
    except OverBudget as error:
        raise BadDocument(f"cannot be read: {error}") from None
    except (RecursionError, *_ERRORS) as error:
        raise BadDocument(f"not valid TOML: {error}") from None


def _rendered(text: str, document: tomlkit.TOMLDocument) -> str:
    rendered = tomlkit.dumps(document)
    return rendered.replace("\r\n", "\n").replace("\n", "\r\n") if "\r\n" in text else rendered

"""The stored preview of a value: all of a small value, else its beginning."""

from typing import Any

_MOST_DEPTH = 12
_MARK = "..."  # ASCII: one other character doubles the size of a long text and makes writing ten times slower


def preview(value: Any, room: int) -> tuple[Any, bool]:
    """Return a value that fits into about `room` characters, else a copy that does; and whether it was cut."""
    if value is None:
        return None, False
    try:
        if _left(value, room) >= 0:
            return value, False
    except RecursionError:
        pass
    return _Cut(room).of(value, _MOST_DEPTH), True


def _left(value: Any, room: int) -> int:
    """Return the remaining room. It becomes negative once the value does not fit; the rest is not read."""
    kind = type(value)  # JSON has no subclasses, and every call runs this
    if kind is str:
        return room - len(value) - 2
    if kind is dict:
        for key, item in value.items():
            room -= len(key) + 4
            room = room - len(item) - 2 if type(item) is str else _left(item, room)
            if room < 0:
                return room
    elif kind is list:
        for item in value:
            room = _left(item, room - 1)
            if room < 0:
                return room
    return room - 8


class _Cut:
    """Copies the beginning of a value, string by string, until the room is exhausted."""

    def __init__(self, room: int) -> None:
        self._room = room

    def of(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._object(value, depth) if depth else _MARK
        if isinstance(value, list):
            return self._list(value, depth) if depth else _MARK
        self._room -= 8
        return value

    def _text(self, text: str) -> str:
        room = max(self._room, 0)
        self._room -= min(len(text), room) + 2
        return text if len(text) <= room else f"{text[:room]}{_MARK} ({len(text)} characters)"

    def _object(self, value: dict[str, Any], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        for key, item in value.items():
            if self._room <= 0:
                copy[_MARK] = f"{len(value) - len(copy)} more"
                break
            self._room -= len(key) + 4
            copy[key if len(key) <= 200 else key[:200] + _MARK] = self.of(item, depth - 1)
        return copy

    def _list(self, value: list[Any], depth: int) -> list[Any]:
        copy: list[Any] = []
        for item in value:
            if self._room <= 0:
                copy.append(f"{_MARK} {len(value) - len(copy)} more")
                break
            self._room -= 1
            copy.append(self.of(item, depth - 1))
        return copy

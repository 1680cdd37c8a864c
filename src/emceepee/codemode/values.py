"""What crosses the border of the sandbox: values as JSON, and the lines that a script writes."""

import base64
import math
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from pathlib import PurePath
from typing import Any

DEEPEST = 100  # levels; what is read from JSON may have twice as many


MOST_BITS = 10_000  # of a whole number


class NotJson(ValueError):
    """A value cannot be written as JSON, or not within reason."""


def as_json(value: Any, depth: int = 0) -> Any:
    """The value in the words of JSON. Raises: NotJson."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            raise NotJson("a number has too many digits")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= DEEPEST:
        raise NotJson(f"a value is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return {_key(key): as_json(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item, depth + 1) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, PurePath):
        return str(value)
    attributes = getattr(value, "attributes", None)  # of an object whose class the script has written
    if isinstance(attributes, dict):
        return as_json(attributes, depth)
    return str(value)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return str(as_json(key)) if isinstance(key, bool | int | float) or key is None else str(key)


class ScriptLog:
    """What a script printed and logged, up to a number of bytes; what comes after is counted only."""

    def __init__(self, most_bytes: int, kept: str = "", dropped: int = 0) -> None:
        self._most, self._parts, self._dropped = most_bytes, [kept] if kept else [], dropped
        self._size = len(kept.encode("utf-8", "replace"))

    def write(self, text: str) -> None:
        size = len(text.encode("utf-8", "replace"))
        if self._size + size <= self._most and not self._dropped:
            self._parts.append(text)
            self._size += size
        else:
            if not self._dropped:
                start = text.encode("utf-8", "replace")[: self._most - self._size].decode("utf-8", "ignore")
                self._parts.append(start)
                size -= len(start.encode("utf-8", "replace"))
                self._size = self._most
            self._dropped += size

    def write_line(self, text: str) -> None:
        whole = self.text
        self.write(f"{text}\n" if not whole or whole.endswith("\n") else f"\n{text}\n")

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    @property
    def dropped(self) -> int:
        return self._dropped

    def lines(self) -> list[str]:
        found = self.text.splitlines()
        return [*found, f"… {self._dropped} more bytes were not kept"] if self._dropped else found

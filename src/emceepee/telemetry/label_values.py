"""Bounded label values: for any names that others choose, the values are few, short, and of plain characters."""

import re

OTHER = "other"
LONGEST_VALUE = 100  # characters
_UNUSUAL = re.compile(r"[^A-Za-z0-9_.:/@-]")


class LabelValues:
    """The values of one label. The first `most` names have a value each; all other names share one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def value_of(self, name: str, *, may_be_new: bool = True) -> str:
        """Return the value for a name. `may_be_new`: whether an unknown name may get its own value."""
        value = self._values.get(name)
        if value is not None:
            return value
        if not may_be_new or len(self._values) >= self._most:
            return OTHER
        value = self._values[name] = plain(name)
        return value


def plain(name: str) -> str:
    return _UNUSUAL.sub("_", name[:LONGEST_VALUE])

"""The lines that a script prints and logs, up to a byte limit."""

from collections.abc import Iterable
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.values import NotJson, as_json, excess

EXACT = 1 << 16  # characters of one text whose bytes are counted; in a longer text, each character counts as one byte
MOST_NODES = 2000  # of the values in one line


class ScriptLog:
    """Stores the beginning of the log and counts the dropped bytes."""

    def __init__(self, most_bytes: int, kept: str = "", dropped: int = 0) -> None:
        self._most, self._parts, self._dropped = most_bytes, [kept] if kept else [], dropped
        self._size = _bytes(kept)

    def write(self, text: str) -> None:
        room = self._most - self._size
        if not self._dropped and len(text) <= room and (size := _bytes(text)) <= room:
            self._parts.append(text)
            self._size += size
            return
        if not self._dropped:
            start = text[:room].encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
            self._parts.append(start)
            self._size, text = self._most, text[len(start) :]
        self._dropped += _bytes(text)

    def write_line(self, text: str) -> None:
        self._begin_line()
        self.write(text)
        self.write("\n")

    def write_values(self, values: Iterable[Any]) -> None:
        """Write the values as one line. Raises: NotJson if JSON has no such value."""
        budget = Budget(max_bytes=self._most, max_nodes=MOST_NODES)
        self._begin_line()
        between = ""
        try:
            for value in values:
                budget.spend()
                self.write(between)
                self.write(value if isinstance(value, str) else str(as_json(value, budget)))
                between = " "
        except OverBudget as error:
            self.write(f"(the rest of the line is not logged: it takes {excess(error)})")
        except NotJson:
            self.write("\n")
            raise
        self.write("\n")

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
        return [*found, f"… {self._dropped} more bytes were dropped"] if self._dropped else found

    def _begin_line(self) -> None:
        last = next((part for part in reversed(self._parts) if part), "\n")
        if not last.endswith("\n"):
            self.write("\n")


def _bytes(text: str) -> int:
    if text.isascii():
        return len(text)
    return len(text[:EXACT].encode("utf-8", "replace")) + max(0, len(text) - EXACT)

"""Buffers for the newest items, bounded in number and in bytes."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")
NO_LIMIT = 1 << 62


class Tail(Generic[T]):
    """The newest items. Reading does not remove them. Each has a number, so that a reader can ask for newer items."""

    def __init__(self, capacity: int, most_bytes: int = NO_LIMIT) -> None:
        self._capacity, self._most_bytes = capacity, most_bytes
        self._items: deque[tuple[T, int]] = deque()
        self._end = 0
        self._bytes = 0

    def __iter__(self) -> Iterator[T]:
        return (item for item, _ in self._items)

    def append(self, item: T, size: int = 0) -> None:
        self._items.append((item, size))
        self._bytes += size
        self._end += 1
        while self._items and (len(self._items) > self._capacity or self._bytes > self._most_bytes):
            self._bytes -= self._items.popleft()[1]

    def since(self, number: int) -> tuple[list[T], int]:
        """Return the stored items from this number on, and the number of the next item."""
        first = self._end - len(self._items)
        return [item for item, _ in islice(self._items, max(number - first, 0), None)], self._end


class Ring(Generic[T]):
    """At most `capacity` items and `most_bytes` in all; `dropped` counts items pushed out since it was last read."""

    def __init__(self, capacity: int, most_bytes: int = NO_LIMIT) -> None:
        self._capacity, self._most_bytes = capacity, most_bytes
        self._items: deque[tuple[T, int]] = deque()
        self._dropped = 0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return (item for item, _ in self._items)

    def append(self, item: T, size: int = 0) -> None:
        self._items.append((item, size))
        self.bytes += size
        while self._items and (len(self._items) > self._capacity or self.bytes > self._most_bytes):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        self.bytes -= self._items.popleft()[1]
        self._dropped += 1

    def last(self, count: int) -> list[T]:
        return list(self)[-count:] if count else []

    def take_all(self) -> list[T]:
        taken = list(self)
        self._items.clear()
        self.bytes = 0
        return taken

    def remove(self, unwanted: Callable[[T], bool]) -> None:
        """Remove items that the caller has seen; they do not count as dropped."""
        self._items = deque((item, size) for item, size in self._items if not unwanted(item))
        self.bytes = sum(size for _, size in self._items)

    def take_dropped(self) -> int:
        dropped, self._dropped = self._dropped, 0
        return dropped

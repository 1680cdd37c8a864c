"""A buffer that keeps the newest and counts what it had to let go."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


class Tail(Generic[T]):
    """The newest items, which looking does not take away. Each has a number, so that one can ask for what is new."""

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque(maxlen=capacity)
        self._end = 0

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def append(self, item: T) -> None:
        self._items.append(item)
        self._end += 1

    def since(self, number: int) -> tuple[list[T], int]:
        """The items kept that have this number or a later one, and the number of the next."""
        first = self._end - len(self._items)
        return list(islice(self._items, max(number - first, 0), None)), self._end


class Ring(Generic[T]):
    """At most `capacity` items; `dropped` counts those pushed out since it was last asked for."""

    def __init__(self, capacity: int) -> None:
        self._items: deque[T] = deque(maxlen=capacity)
        self._dropped = 0

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def append(self, item: T) -> None:
        if len(self._items) == self._items.maxlen:
            self._dropped += 1
        self._items.append(item)

    def last(self, count: int) -> list[T]:
        return list(self._items)[-count:] if count else []

    def take_all(self) -> list[T]:
        taken = list(self._items)
        self._items.clear()
        return taken

    def remove(self, unwanted: Callable[[T], bool]) -> None:
        """Let go of what the caller has seen; this is not counted as dropped."""
        kept = [item for item in self._items if not unwanted(item)]
        self._items.clear()
        self._items.extend(kept)

    def take_dropped(self) -> int:
        dropped, self._dropped = self._dropped, 0
        return dropped

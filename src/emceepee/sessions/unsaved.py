"""Which records of a session are not as the store has them."""

from collections.abc import Awaitable, Callable, Iterable

from emceepee.sessions.records import ONLY, RecordKind
from emceepee.store.store import RecordKey


class Unsaved:
    """The parts of a session mark what they change; whoever saves it (`follow`) takes the marks.

    As long as nobody does, nothing is saved, and marks are not kept. True while anything is not in the store.
    """

    __slots__ = ("_marks", "_on_mark", "_save", "is_being_written")

    def __init__(self) -> None:
        self._marks: dict[RecordKey, None] = {}
        self._on_mark: Callable[[], None] | None = None
        self._save: Callable[[], Awaitable[None]] | None = None
        self.is_being_written = False

    def __bool__(self) -> bool:
        return self.is_being_written or bool(self._marks)

    def follow(self, on_mark: Callable[[], None], save: Callable[[], Awaitable[None]]) -> None:
        self._on_mark, self._save = on_mark, save

    def leave(self) -> None:
        self._on_mark = self._save = None
        self._marks.clear()

    def mark(self, kind: RecordKind, record_id: str = ONLY) -> None:
        if self._on_mark is not None:
            self._marks[RecordKey(kind, record_id)] = None
            self._on_mark()

    async def save(self) -> None:
        """Returns when all that was marked is in the store, or cannot be."""
        if self._save is not None:
            await self._save()

    def take(self) -> list[RecordKey]:
        marks, self._marks = self._marks, {}
        return list(marks)

    def put_back(self, keys: Iterable[RecordKey]) -> None:
        """They could not be saved."""
        self._marks = dict.fromkeys(keys) | self._marks

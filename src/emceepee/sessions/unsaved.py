"""Which records of a session are not as the store has them."""

from collections.abc import Iterable
from typing import Any, Protocol

from emceepee.sessions.records import ONLY, RecordKind
from emceepee.store.store import RecordKey


class Follower(Protocol):
    """Whoever saves sessions."""

    @property
    def is_in_doubt(self) -> bool: ...

    @property
    def problem(self) -> str | None: ...

    def schedule(self, session: Any) -> None: ...

    async def save(self, session: Any) -> None: ...


class Unsaved:
    """The parts of a session mark what they change; whoever saves it (`follow`) takes the marks.

    As long as nobody does, nothing is saved, and marks are not kept. True while anything is not in the store.
    """

    __slots__ = ("_marks", "_owner", "_saver", "is_being_written")

    def __init__(self) -> None:
        self._marks: dict[RecordKey, None] = {}
        self._saver: Follower | None = None
        self._owner: Any = None
        self.is_being_written = False

    def __bool__(self) -> bool:
        return self.is_being_written or bool(self._marks)

    @property
    def count(self) -> int:
        return len(self._marks)

    @property
    def is_in_doubt(self) -> bool:
        """Whether another process may have the session by now: what is unsaved may never be saved."""
        return self._saver is not None and self._saver.is_in_doubt

    @property
    def has_problem(self) -> bool:
        """Whether the store could not take what was marked, and is tried again later."""
        return self._saver is not None and self._saver.problem is not None

    @property
    def is_followed(self) -> bool:
        """Whether anybody saves it."""
        return self._saver is not None

    def follow(self, saver: "Follower", owner: object) -> None:
        """`owner` is the session, as the saver knows it."""
        self._saver, self._owner = saver, owner

    def leave(self) -> None:
        self._saver = self._owner = None
        self._marks.clear()

    def mark(self, kind: RecordKind, record_id: str = ONLY) -> None:
        if self._saver is not None:
            self._marks[RecordKey(kind, record_id)] = None
            self._saver.schedule(self._owner)

    async def save(self) -> None:
        """Returns when all that was marked is in the store, or cannot be."""
        if self._saver is not None:
            await self._saver.save(self._owner)

    def take(self) -> list[RecordKey]:
        marks, self._marks = self._marks, {}
        return list(marks)

    def put_back(self, keys: Iterable[RecordKey]) -> None:
        """They could not be saved."""
        self._marks = dict.fromkeys(keys) | self._marks

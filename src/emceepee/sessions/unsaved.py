"""The records of a session that differ from the store."""

from collections.abc import Iterable
from typing import Any, Protocol

from emceepee.sessions.records import ONLY, RecordKind
from emceepee.store.store import RecordKey


class Follower(Protocol):
    """The part that saves sessions."""

    @property
    def is_in_doubt(self) -> bool: ...

    @property
    def problem(self) -> str | None: ...

    def schedule(self, session: Any) -> None: ...

    async def save(self, session: Any) -> None: ...


class Unsaved:
    """The parts of a session mark their changes. The saver (see `follow`) takes the marks.

    Without a saver, nothing is saved and marks are dropped. True while the store lacks any change.
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
        """Whether another process may have taken over the session: unsaved changes may then be lost."""
        return self._saver is not None and self._saver.is_in_doubt

    @property
    def has_problem(self) -> bool:
        """Whether the store failed to save changes. The saver retries later."""
        return self._saver is not None and self._saver.problem is not None

    @property
    def is_followed(self) -> bool:
        """Whether a saver saves the session."""
        return self._saver is not None

    def follow(self, saver: "Follower", owner: object) -> None:
        """Send marks to `saver`. `owner` is the session, as the saver identifies it."""
        self._saver, self._owner = saver, owner

    def leave(self) -> None:
        self._saver = self._owner = None
        self._marks.clear()

    def mark(self, kind: RecordKind, record_id: str = ONLY) -> None:
        if self._saver is not None:
            self._marks[RecordKey(kind, record_id)] = None
            self._saver.schedule(self._owner)

    async def save(self) -> None:
        """Return when all marked changes are in the store, or cannot be saved."""
        if self._saver is not None:
            await self._saver.save(self._owner)

    def take(self) -> list[RecordKey]:
        marks, self._marks = self._marks, {}
        return list(marks)

    def put_back(self, keys: Iterable[RecordKey]) -> None:
        """Mark records again that could not be saved."""
        self._marks = dict.fromkeys(keys) | self._marks

"""What finished tasks hold until they are forgotten, bounded in bytes. The newest one always stays."""

from collections import OrderedDict
from typing import Protocol

from emceepee.codec import encode
from emceepee.sessions.buffers import BYTES_PER_VALUE
from emceepee.state.task import Task


class Holder(Protocol):
    """The tasks of one session."""

    def drop_result(self, task_id: str) -> None:
        """Keep nothing of it but how it ended."""
        ...


class ResultBudget:
    """The room that all sessions share. When it is used up, the oldest results give way, whosever they are."""

    def __init__(self, most_bytes: int, most_bytes_per_session: int) -> None:
        self._in_all, self._per_session = most_bytes, most_bytes_per_session
        self._sizes: OrderedDict[tuple[Holder, str], int] = OrderedDict()
        self._own: dict[Holder, int] = {}
        self.used = 0

    def keep(self, holder: Holder, task: Task) -> None:
        """A task has finished."""
        size = _weight(task)
        self._sizes[holder, task.task_id] = size
        self._own[holder] = self._own.get(holder, 0) + size
        self.used += size
        newest = next(reversed(self._sizes))
        if self._own[holder] > self._per_session:
            for key in [key for key in self._sizes if key[0] is holder and key != newest]:
                if self._own.get(holder, 0) <= self._per_session:
                    break
                self._evict(key)
        while self.used > self._in_all and (oldest := next(iter(self._sizes))) != newest:
            self._evict(oldest)

    def release(self, holder: Holder, task_id: str) -> None:
        """It was forgotten."""
        size = self._sizes.pop((holder, task_id), 0)
        self.used -= size
        if holder in self._own:
            self._own[holder] -= size
            if not self._own[holder]:
                del self._own[holder]

    def leave(self, holder: Holder) -> None:
        """The session has ended."""
        for _, task_id in [key for key in self._sizes if key[0] is holder]:
            self.release(holder, task_id)

    def _evict(self, key: tuple[Holder, str]) -> None:
        holder, task_id = key
        self.release(holder, task_id)
        holder.drop_result(task_id)


def _weight(task: Task) -> int:
    text = encode([task.arguments, task.result, task.error, task.progress])
    return len(text) + text.count(b",") * BYTES_PER_VALUE

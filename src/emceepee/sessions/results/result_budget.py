"""The memory of finished tasks and large results, bounded in bytes. The newest result always stays."""

from collections import OrderedDict
from typing import Protocol

from emceepee.sessions.events.buffers import BYTES_PER_VALUE
from emceepee.state.task import Task
from emceepee.wire.codec import encode


class ResultHolder(Protocol):
    """The tasks or the large results of one session."""

    def drop_result(self, result_id: str) -> None:
        """Drop the result."""
        ...


class ResultBudget:
    """The memory that all sessions share. Above the limit, the oldest results of any session are dropped."""

    def __init__(self, most_bytes: int, most_bytes_per_session: int) -> None:
        self._in_all, self._per_session = most_bytes, most_bytes_per_session
        self._sizes: OrderedDict[tuple[ResultHolder, str], int] = OrderedDict()
        self._own: dict[ResultHolder, int] = {}
        self.used = 0

    def keep(self, holder: ResultHolder, result_id: str, size: int) -> None:
        """Count a new result, and drop older ones above the limit."""
        self._sizes[holder, result_id] = size
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

    def release(self, holder: ResultHolder, result_id: str) -> None:
        """Stop counting a result that was deleted."""
        size = self._sizes.pop((holder, result_id), 0)
        self.used -= size
        if holder in self._own:
            self._own[holder] -= size
            if not self._own[holder]:
                del self._own[holder]

    def leave(self, holder: ResultHolder) -> None:
        """Stop counting all results of a session that has ended."""
        for _, result_id in [key for key in self._sizes if key[0] is holder]:
            self.release(holder, result_id)

    def _evict(self, key: tuple[ResultHolder, str]) -> None:
        holder, result_id = key
        self.release(holder, result_id)
        holder.drop_result(result_id)


def weight_of(task: Task) -> int:
    text = encode([task.arguments, task.result, task.error, task.progress])
    return len(text) + text.count(b",") * BYTES_PER_VALUE

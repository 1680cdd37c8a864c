"""Commits of which nobody knows whether they were made, because the connection broke before the answer.

Whoever holds a session commits again what could not be reported, with the same lease. Redis may have made the first one
by then, or make it still. So the next commit says how many there may have been since that lease; it deletes what they
put and it does not; and as every commit has a number, one that comes late finds a higher one, and changes nothing.
"""

from dataclasses import dataclass, field

from emceepee.store.store import Commit, Lease, RecordKey


@dataclass(slots=True)
class _Doubt:
    lease: Lease
    count: int = 0
    puts: set[RecordKey] = field(default_factory=set)


class Doubts:
    """By the ids of sessions."""

    def __init__(self) -> None:
        self._doubts: dict[str, _Doubt] = {}

    def __bool__(self) -> bool:
        return bool(self._doubts)

    def add(self, commit: Commit) -> None:
        doubt = self._doubts.get(commit.head.session_id)
        if doubt is None or doubt.lease != commit.lease:
            doubt = self._doubts[commit.head.session_id] = _Doubt(commit.lease)
        doubt.count += 1
        doubt.puts.update(commit.puts)

    def count(self, commit: Commit) -> int:
        """How many may have been made since its lease was given."""
        doubt = self._doubts.get(commit.head.session_id)
        return doubt.count if doubt is not None and doubt.lease == commit.lease else 0

    def deletes(self, commit: Commit) -> frozenset[RecordKey]:
        """What has to go with it: its own, and what may have been put meanwhile."""
        doubt = self._doubts.get(commit.head.session_id)
        if doubt is None or doubt.lease != commit.lease:
            return commit.deletes
        return commit.deletes | (doubt.puts - commit.puts.keys())

    def settle(self, session_id: str) -> None:
        self._doubts.pop(session_id, None)

"""Commits with an unknown outcome, because the connection broke before Redis answered.

The holder of a session repeats such a commit with the same lease. Redis may have executed the first one, or may still
execute it. So the next commit states how many unconfirmed commits there are since the lease, and deletes the records
that they put and it does not. Every commit has a number: a late one finds a higher number and changes nothing.
"""

from dataclasses import dataclass, field

from emceepee.store.store import Commit, Lease, RecordKey


@dataclass(slots=True)
class _Unconfirmed:
    lease: Lease
    count: int = 0
    puts: set[RecordKey] = field(default_factory=set)


class UnconfirmedCommits:
    """The unconfirmed commits of all sessions, by session id."""

    def __init__(self) -> None:
        self._unconfirmed_commits: dict[str, _Unconfirmed] = {}

    def __bool__(self) -> bool:
        return bool(self._unconfirmed_commits)

    def add(self, commit: Commit) -> None:
        unconfirmed = self._unconfirmed_commits.get(commit.head.session_id)
        if unconfirmed is None or unconfirmed.lease != commit.lease:
            unconfirmed = self._unconfirmed_commits[commit.head.session_id] = _Unconfirmed(commit.lease)
        unconfirmed.count += 1
        unconfirmed.puts.update(commit.puts)

    def count(self, commit: Commit) -> int:
        """Return how many unconfirmed commits were sent since the lease of this commit was taken."""
        unconfirmed = self._unconfirmed_commits.get(commit.head.session_id)
        return unconfirmed.count if unconfirmed is not None and unconfirmed.lease == commit.lease else 0

    def deletes(self, commit: Commit) -> frozenset[RecordKey]:
        """Return the records to delete with this commit: its own, and records that unconfirmed commits may have put."""
        unconfirmed = self._unconfirmed_commits.get(commit.head.session_id)
        if unconfirmed is None or unconfirmed.lease != commit.lease:
            return commit.deletes
        return commit.deletes | (unconfirmed.puts - commit.puts.keys())

    def settle(self, session_id: str) -> None:
        self._unconfirmed_commits.pop(session_id, None)

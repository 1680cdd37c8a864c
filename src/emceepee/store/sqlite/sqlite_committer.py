"""Commits of sessions, several in one transaction. Used by one thread."""

import sqlite3
from collections.abc import Mapping, Sequence

from emceepee.clock import Clock
from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.key_table import Keys, KeyTable, is_any_taken
from emceepee.store.sqlite.record_table import write_records
from emceepee.store.store import Commit, Lease
from emceepee.store.timestamps import microseconds

FIRST = Lease(fence=1, revision=1)


class SqliteCommitter:
    """Checks the leases first, with the update of the heads. Then it writes the records of the accepted commits."""

    def __init__(self, database: Database, keys: KeyTable, clock: Clock) -> None:
        self._database, self._keys, self._clock = database, keys, clock
        self._owner = database.owners.own_id

    def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        with self._database.transaction() as connection:
            leases, written = self._write(connection, commits)
        self._remember(commits, leases, written)
        return leases

    def create(self, commit: Commit) -> Sequence[Lease | None]:
        """Create a session and return its lease in a list. If it exists or a key is taken, return [None]."""
        with self._database.transaction() as connection:
            if is_any_taken(connection, commit.head.keys):
                return [None]
            leases, written = self._write(connection, [commit])
        self._remember([commit], leases, written)
        return leases

    def _write(
        self, connection: sqlite3.Connection, commits: Sequence[Commit]
    ) -> tuple[Sequence[Lease | None], Mapping[str, Keys]]:
        now = microseconds(self._clock.now())
        leases = [self._advance(connection, commit, now) for commit in commits]
        good = [commit for commit, lease in zip(commits, leases, strict=True) if lease is not None]
        write_records(connection, good)
        new = frozenset(commit.head.session_id for commit in good if commit.lease.revision == 0)
        wanted = {commit.head.session_id: commit.head.keys for commit in good}
        return leases, self._keys.write(connection, wanted, new)

    def _remember(self, commits: Sequence[Commit], leases: Sequence[Lease | None], written: Mapping[str, Keys]) -> None:
        self._keys.remember(written)
        self._keys.disregard(
            commit.head.session_id for commit, lease in zip(commits, leases, strict=True) if lease is None
        )

    def _advance(self, connection: sqlite3.Connection, commit: Commit, now: int) -> Lease | None:
        head, lease = commit.head, commit.lease
        expires_at = microseconds(head.expires_at)
        due_at = None if head.due_at is None else microseconds(head.due_at)
        if lease.revision == 0:
            made = connection.execute(
                "INSERT OR IGNORE INTO sessions (session_id, principal, expires_at, due_at, changed_at, owner, fence,"
                " revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (head.session_id, head.principal, expires_at, due_at, now, self._owner, FIRST.fence, FIRST.revision),
            )
            return FIRST if made.rowcount else None
        made = connection.execute(
            "UPDATE sessions SET expires_at = ?, due_at = ?, changed_at = ?, revision = revision + 1"
            " WHERE session_id = ? AND owner = ? AND fence = ? AND revision = ?",
            (expires_at, due_at, now, head.session_id, self._owner, lease.fence, lease.revision),
        )
        return Lease(lease.fence, lease.revision + 1) if made.rowcount else None

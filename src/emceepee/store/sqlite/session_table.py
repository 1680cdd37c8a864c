"""The tables of stored sessions and of their large parts, which are stored in chunks. Used by one thread."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from emceepee.state.session_key import SessionKey
from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.key_table import KeyTable, read_keys
from emceepee.store.sqlite.record_table import read_records
from emceepee.store.sqlite.sqlite_faults import held_elsewhere
from emceepee.store.sqlite.statements import batches, insert_one_by_one, listed, placeholders
from emceepee.store.store import HeldElsewhere, Lease, SessionHead, StoredSession
from emceepee.store.timestamps import microseconds, moment_at

HEAD = "session_id, principal, expires_at, due_at, owner, fence, revision"
HeadRow = tuple[str, str, int, int | None, str | None, int, int]
FORGOTTEN_AT_ONCE = 100  # sessions per transaction, because commits wait for it
_FOUND_BY_KEY = "(SELECT session_id FROM keys WHERE principal = ? AND kind = ? AND value = ?)"


class SessionTable:
    """Callers run each public method within `Database.attempt`."""

    def __init__(self, database: Database, keys: KeyTable) -> None:
        self._database, self._keys = database, keys
        self._owners = database.owners

    def take(self, key: SessionKey) -> StoredSession | None:
        """Raises: HeldElsewhere."""
        if self._find_free(key) is None:  # a read does not wait for other writers
            return None
        with self._database.transaction() as connection:
            row = self._find_free(key)
            return None if row is None else self._take(connection, row)

    def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        alive = self._owners.alive()
        due = f"SELECT {HEAD} FROM sessions WHERE due_at <= ? AND {_free(alive)} ORDER BY due_at LIMIT ?"
        values = (microseconds(now), *alive, most)
        if not self._database.connection.execute(due, values).fetchall():
            return []
        with self._database.transaction() as connection:
            return [self._take(connection, row) for row in connection.execute(due, values).fetchall()]

    def next_due(self) -> datetime | None:
        alive = self._owners.alive()
        next_one = f"SELECT due_at FROM sessions WHERE due_at IS NOT NULL AND {_free(alive)} ORDER BY due_at LIMIT 1"
        row = self._database.connection.execute(next_one, alive).fetchone()
        return None if row is None else moment_at(row[0])

    def lost(self, leases: Mapping[str, Lease]) -> Sequence[str]:
        """Return the given sessions that this process does not hold under these leases."""
        held: set[str] = set()
        for batch in batches([(session_id, lease.fence) for session_id, lease in leases.items()]):
            own = f"SELECT session_id FROM sessions WHERE owner = ? AND (session_id, fence) IN {listed(2, len(batch))}"
            values = (self._owners.own_id, *(value for pair in batch for value in pair))
            held.update(session_id for (session_id,) in self._database.connection.execute(own, values).fetchall())
        return [session_id for session_id in leases if session_id not in held]

    def release(self, leases: Mapping[str, Lease]) -> None:
        with self._database.transaction() as connection:
            for batch in batches([(session_id, lease.fence) for session_id, lease in leases.items()]):
                connection.execute(
                    "UPDATE sessions SET owner = NULL"
                    f" WHERE owner = ? AND (session_id, fence) IN {listed(2, len(batch))}",
                    (self._owners.own_id, *(value for pair in batch for value in pair)),
                )
        self._keys.disregard(leases)

    def release_all(self) -> None:
        self._database.connection.execute("UPDATE sessions SET owner = NULL WHERE owner = ?", (self._owners.own_id,))

    def forget(self, session_id: str, lease: Lease) -> None:
        with self._database.transaction() as connection:
            values = (session_id, lease.fence, self._owners.own_id)
            good = "SELECT 1 FROM sessions WHERE session_id = ? AND fence = ? AND owner = ?"
            if connection.execute(good, values).fetchone() is not None:
                delete_sessions(connection, [session_id])
        self._keys.disregard([session_id])

    def forget_expired(self, now: datetime, most: int) -> int:
        """Delete one batch and return its size. If it is FORGOTTEN_AT_ONCE, there may be more."""
        alive, moment = self._owners.alive(), microseconds(now)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM logins WHERE until <= ?", (moment,))
            connection.execute("DELETE FROM locks WHERE until <= ?", (moment,))
            (total,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
            (expired,) = connection.execute(
                f"SELECT count(*) FROM sessions WHERE expires_at <= ? AND {_free(alive)}", (moment, *alive)
            ).fetchone()
            first = f"SELECT session_id FROM sessions WHERE {_free(alive)} ORDER BY expires_at LIMIT ?"
            count = min(max(expired, total - most, 0), FORGOTTEN_AT_ONCE)
            unwanted = [session_id for (session_id,) in connection.execute(first, (*alive, count))]
            delete_sessions(connection, unwanted)
        return len(unwanted)

    def _find_free(self, key: SessionKey) -> HeadRow | None:
        """Raises: HeldElsewhere."""
        found = f"SELECT {HEAD} FROM sessions WHERE session_id = {_FOUND_BY_KEY}"
        values = (key.principal, str(key.kind), key.value)
        row: HeadRow | None = self._database.connection.execute(found, values).fetchone()
        if row is None:
            return None
        if (owner := row[4]) is not None and owner != self._owners.own_id and self._owners.is_alive(owner):
            raise HeldElsewhere(held_elsewhere(self._database.path), self._owners.replica_of(owner))
        return row

    def _take(self, connection: sqlite3.Connection, row: HeadRow) -> StoredSession:
        session_id, principal, expires_at, due_at, _, fence, revision = row
        head = SessionHead(
            session_id=session_id,
            principal=principal,
            keys=read_keys(connection, session_id),
            expires_at=moment_at(expires_at),
            due_at=None if due_at is None else moment_at(due_at),
        )
        holder = "UPDATE sessions SET owner = ?, fence = ? WHERE session_id = ?"
        connection.execute(holder, (self._owners.own_id, fence + 1, session_id))
        return StoredSession(head=head, lease=Lease(fence + 1, revision), records=read_records(connection, session_id))


class ChunkTable:
    """Large parts of sessions. Callers run each public method within `Database.attempt`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE session_id = ?", (session_id,)).fetchone() is None:
                return False
            rows = ((session_id, name, number, chunk) for number, chunk in enumerate(chunks, first))
            insert_one_by_one(connection, "chunks", 4, rows)
        return True

    def read(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        query = (
            "SELECT number, data FROM chunks WHERE session_id = ? AND name = ? AND number >= ? AND number < ?"
            " ORDER BY number"
        )
        rows = self._database.connection.execute(query, (session_id, name, first, first + count))
        found: list[bytes] = []
        for number, data in rows:
            if number != first + len(found):
                break
            found.append(data)
        return found

    def drop(self, session_id: str, name: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM chunks WHERE session_id = ? AND name = ?", (session_id, name))


def delete_sessions(connection: sqlite3.Connection, session_ids: Iterable[str]) -> None:
    """Delete sessions with their keys, records, and chunks. Call this within a transaction."""
    for batch in batches(list(session_ids)):
        for table in ("sessions", "keys", "records", "chunks"):
            connection.execute(f"DELETE FROM {table} WHERE session_id IN {placeholders(len(batch))}", batch)


def _free(alive: Sequence[str]) -> str:
    """Return the SQL condition that no live process holds the session."""
    return f"(owner IS NULL OR owner NOT IN {placeholders(len(alive))})"

"""The tables of secrets and locks. Used by one thread."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.database_seal import DatabaseSealing
from emceepee.store.store import StoredSecret, secret_place
from emceepee.store.timestamps import microseconds


class SecretTable:
    """Callers run each public method within `Database.attempt`."""

    def __init__(self, database: Database, sealing: DatabaseSealing) -> None:
        self._database, self._sealing = database, sealing

    def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        query = "SELECT name, data, revision FROM secrets WHERE principal = ? ORDER BY name"
        rows = self._database.connection.execute(query, (principal,)).fetchall()
        return [self._read(principal, *row) for row in rows]

    def secret(self, principal: str, name: str) -> StoredSecret | None:
        query = "SELECT name, data, revision FROM secrets WHERE principal = ? AND name = ?"
        row = self._database.connection.execute(query, (principal, name)).fetchone()
        return None if row is None else self._read(principal, *row)

    def put(self, principal: str, name: str, data: bytes, revision: int) -> int | None:
        with self._database.transaction() as connection:
            if _revision(connection, principal, name) != revision:
                return None
            connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'secret_revision'")
            ((new,),) = connection.execute("SELECT value FROM meta WHERE name = 'secret_revision'").fetchall()
            sealed = self._sealing.seal(connection, data, place=secret_place(principal, name))
            connection.execute("INSERT OR REPLACE INTO secrets VALUES (?, ?, ?, ?)", (principal, name, new, sealed))
        return int(new)

    def drop(self, principal: str, name: str, revision: int) -> bool:
        gone = "DELETE FROM secrets WHERE principal = ? AND name = ? AND revision = ?"
        with self._database.transaction() as connection:
            return connection.execute(gone, (principal, name, revision)).rowcount > 0

    def lock(self, name: str, holder: str, now: datetime, until: datetime) -> bool:
        """Acquire the lock unless another holder has it. Locks that expired or belong to a dead process are free."""
        mine = self._named(holder)
        with self._database.transaction() as connection:
            row = connection.execute("SELECT holder, until FROM locks WHERE name = ?", (name,)).fetchone()
            if row is not None and row[0] != mine and row[1] > microseconds(now) and self._is_alive(row[0]):
                return False
            connection.execute("INSERT OR REPLACE INTO locks VALUES (?, ?, ?)", (name, mine, microseconds(until)))
        return True

    def unlock(self, name: str, holder: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM locks WHERE name = ? AND holder = ?", (name, self._named(holder)))

    def _named(self, holder: str) -> str:
        return f"{self._database.owners.own_id}/{holder}"

    def _is_alive(self, holder: str) -> bool:
        """Return whether the process of a lock is alive. A holder without an owner id counts as alive."""
        owner, divider, _ = holder.partition("/")
        return not divider or self._database.owners.is_alive(owner)

    def _read(self, principal: str, name: str, sealed: bytes, revision: int) -> StoredSecret:
        damaged = f"A login in the state file {self._database.path} is damaged. Log out, then log in again."
        data = self._sealing.open(sealed, place=secret_place(principal, name), damaged=damaged)
        return StoredSecret(name, data, revision)


def _revision(connection: sqlite3.Connection, principal: str, name: str) -> int:
    query = "SELECT revision FROM secrets WHERE principal = ? AND name = ?"
    row = connection.execute(query, (principal, name)).fetchone()
    return 0 if row is None else int(row[0])

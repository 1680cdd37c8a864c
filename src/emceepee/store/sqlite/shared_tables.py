"""The tables of servers and logins, which all processes share. Used by one thread."""

import hmac
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from emceepee.store.secret_box import SIGNING, SecretBox, login_proof
from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.database_seal import DatabaseSealing
from emceepee.store.store import NameTaken, ServerConfiguration, StoredLogin
from emceepee.store.timestamps import microseconds, moment_at
from emceepee.telemetry.logs import EventLog

log = EventLog("store")


class SharedTables:
    """Callers run each public method within `Database.attempt`."""

    def __init__(self, database: Database, sealing: DatabaseSealing) -> None:
        self._database, self._sealing = database, sealing
        self._seen: tuple[sqlite3.Connection, int, int] | None = None

    def revision(self) -> int:
        """Return the shared revision. It is cached until another process commits anything."""
        connection = self._database.connection
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if self._seen is not None and self._seen[:2] == (connection, version):
            return self._seen[2]
        ((revision,),) = connection.execute("SELECT value FROM meta WHERE name = 'shared_revision'").fetchall()
        self._seen = (connection, version, revision)
        return int(revision)

    def replica_secret(self) -> bytes:
        """Return a secret derived from the key, so that access to the file alone does not suffice to sign requests."""
        return self.sealer().derive(SIGNING)

    def sealer(self) -> SecretBox:
        """Return the box of the key. The first call creates the key."""
        with self._database.transaction() as connection:
            return self._sealing.box(connection)

    def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        rows = self._database.connection.execute(
            "SELECT name, settings, is_disabled FROM servers WHERE principal = ? ORDER BY position", (principal,)
        )
        return [
            ServerConfiguration(
                principal=principal, name=name, settings=self._unsealed(principal, name, sealed), is_disabled=bool(off)
            )
            for name, sealed, off in rows.fetchall()
        ]

    def add_server(self, server: ServerConfiguration) -> None:
        """Raises: NameTaken."""
        with self._change() as connection:
            added = connection.execute(
                "INSERT OR IGNORE INTO servers (principal, name, is_disabled, settings) VALUES (?, ?, ?, ?)",
                (server.principal, server.name, server.is_disabled, self._sealed(connection, server)),
            )
            if not added.rowcount:
                raise NameTaken(f'A server called "{server.name}" was added already.')

    def replace_server(self, server: ServerConfiguration) -> None:
        with self._change() as connection:
            there = "SELECT 1 FROM servers WHERE principal = ? AND name = ?"
            if connection.execute(there, (server.principal, server.name)).fetchone() is None:
                return
            connection.execute(
                "UPDATE servers SET is_disabled = ?, settings = ? WHERE principal = ? AND name = ?",
                (server.is_disabled, self._sealed(connection, server), server.principal, server.name),
            )

    def remove_server(self, principal: str, name: str) -> bool:
        with self._change() as connection:
            gone = "DELETE FROM servers WHERE principal = ? AND name = ?"
            return connection.execute(gone, (principal, name)).rowcount > 0

    def logins(self) -> Sequence[StoredLogin]:
        query = "SELECT digest, principal, until, proof FROM logins ORDER BY until, digest"
        rows = self._database.connection.execute(query).fetchall()
        box = self._sealing.known_box() if rows else None
        found = [(StoredLogin(digest, principal, moment_at(until)), proof) for digest, principal, until, proof in rows]
        valid = [
            login
            for login, proof in found
            if box is not None and hmac.compare_digest(login_proof(box, login), bytes(proof))
        ]
        if len(valid) < len(found):
            count = len(found) - len(valid)
            log.warning("logins_refused", count=count, reason="they were not stored with the key")
        return valid

    def add_login(self, login: StoredLogin) -> None:
        with self._change() as connection:
            put = "INSERT OR REPLACE INTO logins VALUES (?, ?, ?, ?)"
            proof = login_proof(self._sealing.box(connection), login)
            connection.execute(put, (login.digest, login.principal, microseconds(login.until), proof))

    def end_login(self, digest: bytes) -> bool:
        with self._change() as connection:
            return connection.execute("DELETE FROM logins WHERE digest = ?", (digest,)).rowcount > 0

    def announce(self) -> None:
        self._seen = None
        with self._database.transaction() as connection:
            connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'shared_revision'")

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction, and increment the revision if it changes anything."""
        self._seen = None
        with self._database.transaction() as connection:
            before = connection.total_changes
            yield connection
            if connection.total_changes != before:
                connection.execute("UPDATE meta SET value = value + 1 WHERE name = 'shared_revision'")

    def _sealed(self, connection: sqlite3.Connection, server: ServerConfiguration) -> bytes:
        return self._sealing.seal(connection, server.settings, place=(server.principal, server.name))

    def _unsealed(self, principal: str, name: str, sealed: bytes) -> bytes:
        damaged = (
            f'The settings of the server "{name}" in the state file {self._database.path} are damaged.'
            " Remove that server and add it again."
        )
        return self._sealing.open(sealed, place=(principal, name), damaged=damaged)

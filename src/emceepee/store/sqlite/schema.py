"""The tables of a state file, and their migration from older versions."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from emceepee.store.sqlite.sqlite_faults import unusable_because

APPLICATION_ID = 0x656D6370  # "emcp": identifies our databases, also to the tool `file`

# One step per version. A released step is never changed, because users have files that it created.
STEPS: Sequence[Sequence[str]] = (
    (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID",
        """CREATE TABLE sessions (
            session_id TEXT PRIMARY KEY, principal TEXT NOT NULL, expires_at INTEGER NOT NULL, due_at INTEGER,
            changed_at INTEGER NOT NULL, owner TEXT, fence INTEGER NOT NULL, revision INTEGER NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX sessions_due ON sessions (due_at) WHERE due_at IS NOT NULL",
        """CREATE TABLE keys (
            principal TEXT, kind TEXT, value TEXT, session_id TEXT NOT NULL, PRIMARY KEY (principal, kind, value)
        ) WITHOUT ROWID""",
        "CREATE INDEX keys_of_session ON keys (session_id)",
        """CREATE TABLE records (
            session_id TEXT, kind TEXT, record_id TEXT, data BLOB NOT NULL, PRIMARY KEY (session_id, kind, record_id)
        ) WITHOUT ROWID""",
        """CREATE TABLE servers (
            position INTEGER PRIMARY KEY AUTOINCREMENT, principal TEXT NOT NULL, name TEXT NOT NULL,
            is_disabled INTEGER NOT NULL, settings BLOB NOT NULL, UNIQUE (principal, name)
        )""",
        "CREATE TABLE logins (digest BLOB PRIMARY KEY, principal TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO meta VALUES ('shared_revision', 0)",
    ),
    (
        """CREATE TABLE secrets (
            principal TEXT, name TEXT, revision INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (principal, name)
        ) WITHOUT ROWID""",
        "CREATE TABLE locks (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID",
        "INSERT INTO meta VALUES ('secret_revision', 0)",
    ),
    (
        # This table has row ids, because they make reading a chunk three times as fast.
        """CREATE TABLE chunks (
            session_id TEXT, name TEXT, number INTEGER, data BLOB NOT NULL, PRIMARY KEY (session_id, name, number)
        )""",
    ),
    (
        # Older logins have no proof of who stored them, so people must log in again.
        "DELETE FROM logins",
        "ALTER TABLE logins ADD COLUMN proof BLOB NOT NULL DEFAULT x''",
    ),
)
VERSION = len(STEPS)


def refuse_foreign(connection: sqlite3.Connection, path: Path) -> None:
    """Reject a file of a newer version or of another program before any write. Raises: StoreUnusable."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise unusable_because(path, "is a database of another program", "Move it away")
    if version > VERSION:
        what = f"was written by a newer emceepee (format {version}; this version supports {VERSION})"
        raise unusable_because(path, what, "Run that version")


def migrate(connection: sqlite3.Connection) -> bool:
    """Migrate the tables and return whether the file was new. The caller must have exclusive access to the file."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == VERSION:
        return False
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in (statement for step in STEPS[version:] for statement in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return bool(version == 0)

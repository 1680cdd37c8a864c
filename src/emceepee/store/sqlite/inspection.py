"""Inspection of a state file for its operator, while other processes use the file.

Sessions that a running emceepee holds are shown and checked, but never changed.
"""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO, TypeVar

from emceepee.clock import Clock
from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.session_table import delete_sessions
from emceepee.store.sqlite.sqlite_faults import unusable_because
from emceepee.store.sqlite.state_export import LOGINS_OF_PEOPLE, write_export
from emceepee.store.timestamps import microseconds, moment_at

MOST_PROBLEMS = 100
T = TypeVar("T")

# Queries that must never find a row, and the message for each row.
_INVARIANTS = {
    "SELECT DISTINCT session_id FROM records WHERE session_id NOT IN (SELECT session_id FROM sessions)": (
        "records of the session {} exist, but the session does not"
    ),
    "SELECT DISTINCT session_id FROM chunks WHERE session_id NOT IN (SELECT session_id FROM sessions)": (
        "a part of the session {} exists, but the session does not"
    ),
    "SELECT DISTINCT session_id FROM keys WHERE session_id NOT IN (SELECT session_id FROM sessions)": (
        "a key refers to the session {}, which does not exist"
    ),
    "SELECT session_id FROM sessions WHERE fence < 1 OR revision < 1": "the session {} has a number below 1",
    "SELECT name FROM servers WHERE (SELECT count(*) FROM meta WHERE name = 'key_check') = 0": (
        "the settings of the server {} are encrypted, but the key is unknown"
    ),
    "SELECT name FROM secrets WHERE (SELECT count(*) FROM meta WHERE name = 'key_check') = 0": (
        "the secret {} is encrypted, but the key is unknown"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StateStatistics:
    """Statistics of a state file. `oldest` and `newest` are the times of the least and most recent session changes."""

    path: Path
    size_bytes: int
    sessions: int
    held_sessions: int
    records: Mapping[str, int]
    servers: int
    logins: int
    oldest: datetime | None
    newest: datetime | None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The ids of deleted sessions, of sessions that a running emceepee holds, and of unknown sessions."""

    forgotten: Sequence[str]
    held: Sequence[str] = ()
    unknown: Sequence[str] = ()


class StateFile:
    """An open state file; use `open` as a context manager. Every method may raise StoreUnavailable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    @contextmanager
    def open(cls, path: Path, clock: Clock) -> Iterator["StateFile"]:
        """Raises: StoreUnusable."""
        if not path.exists():
            raise unusable_because(path, "does not exist", "Start emceepee, which creates it")
        database = Database(path, clock)
        database.open(may_create=False)
        try:
            yield cls(database)
        finally:
            database.close()

    def statistics(self) -> StateStatistics:
        return self._attempt(self._statistics)

    def check(self) -> Sequence[str]:
        """Return a message for each problem."""
        return self._attempt(self._check)

    def compact(self) -> tuple[int, int]:
        """Free unused disk space. Return the size in bytes before and after."""
        return self._attempt(self._compact)

    def forget(self, session_ids: Sequence[str]) -> Forgotten:
        return self._attempt(lambda: self._forget(session_ids))

    def forget_older_than(self, moment: datetime) -> Forgotten:
        """Delete the sessions that were last changed before the given time."""
        return self._attempt(lambda: self._forget_older_than(moment))

    def export(self, file: TextIO) -> None:
        """Write the whole state as JSON, without secrets."""
        self._attempt(lambda: write_export(self._database.connection, file))

    def _attempt(self, work: Callable[[], T]) -> T:
        return self._database.attempt(work)

    def _statistics(self) -> StateStatistics:
        read = self._database.connection.execute
        alive = self._database.owners.alive()
        owners = read("SELECT owner, count(*) FROM sessions WHERE owner IS NOT NULL GROUP BY owner").fetchall()
        count, oldest, newest = read("SELECT count(*), min(changed_at), max(changed_at) FROM sessions").fetchone()
        return StateStatistics(
            path=self._database.path,
            size_bytes=self._size(),
            sessions=count,
            held_sessions=sum(held for owner, held in owners if owner in alive),
            records=dict(read("SELECT kind, count(*) FROM records GROUP BY kind ORDER BY kind").fetchall()),
            servers=read("SELECT count(*) FROM servers").fetchone()[0],
            logins=read(f"SELECT count(*) FROM {LOGINS_OF_PEOPLE}").fetchone()[0],
            oldest=None if oldest is None else moment_at(oldest),
            newest=None if newest is None else moment_at(newest),
        )

    def _size(self) -> int:
        path, total = self._database.path, 0
        for file in (path, path.with_name(f"{path.name}-wal")):
            with suppress(FileNotFoundError):
                total += file.stat().st_size
        return total

    def _check(self) -> Sequence[str]:
        read = self._database.connection.execute
        try:
            rows = read(f"PRAGMA integrity_check({MOST_PROBLEMS})").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(error)]
        problems = [text for (text,) in rows if text != "ok"]
        if problems:
            return problems
        return [words.format(row[0]) for query, words in _INVARIANTS.items() for row in read(query).fetchall()]

    def _compact(self) -> tuple[int, int]:
        run = self._database.connection.execute
        before = self._size()
        run("VACUUM")
        run("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return before, self._size()

    def _forget(self, session_ids: Sequence[str]) -> Forgotten:
        with self._database.transaction() as connection:
            alive = self._database.owners.alive()
            owner_of = "SELECT owner FROM sessions WHERE session_id = ?"
            found = {name: connection.execute(owner_of, (name,)).fetchone() for name in session_ids}
            unknown = [name for name, row in found.items() if row is None]
            held = [name for name, row in found.items() if row is not None and row[0] in alive]
            forgotten = [name for name in found if name not in unknown and name not in held]
            delete_sessions(connection, forgotten)
        return Forgotten(forgotten, held, unknown)

    def _forget_older_than(self, moment: datetime) -> Forgotten:
        older = "SELECT session_id FROM sessions WHERE changed_at < ?"
        rows = self._database.connection.execute(older, (microseconds(moment),)).fetchall()
        return self._forget([session_id for (session_id,) in rows])

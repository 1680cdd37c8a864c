"""An open state file. It is private, checked, and reopened after a fault. Used by one thread."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from emceepee.clock import Clock
from emceepee.paths import PRIVATE_FILE, PRIVATE_FOLDER
from emceepee.store.sqlite.inline_commits import ENOUGH_PAGES
from emceepee.store.sqlite.owners import Owners
from emceepee.store.sqlite.schema import migrate, refuse_foreign
from emceepee.store.sqlite.sqlite_faults import log_held, primary_code, unavailable, unusable, unusable_because
from emceepee.store.store import StoreUnavailable, StoreUnusable
from emceepee.telemetry.logs import EventLog

BUSY_SECONDS = 5.0  # another emceepee writes for milliseconds; a longer lock is another program
MOVED_CHECK_SECONDS = 1.0  # writes to a deleted file succeed, but are lost
QUICKLY_CHECKED_BYTES = 32 << 20  # checked in about 100 ms, after a process died without closing it
LARGEST_WAL_BYTES = 16 << 20  # of the write-ahead log after a checkpoint
HELD_WAL_BYTES = 256 << 20  # beyond it, writes fail until another program ends its transaction
STATEMENTS = 256  # prepared statements in the cache: one per number of rows
_NEEDS_REOPENING = {
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
}

T = TypeVar("T")
log = EventLog("store")


class Database:
    """The connection and this process's entry among the owners. Without `owners`, it only inspects the file."""

    def __init__(
        self, path: Path, clock: Clock, *, survives_power_loss: bool = False, owners: Owners | None = None
    ) -> None:
        self.path, self.owners = path, owners or Owners(path)
        self._clock = clock
        self._synchronous = "FULL" if survives_power_loss else "NORMAL"
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._looked_at = 0.0
        self._waits = True  # whether the connection waits for other writers
        self.is_log_held = False  # another program blocks the log, and the log is too large for more writes

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._connection is not None
        return self._connection

    def open(self, *, may_create: bool = True) -> None:
        """Raises: StoreUnusable."""
        try:
            self._open(may_create=may_create)
        except BaseException as error:
            self._drop_connection()
            self.owners.leave()
            if isinstance(error, sqlite3.Error | OSError):
                raise unusable(self.path, error) from error
            raise

    def attempt(self, work: Callable[[], T], *, may_wait: bool = True) -> T:
        """Run work that uses the connection. Raises: StoreUnavailable, after which the next attempt starts afresh.

        With `may_wait`, the work waits while another process writes.
        """
        try:
            self._make_ready()
            if may_wait != self._waits:
                self._set_waiting(may_wait)
            return work()
        except BrokenPipeError:  # the reader of the output is gone; the file is fine
            raise
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, OSError) or primary_code(error) in _NEEDS_REOPENING:
                self._drop_connection()
            raise unavailable(self.path, error) from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            raise

    def checkpoint(self) -> None:
        """Move committed pages into the database, and shorten the write-ahead log if it has become long.

        This suppresses errors, because the next commit finds the same fault and reports it.
        """
        if self._connection is not None:
            with suppress(sqlite3.Error, OSError, StoreUnavailable):
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                self.check_log()

    def check_log(self) -> None:
        """Shorten a write-ahead log that has become long. Raises: StoreUnavailable if that fails for too long.

        SQLite cannot reuse the log while another program has a transaction open on the file.
        """
        size = self._log_size()
        if size > LARGEST_WAL_BYTES:
            self._truncate_log()
            size = self._log_size()
        was_held, self.is_log_held = self.is_log_held, size > HELD_WAL_BYTES
        if self.is_log_held:
            error = log_held(self.path, size)
            if not was_held:
                log.warning("state_log_held", path=str(self.path), bytes=size, error=str(error))
            raise error

    def _log_size(self) -> int:
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    def _truncate_log(self) -> None:
        """Truncate the log if no other process uses it now. Do not wait for one."""
        waits = self._waits
        self._set_waiting(False)
        try:
            with suppress(sqlite3.Error):
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self._set_waiting(waits)

    def _set_waiting(self, waits: bool) -> None:
        """Enable or disable waiting for other writers, and automatic checkpoints, which wait for the disk."""
        self.connection.execute(f"PRAGMA busy_timeout = {round(BUSY_SECONDS * 1000) if waits else 0}")
        self.connection.execute(f"PRAGMA wal_autocheckpoint = {ENOUGH_PAGES if waits else 0}")
        self._waits = waits

    def close(self) -> None:
        self._drop_connection()
        self.owners.leave()

    def _open(self, *, may_create: bool) -> None:
        if may_create:
            self.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            _make_private(self.path)
        os.stat(self.path)
        with self.owners.opening():
            self._connect()
            refuse_foreign(self.connection, self.path)
            self._set_up()
            if migrate(self.connection):
                log.info("state_created", path=str(self.path))
            elif self.owners.dead():
                self._check_quickly()
            self.owners.join()

    def _connect(self) -> None:
        self._connection = sqlite3.connect(
            self.path,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            cached_statements=STATEMENTS,
            check_same_thread=False,  # another thread may drop the last reference
        )
        self._identity = _identity(self.path)
        self._looked_at = self._clock.monotonic()

    def _set_up(self) -> None:
        (mode,) = self.connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            what = "is on a file system on which processes cannot share memory"
            raise unusable_because(self.path, what, "Put it on a local disk")
        self.connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        self.connection.execute(f"PRAGMA journal_size_limit = {LARGEST_WAL_BYTES}")
        self._set_waiting(True)

    def _check_quickly(self) -> None:
        if self.path.stat().st_size > QUICKLY_CHECKED_BYTES:
            return
        (found,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            way_out = "Restore an earlier copy, or move the file away and start with a new one"
            raise unusable_because(self.path, f"is damaged ({found})", way_out)

    def _make_ready(self) -> None:
        if self._connection is None:
            self._reopen()
        elif self._clock.monotonic() - self._looked_at >= MOVED_CHECK_SECONDS:
            self._looked_at = self._clock.monotonic()
            if _identity(self.path) != self._identity:
                log.warning("state_file_replaced", path=str(self.path))
                self._drop_connection()
                self._reopen()

    def _reopen(self) -> None:
        """Reopen the file, but never create it, because the sessions in memory come from the old file."""
        try:
            self._open(may_create=False)
        except BaseException as error:
            self._drop_connection()
            if isinstance(error, StoreUnusable):
                raise StoreUnavailable(str(error)) from error
            raise

    def _drop_connection(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


def _identity(path: Path) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _make_private(path: Path) -> None:
    """Create the file or fix its permissions. SQLite gives the files beside it the same permissions."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        found = os.fstat(descriptor)
        if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) != PRIVATE_FILE:
            os.fchmod(descriptor, PRIVATE_FILE)
    finally:
        os.close(descriptor)

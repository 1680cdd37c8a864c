"""Moves what was committed from the log into the database now and then, beside everything else.

That waits for the disk, so no commit is to do it: each time in a thread and with a connection of its own, during which
others go on writing to the log.
"""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from emceepee.store.store import Commit

PAGE_BYTES = 4096
PAGES_PER_COMMIT = 4  # about, besides those of its data
ENOUGH_PAGES = 1000


class Checkpoints:
    """Counts what is written, roughly."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages = 0
        self._thread: threading.Thread | None = None

    def count(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            self._pages += PAGES_PER_COMMIT + sum(map(len, commit.puts.values())) // PAGE_BYTES
        if self._pages >= ENOUGH_PAGES and (self._thread is None or not self._thread.is_alive()):
            self._pages = 0
            self._thread = threading.Thread(target=self._run, name="emceepee-checkpoint", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Returns when none is running."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # What fails here fails for the next commit too, and that one tells.
        address = f"{self._path.as_uri()}?mode=rw"  # a file that was moved away is not made anew
        with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(address, uri=True)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

"""When to move committed pages from the write-ahead log into the database.

A checkpoint waits for the disk, so only the store's thread runs it. SQLite starts one after a commit of the thread,
once there are enough pages. Commits in the event loop disable that, so this module counts them.
"""

from collections.abc import Sequence

from emceepee.store.store import Commit

PAGE_BYTES = 4096
PAGES_PER_COMMIT = 4  # an estimate, in addition to the pages of its data
ENOUGH_PAGES = 1000


class Checkpoints:
    """A rough count of the pages that commits in the event loop wrote."""

    def __init__(self) -> None:
        self._pages = 0

    def count(self, commits: Sequence[Commit]) -> bool:
        """Add these commits. If there are enough pages to move, reset the count and return True."""
        for commit in commits:
            self._pages += PAGES_PER_COMMIT + sum(map(len, commit.puts.values())) // PAGE_BYTES
        is_enough = self._pages >= ENOUGH_PAGES
        self._pages = 0 if is_enough else self._pages
        return is_enough

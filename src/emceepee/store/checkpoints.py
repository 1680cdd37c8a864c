"""When to move what was committed from the log into the database. That waits for the disk, so it is the thread's."""

from collections.abc import Sequence

from emceepee.store.store import Commit

PAGE_BYTES = 4096
PAGES_PER_COMMIT = 4  # about, besides those of its data
ENOUGH_PAGES = 1000


class Checkpoints:
    """Counts what is written, roughly."""

    def __init__(self) -> None:
        self._pages = 0

    def count(self, commits: Sequence[Commit]) -> bool:
        """Add these; True if there is enough to move now, and then it begins anew."""
        for commit in commits:
            self._pages += PAGES_PER_COMMIT + sum(map(len, commit.puts.values())) // PAGE_BYTES
        is_enough = self._pages >= ENOUGH_PAGES
        self._pages = 0 if is_enough else self._pages
        return is_enough

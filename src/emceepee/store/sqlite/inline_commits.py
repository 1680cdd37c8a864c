"""Decides which commits run in the event loop instead of the store's thread.

A small commit takes 40 microseconds and writes only to the page cache. Checkpoints and `fsync` run in the thread.
Waiting for the thread costs several times as much, and hundreds of times as much while the loop is busy (see
`loop_yield.py`). After a slow commit, the thread makes all commits for two seconds.

A checkpoint moves committed pages from the write-ahead log into the database. It waits for the disk, so only the
store's thread runs it. SQLite starts one after a commit of the thread, once there are enough pages. Commits in the
event loop disable that, so this module counts their pages.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from emceepee.clock import Clock
from emceepee.store.store import Commit

SMALL_BYTES = 64 << 10
FEW_SESSIONS = 8
SLOW_SECONDS = 0.05  # on a busy machine, some commits take a few milliseconds
LEFT_TO_THREAD_SECONDS = 2.0
PAGE_BYTES = 4096
PAGES_PER_COMMIT = 4  # an estimate, in addition to the pages of its data
ENOUGH_PAGES = 1000  # in the write-ahead log for a checkpoint


class InlineCommits:
    """Selects small commits. `is_off` is for stores in which every commit waits for the disk."""

    def __init__(self, clock: Clock, *, is_off: bool) -> None:
        self._clock, self._is_off = clock, is_off
        self._not_before = 0.0
        self._pages = 0  # roughly, since the last checkpoint

    def is_good_for(self, commits: Sequence[Commit]) -> bool:
        if self._is_off or len(commits) > FEW_SESSIONS or self._clock.monotonic() < self._not_before:
            return False
        return sum(len(data) for commit in commits for data in commit.puts.values()) <= SMALL_BYTES

    @contextmanager
    def timed(self) -> Iterator[None]:
        began = self._clock.monotonic()
        try:
            yield
        finally:
            ended = self._clock.monotonic()
            if ended - began > SLOW_SECONDS:
                self._not_before = ended + LEFT_TO_THREAD_SECONDS

    def need_checkpoint(self, commits: Sequence[Commit]) -> bool:
        """Count the pages of these commits. If there are enough pages to move, reset the count and return True."""
        for commit in commits:
            self._pages += PAGES_PER_COMMIT + sum(map(len, commit.puts.values())) // PAGE_BYTES
        is_enough = self._pages >= ENOUGH_PAGES
        self._pages = 0 if is_enough else self._pages
        return is_enough

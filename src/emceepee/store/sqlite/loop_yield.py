"""Stalls a busy event loop briefly, so that the store's thread can run.

A thread that waits for the GIL gets it after another thread held it for 5 ms. A busy event loop releases the GIL often
and takes it back before the waiting thread wakes up, so the thread can starve for seconds (measured). Therefore the
loop sleeps for two milliseconds if the thread has not finished in time.
"""

import threading

from emceepee.clock import Clock

PATIENCE_SECONDS = 0.001
STANDSTILL_SECONDS = 0.002  # a commit takes a tenth of it
LONGEST_PATIENCE_SECONDS = 0.1  # if the disk is slow, stalling the loop does not help


class LoopYield:
    """Counts the jobs of the thread. The event loop calls `ask` and stalls; the thread calls `finished`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked = self._finished = 0
        self._progress = threading.Event()
        self._patience = PATIENCE_SECONDS
        self._is_watching = False

    @property
    def is_free(self) -> bool:
        """Whether the thread has nothing to do."""
        return self._finished == self._asked

    def ask(self) -> None:
        self._asked += 1
        if not self._is_watching:
            self._watch()

    def finished(self, jobs: int) -> None:
        self._finished += jobs
        self._progress.set()

    def _watch(self) -> None:
        self._is_watching = True
        self._clock.call_later(self._patience, self._look)

    def _look(self) -> None:
        self._is_watching = False
        if self._finished == self._asked:
            self._patience = PATIENCE_SECONDS
            return
        self._progress.clear()
        if self._finished == self._asked or self._progress.wait(STANDSTILL_SECONDS):
            self._patience = PATIENCE_SECONDS
        else:
            self._patience = min(2 * self._patience, LONGEST_PATIENCE_SECONDS)
        if self._finished != self._asked:
            self._watch()

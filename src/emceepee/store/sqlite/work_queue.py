"""One thread that runs jobs in the order of the calls. Consecutive commits in the queue are joined."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from emceepee.clock import Clock
from emceepee.futures import reject, resolve
from emceepee.store.sqlite.loop_yield import LoopYield
from emceepee.store.store import Commit, Lease, StoreError, StoreUnavailable

MOST_JOINED = 64  # calls of `commit` in one transaction

T = TypeVar("T")
Outcome = Sequence[Lease | None]


@dataclass(slots=True, eq=False)
class _Job:
    """Work to run or changes to commit, and the future of the waiting caller."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any] | None = None
    commits: Sequence[Commit] = ()
    asked_at: float = 0.0
    is_last: bool = False
    result: Any = None
    error: Exception | None = None


class WorkQueue:
    """The thread calls `commit` with changes, and `committed` with the start time of each finished call."""

    def __init__(
        self,
        *,
        commit: Callable[[Sequence[Commit]], Outcome],
        committed: Callable[[float], None],
        clock: Clock,
    ) -> None:
        self._commit, self._committed, self._monotonic = commit, committed, clock.monotonic
        self._queue: SimpleQueue[_Job] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._right_of_way = LoopYield(clock)
        self._turn = threading.Lock()  # held while a thread uses the database

    async def run(self, work: Callable[[], T]) -> T:
        job = self._job(work=work)
        self._put(job)
        result: T = await job.future
        return result

    async def commit(self, commits: Sequence[Commit]) -> Outcome:
        job = self._job(commits=commits, asked_at=self._monotonic())
        self._put(job)
        outcome: Outcome = await job.future
        return outcome

    def begin(self, work: Callable[[], object]) -> None:
        """Queue work without waiting for it. The work must not raise."""
        self._put(self._job(work=work))

    def do_here(self, work: Callable[[], T]) -> T | None:
        """Run work at once in the caller's thread. Return None if other work is running or queued."""
        if self._is_closed or not self._right_of_way.is_free or not self._turn.acquire(blocking=False):
            return None
        try:
            return work()
        finally:
            self._turn.release()

    async def close(self, work: Callable[[], None]) -> None:
        """Run this as the last job, and reject new ones."""
        if self._is_closed:
            return
        job = self._job(work=work, is_last=True)
        self._put(job)
        self._is_closed = True
        await job.future

    def _job(self, **fields: Any) -> _Job:
        loop = asyncio.get_running_loop()
        return _Job(loop, loop.create_future(), **fields)

    def _put(self, job: _Job) -> None:
        if self._is_closed:
            raise StoreUnavailable("The state file was closed, because emceepee is stopping.")
        self._queue.put(job)
        self._right_of_way.ask()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="emceepee-store", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        following: _Job | None = None
        while True:
            job = following or self._queue.get()
            following = None
            if job.work is not None:
                joined, is_last = [job], job.is_last
                with self._turn:
                    _do(job, job.work)
            else:
                (joined, following), is_last = self._join(job), False
                with self._turn:
                    self._commit_joined(joined)
            self._right_of_way.finished(len(joined))
            for done in joined:  # after `finished`, so that `do_here` works for callers that resume now
                _tell(done)
            if is_last:
                return
            del job, joined, done  # free their data now, not when the next job arrives

    def _join(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """Return the commits that follow in the queue, and the other job behind them."""
        joined = [first]
        while len(joined) < MOST_JOINED:
            try:
                job = self._queue.get_nowait()
            except Empty:
                return joined, None
            if job.work is not None:
                return joined, job
            joined.append(job)
        return joined, None

    def _commit_joined(self, jobs: list[_Job]) -> None:
        if len(jobs) > 1:
            try:
                outcome = list(self._commit([commit for job in jobs for commit in job.commits]))
            except StoreError:
                pass  # one commit may have caused the error, so run each by itself
            else:
                for job in jobs:
                    mine, outcome = outcome[: len(job.commits)], outcome[len(job.commits) :]
                    self._committed(job.asked_at)
                    job.result = mine
                return
        for job in jobs:
            self._commit_alone(job)

    def _commit_alone(self, job: _Job) -> None:
        _do(job, lambda: self._commit(job.commits))
        if job.error is None:
            self._committed(job.asked_at)


def _do(job: _Job, work: Callable[[], Any]) -> None:
    try:
        job.result = work()
    except Exception as error:
        job.error = error


def _tell(job: _Job) -> None:
    with suppress(RuntimeError):  # the loop is closed: no caller is waiting
        if job.error is None:
            job.loop.call_soon_threadsafe(resolve, job.future, job.result)
        else:
            job.loop.call_soon_threadsafe(reject, job.future, job.error)

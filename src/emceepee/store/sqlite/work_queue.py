"""One thread that does work in the order in which it was asked for. Commits that wait behind one another are joined."""

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
    """Something to do, or changes to commit; and who waits for it."""

    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    work: Callable[[], Any] | None = None
    commits: Sequence[Commit] = ()
    asked_at: float = 0.0
    is_last: bool = False
    result: Any = None
    error: Exception | None = None


class WorkQueue:
    """`commit` is what the thread does with changes, `committed` is told when each was asked for."""

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
        self._turn = threading.Lock()  # held by whoever uses what the work uses

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
        """Do it some time; nobody waits for it, and it must not raise."""
        self._put(self._job(work=work))

    def do_here(self, work: Callable[[], T]) -> T | None:
        """At once and in the caller's thread, if nothing else is being done or waits; None if that is not so."""
        if self._is_closed or not self._right_of_way.is_free or not self._turn.acquire(blocking=False):
            return None
        try:
            return work()
        finally:
            self._turn.release()

    async def close(self, work: Callable[[], None]) -> None:
        """Do this last."""
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
            for done in joined:  # only now: whoever hears of it finds the way free
                _tell(done)
            if is_last:
                return
            del job, joined, done  # what was in them is not kept until the next one comes

    def _join(self, first: _Job) -> tuple[list[_Job], _Job | None]:
        """Those that wait and are commits too, and the one behind them."""
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
                pass  # one of them may be to blame: each for itself then
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
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        if job.error is None:
            job.loop.call_soon_threadsafe(resolve, job.future, job.result)
        else:
            job.loop.call_soon_threadsafe(reject, job.future, job.error)

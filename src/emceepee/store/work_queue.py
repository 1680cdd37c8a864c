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
from emceepee.store.right_of_way import RightOfWay
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
        self._right_of_way = RightOfWay(clock)

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
                _finish(job, job.work)
                self._right_of_way.finished(1)
                if job.is_last:
                    return
            else:
                joined, following = self._join(job)
                self._commit_joined(joined)
                self._right_of_way.finished(len(joined))
                del joined
            del job  # what was in it is not kept until the next one comes

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
                    _tell(job, resolve, mine)
                return
        for job in jobs:
            self._commit_alone(job)

    def _commit_alone(self, job: _Job) -> None:
        try:
            outcome = self._commit(job.commits)
        except Exception as error:
            _tell(job, reject, error)
        else:
            self._committed(job.asked_at)
            _tell(job, resolve, outcome)


def _finish(job: _Job, work: Callable[[], Any]) -> None:
    try:
        result = work()
    except Exception as error:
        _tell(job, reject, error)
    else:
        _tell(job, resolve, result)


def _tell(job: _Job, settle: Callable[[asyncio.Future[Any], Any], None], value: Any) -> None:
    with suppress(RuntimeError):  # the loop is closed: nobody waits any more
        job.loop.call_soon_threadsafe(settle, job.future, value)

"""Write the changes of all sessions in shared commits, and retry while the store fails.

    part of a session ── mark ──▶ unsaved ── within 5 ms ──┐
    reply, about to leave ── save ──────────── at once ─────┴▶ one commit of all that is unsaved ──▶ store
                               └───── waits until it is stored ◀──────────────────────────────────────┘

The caller need not wait for a commit that the store can make at once. While one commit is in flight, changes collect
for the next one. If the store fails, callers do not wait for it: sessions continue in memory. The saver retries all
unsaved changes after a pause, or as soon as the store is available again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime, timedelta

from emceepee.clock import Clock, Handle
from emceepee.futures import resolve
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.sessions.directory.open_sessions import kept_seconds
from emceepee.sessions.directory.persistence import WriteOther, write_record
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.store.store import (
    Commit,
    Lease,
    RecordKey,
    SessionHead,
    Store,
    StoredSession,
    StoreListener,
    StoreUnavailable,
)
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
SAVE_SECONDS = 0.005  # after the first change; 100 ms are promised. A busy session is written up to 200 times a second
RETRY_SECONDS = 1.0
LONGEST_RETRY_SECONDS = 30.0
FIRST_PAUSE = RETRY_SECONDS / 2  # it doubles with each failure
EXPIRY_SLACK = timedelta(minutes=5)  # tolerated lag of the stored expiry: the store may forget a session that early
NEW = Lease(0, 0)


class _Saved:
    """The state of one session in the store."""

    __slots__ = ("_expires_at", "_known", "lease", "session")

    def __init__(self, session: Session, stored: StoredSession | None) -> None:
        self.session = session
        self.lease = stored.lease if stored is not None else NEW
        self._known = set(stored.records) if stored is not None else set()
        self._expires_at = stored.head.expires_at if stored is not None else None

    def lags_behind(self, expires_at: datetime, by: timedelta) -> bool:
        """Whether the store would forget the session too early by more than `by`."""
        return self._expires_at is not None and expires_at - self._expires_at > by

    def commit(self, expires_at: datetime, write_other: WriteOther) -> Commit:
        session = self.session
        puts: dict[RecordKey, bytes] = {}
        deletes: set[RecordKey] = set()
        for key in session.unsaved.take():
            data = write_record(session, key, write_other)
            if data is not None:
                puts[key] = data
            elif key in self._known:
                deletes.add(key)
        head = SessionHead(
            session_id=session.session_id,
            principal=session.principal,
            keys=session.keys,
            expires_at=expires_at,
            due_at=session.due_at,
        )
        return Commit(head=head, lease=self.lease, puts=puts, deletes=frozenset(deletes))

    def was_committed(self, commit: Commit, lease: Lease) -> None:
        self.lease, self._expires_at = lease, commit.head.expires_at
        self._known -= commit.deletes
        self._known |= commit.puts.keys()


class _NotYet:
    """Follow a session during its creation. The next commit writes changes made in that time."""

    is_in_doubt = False
    problem = None

    def schedule(self, session: Session) -> None: ...

    async def save(self, session: Session) -> None: ...


_NOT_YET = _NotYet()


class Saver(StoreListener):
    """One per installation whose state outlives the process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Limits,
        *,
        lose: Callable[[Session], None],
        confirm: Callable[[], Awaitable[None]],
        write_other: WriteOther,
    ) -> None:
        """`lose` is called when another process has taken over a session. `confirm` asks the store about leases."""
        self._store, self._clock, self._limits = store, clock, limits
        self._lose, self._confirm, self._write_other = lose, confirm, write_other
        self._saved: dict[Session, _Saved] = {}
        self._dirty: dict[Session, None] = {}
        self._writing: dict[Session, None] = {}
        self._current: asyncio.Future[None] | None = None  # resolved when the current commit has ended
        self._next: asyncio.Future[None] | None = None  # resolved when all changes unsaved now are stored
        self._timer: Handle | None = None
        self._tasks = TaskOwner("saver")
        self._runner: asyncio.Task[None] | None = None
        self._pause = 0.0  # before the next attempt, while the store fails
        store.listen(self)
        self.problem: str | None = None  # why nothing can be written now
        self.unsaved_problem: str | None = None  # why changes may be missing whose replies did not wait for a commit

    def follow(self, session: Session, stored: StoredSession | None = None) -> None:
        """Write the session's changes from now on."""
        self._saved[session] = _Saved(session, stored)
        session.unsaved.follow(self, session)

    def renew_lease(self, session: Session, lease: Lease) -> None:
        """Replace the lease of a session that this process itself has taken again."""
        if (saved := self._saved.get(session)) is not None:
            saved.lease = lease

    def leases(self) -> dict[Session, Lease]:
        """Return the leases of all sessions that were ever written."""
        return {session: saved.lease for session, saved in self._saved.items() if saved.lease != NEW}

    def lose(self, session: Session) -> None:
        """Stop following a session that another process now holds."""
        if self.leave(session) is not None:
            self._lose(session)

    def _expires_at(self, session: Session) -> datetime:
        seconds = kept_seconds(session, self._limits) - session.idle_seconds
        return self._clock.now() + timedelta(seconds=seconds)

    @property
    def backlog(self) -> int:
        """Return the number of records that wait to be written."""
        return sum(session.unsaved.count for session in self._dirty)

    async def create(self, session: Session) -> bool:
        """Write a new session if all its keys are free, then follow it. Raises: StoreUnavailable."""
        session.unsaved.follow(_NOT_YET, session)
        session.unsaved.mark(RecordKind.SESSION)
        saved = _Saved(session, None)
        commit = saved.commit(self._expires_at(session), self._write_other)
        lease = None
        try:
            lease = await self._store.create(commit)
        finally:
            if lease is None:
                session.unsaved.leave()
        if lease is None:
            return False
        saved.was_committed(commit, lease)
        self._saved[session] = saved
        session.unsaved.follow(self, session)
        if session.unsaved:
            self.schedule(session)
        return True

    def leave(self, session: Session) -> Lease | None:
        """Stop writing the session. Return its lease, or None if it was never written."""
        session.unsaved.leave()
        self._dirty.pop(session, None)
        saved = self._saved.pop(session, None)
        return saved.lease if saved is not None and saved.lease != NEW else None

    def keep_longer(self, session: Session) -> None:
        """Renew the stored expiry of a session that was used but has not changed otherwise."""
        saved = self._saved.get(session)
        if saved is not None and saved.lags_behind(self._expires_at(session), EXPIRY_SLACK):
            session.unsaved.mark(RecordKind.SESSION)

    async def save(self, session: Session) -> None:
        """Return when all changes of the session are in the store, or cannot be saved.

        A suspended process may have lost its connection to the store, and its sessions to other processes. In that
        case, confirm the leases, then save again.
        """
        await self._save(session)
        if self.is_in_doubt:
            await self._confirm()
            if not self._store.is_in_doubt and session in self._dirty:
                self.handle_return()
                await self._save(session)

    @property
    def is_in_doubt(self) -> bool:
        """Whether other processes may have taken over this process's sessions."""
        return self._store.is_in_doubt

    async def _save(self, session: Session) -> None:
        if session in self._dirty:
            if self.problem is not None or (self._runner is None and self._save_now()):
                return
            if self._next is None:
                self._next = asyncio.get_running_loop().create_future()
            waiting = self._next
            self._start()
            await asyncio.shield(waiting)
        elif session in self._writing and self._current is not None:
            await asyncio.shield(self._current)

    async def save_all(self) -> None:
        """Save all sessions, even if the last attempt failed: this may be the last chance."""
        self.problem = None
        for session in list(self._dirty) or list(self._writing):
            await self.save(session)

    def handle_return(self) -> None:
        """Write unsaved changes now that the store answers again. Replies wait for their commits again."""
        if self.problem is not None:
            self.problem, self._pause = None, FIRST_PAUSE
            if self._dirty:
                self._start()

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close(within=CLOSE_TASKS_SECONDS)

    def schedule(self, session: Session) -> None:
        """Schedule a commit of the session's changes."""
        if session not in self._dirty:
            self._dirty[session] = None
            if self._timer is None and self._runner is None:
                self._timer = self._clock.call_later(SAVE_SECONDS, self._save_soon)

    def _save_soon(self) -> None:
        self._timer = None
        if self._dirty and (self._runner is not None or not self._save_now()):
            self._start()

    def _start(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._runner is None:
            self._runner = self._tasks.spawn(self._run(), name="commit")

    async def _run(self) -> None:
        try:
            while self._dirty:
                await self._commit_all()
                if self.problem is not None:
                    self._timer = self._clock.call_later(self._pause, self._start)
                    break
        finally:
            self._runner = None
        if not self._dirty:
            self._end_wait()  # a caller may wait for a session that the last commit lost

    def _save_now(self) -> bool:
        """Write all unsaved changes if that needs no wait. Otherwise write nothing and return False."""
        if not self._store.is_quick:
            return False
        saved, commits = self._collect(self._dirty)
        try:
            leases = self._store.commit_now(commits)
        except StoreUnavailable:
            leases = None  # the caller falls back to `_commit_all`, which reports the failure
        if leases is None:
            self._put_back(saved, commits)
            return False
        self._dirty = {}
        self.unsaved_problem = None
        self._take_leases(saved, commits, leases)
        return True

    async def _commit_all(self) -> None:
        self._writing, self._dirty = self._dirty, {}
        self._current, self._next = self._next or asyncio.get_running_loop().create_future(), None
        try:
            # While there is a problem, replies leave without waiting for the next commit.
            had_problem = self.problem is not None
            saved, commits = self._collect(self._writing)
            for session in self._writing:
                session.unsaved.is_being_written = True
            try:
                leases = await self._store.commit(commits)
            except StoreUnavailable as error:
                self._put_back(saved, commits)
                self._report_failure(str(error))
            else:
                self._report_success()
                if not had_problem or not self._dirty:
                    self.unsaved_problem = None
                self._take_leases(saved, commits, leases)
        finally:
            for session in self._writing:
                session.unsaved.is_being_written = False
            current, self._current, self._writing = self._current, None, {}
            resolve(current, None)

    def _collect(self, sessions: Iterable[Session]) -> tuple[list[_Saved], list[Commit]]:
        saved = [self._saved[session] for session in sessions if session in self._saved]
        return saved, [entry.commit(self._expires_at(entry.session), self._write_other) for entry in saved]

    def _take_leases(self, saved: list[_Saved], commits: list[Commit], leases: Sequence[Lease | None]) -> None:
        for entry, commit, lease in zip(saved, commits, leases, strict=True):
            if lease is not None:
                entry.was_committed(commit, lease)
            else:
                self.lose(entry.session)

    def _put_back(self, saved: list[_Saved], commits: list[Commit]) -> None:
        for entry, commit in zip(saved, commits, strict=True):
            if entry.session in self._saved:
                entry.session.unsaved.put_back([*commit.puts, *commit.deletes])
                self._dirty[entry.session] = None

    def _report_failure(self, why: str) -> None:
        if self.problem is None:
            log.error("state_not_saved", error=why)
        self.problem = self.unsaved_problem = why
        self._pause = min(2 * max(self._pause, FIRST_PAUSE), LONGEST_RETRY_SECONDS)
        self._end_wait()  # callers that wait for the next commit would otherwise wait for the retry

    def _end_wait(self) -> None:
        if self._next is not None:
            waiting, self._next = self._next, None
            resolve(waiting, None)

    def _report_success(self) -> None:
        if self.problem is not None or self._pause:
            log.info("state_saved_again")
        self.problem, self._pause = None, 0.0

"""All sessions of an installation: open them, find them again, put idle ones to sleep, and end expired ones."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from emceepee.clock import Clock, Handle, milliseconds
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner, close_bounded
from emceepee.sessions.directory.open_sessions import OpenSessions, Watcher
from emceepee.sessions.directory.session_storage import SessionElsewhere, SessionStorage, SessionsUnavailable
from emceepee.sessions.directory.stored_sessions import StoredSessions
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.records import RecordKind, SessionProfile
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.notice_options import NoticeOptions
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey
from emceepee.telemetry.journal import unowned_journal
from emceepee.telemetry.logs import EventLog

OnLoad = Callable[[Session, Mapping[RecordKey, bytes]], Awaitable[None]]
log = EventLog("sessions")

SWEEP_SECONDS = 60.0
TAB_KEPT_SECONDS = 3600.0  # browser tabs close without notice
CREATE_TRIES = 3  # for a session under a name that other replicas may open concurrently
HANDLE_BYTES = 24  # 192 random bits: the handle and the same principal are enough for access


class _KeyTaken(Exception):
    """Another replica has opened a session under the same key."""


class SessionDirectory:
    """One per installation. If the store outlives the process, a session that is not open here may be stored."""

    def __init__(self, parts: SessionParts, storage: SessionStorage | None = None) -> None:
        self._parts = parts
        self._clock: Clock = parts.clock
        self._limits: Limits = parts.limits
        self._ids = Ulids(lambda: milliseconds(self._clock.now()))
        self._sessions = OpenSessions()
        self.unowned_requests = unowned_journal(parts.journals, parts.clock, self._ids)
        self._opening = asyncio.Lock()
        self._tasks = TaskOwner("directory")
        self._next_sweep: Handle | None = None
        self._is_stopping = False
        self.on_end: Callable[[Session], Awaitable[None]] | None = None  # awaited before a session is closed
        self.on_load: OnLoad | None = None  # awaited with the stored records of a session's connections
        self._storage = storage
        self._stored: StoredSessions | None = None
        if storage is not None:
            storage.saver.expires_at = self._expires_at
            self._stored = StoredSessions(
                storage,
                self,
                self._sessions,
                opening=self._opening,
                tasks=self._tasks,
                clock=self._clock,
                limits=self._limits,
            )

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def is_busy(self) -> bool:
        """Whether any session has running work or waits for an answer."""
        return any(session.is_busy for session in self._sessions)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def kept_ms(self) -> int:
        return round(self._limits.session_kept_seconds * 1000)

    def write_records(self, kind: RecordKind, writer: Callable[[str], bytes | None]) -> None:
        """Register `writer` for records of `kind`, which are no part of a session. It writes a record by its id."""
        if self._storage is not None:
            self._storage.saver.record_writers[kind] = writer

    @property
    def may_be_stored(self) -> bool:
        """Whether a session that is not open here may be in a store."""
        return self._storage is not None

    @property
    def state_problem(self) -> str | None:
        """Return why sessions cannot be saved now, or None if they can."""
        return None if self._storage is None else self._storage.problem

    @property
    def unsaved_problem(self) -> str | None:
        """Return why changes that a reply reported as unsaved may be unsaved. Outlasts `state_problem` by a commit."""
        return None if self._storage is None else self._storage.saver.unsaved_problem

    @property
    def has_configuration_problem(self) -> bool:
        """Whether the operator's current configuration is not in use."""
        return self._parts.registry.problem is not None

    def set_notice_options(self, options: NoticeOptions) -> None:
        """Apply the options to every session, open or adopted, and to sessions opened later."""
        self._parts = replace(self._parts, notice_options=options)
        for session in self._sessions.with_adopted:
            session.notice_options = options

    def begin_stop(self) -> None:
        self._is_stopping = True
        for session in self._sessions:
            session.begin_stop()
        if self._stored is not None:
            self._stored.begin_stop()

    def stop_calls(self) -> None:
        for session in self._sessions:
            session.stop()

    def find(self, key: SessionKey) -> Session | None:
        return self._sessions.find(key)

    def mint(self, value: str) -> str:
        """Return an id or a handle for callers. With several replicas, it includes the slot of this replica."""
        return value if self._storage is None else self._storage.mint(value)

    @property
    def is_sure(self) -> bool:
        """Whether no other process can have taken over the sessions open here. If False, call `confirm`."""
        return self._storage is None or self._storage.is_sure

    @property
    def is_in_doubt(self) -> bool:
        """Whether the sessions open here must not be served until `confirm` succeeds."""
        return self._storage is not None and self._storage.is_in_doubt

    async def confirm(self) -> None:
        """Drop sessions that other processes have taken over."""
        if self._storage is not None:
            await self._storage.confirm()

    def forget_holder(self, key: SessionKey) -> None:
        """Forget the guessed holder of `key`: it does not have the session."""
        if self._storage is not None:
            self._storage.forget_guess(key)

    async def use(self, key: SessionKey, *, may_guess: bool = True) -> Session | None:
        """Find the session for a request, here or in the store, and mark it as just used.

        With `may_guess`, a session whose id names another replica is assumed to be there.

        Raises:
            SessionsUnavailable, TooManySessions, SessionElsewhere
        """
        session = self._find_by_any(key)
        if session is None and self._stored is not None:
            if may_guess:
                self._expect_here(key)
            async with self._opening:
                session = self._find_by_any(key) or await self._stored.load(key)
        if session is not None:
            session.touch()
        return session

    def _find_by_any(self, key: SessionKey) -> Session | None:
        """Search the open sessions only: taking one from the store again would invalidate the lease of its commits."""
        return self._sessions.find(key) or self._sessions.find_by_connection(key)

    # Observers.

    def sessions_of(self, principal: str) -> list[Session]:
        """Return all sessions of the principal, adopted ones first."""
        return self._sessions.of(principal)

    @property
    def sessions(self) -> list[Session]:
        """Return all sessions open here, of all principals."""
        return list(self._sessions)

    def adopt(self, session: Session) -> None:
        """List a session that lives elsewhere. This directory never puts it to sleep, expires it, or closes it."""
        self._sessions.adopt(session)

    def release(self, session: Session) -> None:
        """Stop listing an adopted session, which is about to end."""
        self._sessions.release(session)

    async def end(self, session: Session) -> bool:
        """Close the session. Return False if it is adopted or already gone."""
        key = self._sessions.key_of(session)
        return key is not None and await self.close(key)

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` whenever a session opens or closes. `sessions_of` shows whether the session is still open."""
        self._sessions.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._sessions.unwatch(watcher)

    # Opening and closing.

    async def open(self, principal: str) -> tuple[SessionKey, Session]:
        """Open a new session under a protocol session id."""
        return await self._open(SessionKey(principal, KeyKind.ID, self.mint(self._ids.unguessable())))

    async def open_handle(self, principal: str) -> tuple[SessionKey, Session]:
        """Open a new session under a handle. It counts as used, because its caller may use it at any time."""
        handle = self.mint(secrets.token_urlsafe(HANDLE_BYTES))
        key, session = await self._open(SessionKey(principal, KeyKind.HANDLE, handle))
        session.update_profile(was_used=True, connects_on_use=True)
        return key, session

    async def find_or_open(self, key: SessionKey, *, may_guess: bool = True) -> Session:
        """Return the session of a name or a principal, or open one that connects servers on use.

        Raises:
            SessionsUnavailable, TooManySessions, SessionElsewhere
        """
        if (known := self._sessions.find(key)) is not None and known.is_open:
            known.touch()
            return known
        if may_guess and known is None:
            self._expect_here(key)
        async with self._opening:
            session = self._sessions.find(key) or await self._load_or_create(key)
            session.touch()
            return session

    def _expect_here(self, key: SessionKey) -> None:
        """Raises: SessionElsewhere if another replica probably has it."""
        if self._storage is not None and (holder := self._storage.guess(key)) is not None:
            raise SessionElsewhere(key, holder)

    async def _load_or_create(self, key: SessionKey) -> Session:
        storage, stored, store_fails = self._storage, self._stored, False
        for _ in range(CREATE_TRIES):
            try:
                if stored is not None and not store_fails and (loaded := await stored.load(key)) is not None:
                    return loaded
                # Race: another replica may open the session, even if none is known yet. One may have started just now.
                is_shared = storage is not None and storage.creates_atomically and not store_fails
                with suppress(_KeyTaken):
                    _, session = await self._open(key, is_shared=is_shared)
                    session.update_profile(connects_on_use=True)
                    return session
            except SessionsUnavailable:
                if storage is None or storage.may_have_others or store_fails:
                    raise
                store_fails = True  # no other replica can hold it: open a new session while the store fails
        raise SessionsUnavailable("Other replicas open and close this session in the same moment. Try again.")

    async def close(self, key: SessionKey) -> bool:
        """End the session and everything it started. Return False if it does not exist."""
        await self.use(key)
        session = self._sessions.remove(key)
        if session is None:
            return False
        await self._end(session)
        return True

    async def _end(self, session: Session) -> None:
        if self._storage is not None:
            await self._storage.forget(session)
        await self.close_here(session)

    async def close_here(self, session: Session) -> None:
        """End the session's running work. Its stored state stays."""
        self._sessions.notify_watchers(session)
        try:
            if self.on_end is not None:
                await self.on_end(session)
        finally:  # the caller may disconnect during `on_end`, and nothing else closes the session
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")

    async def close_all(self) -> None:
        """Save the sessions that outlive the process, then close all sessions here. Stored state stays."""
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        if self._stored is not None:
            await self._stored.close()
        left = [session for key, _ in self._sessions.by_key() if (session := self._sessions.remove(key))]
        await asyncio.gather(*map(self.close_here, left))
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _open(self, key: SessionKey, *, is_shared: bool = False) -> tuple[SessionKey, Session]:
        """Open a session. With `is_shared`, other replicas may open the same key. Raises: _KeyTaken if one did."""
        self._sessions.make_room(key.principal, self._limits, give_way=self._end_idle_session_of)
        if self._storage is not None:
            self._storage.check_room()
        session = self.make_session(self._ids.new(), key.principal)
        session.keys = frozenset({key})
        if not is_shared:  # otherwise hide it until the store confirms that the key is free
            self.put(key, session)
        try:
            await session.open()
            if self._storage is not None and not is_shared:
                self._storage.keep(session)
            elif self._storage is not None and not await self._storage.create(session):
                raise _KeyTaken
        except BaseException:
            self._sessions.remove(key)
            self._sessions.notify_watchers(session)  # a watcher may have seen it during the attempt
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")
            raise
        if is_shared:
            self.put(key, session)
        self._sessions.notify_watchers(session)
        return key, session

    def make_session(self, session_id: str, principal: str, profile: SessionProfile | None = None) -> Session:
        """Return a session that is not open yet and that `find` does not return yet."""
        return Session(session_id, principal, self._parts, profile)

    def put(self, key: SessionKey, session: Session) -> None:
        """Register the session, so that `find` returns it from now on."""
        self._sessions.put(key, session)
        if self._is_stopping:
            session.begin_stop()
        self.sweep_later()

    async def load_connections(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        if self.on_load is not None:
            await self.on_load(session, stored)

    def sweep_later(self) -> None:
        """Schedule the next sweep of the sessions and the store, unless one is scheduled."""
        if self._next_sweep is None:
            self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def _end_idle_session_of(self, principal: str) -> bool:
        """End an idle session: preferably one that was never used, otherwise the one idle longest."""
        if (key := self._sessions.most_idle(principal)) is None or (session := self._sessions.remove(key)) is None:
            return False
        log.info("session_gave_way", wasUsed=session.profile.was_used)
        self._tasks.spawn(self._end(session), name="give way")
        return True

    def _sweep(self) -> None:
        """Stop the processes of idle sessions, then put the sessions to sleep, and forget them after a day."""
        is_needed = self._sessions or self._storage is not None
        self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep) if is_needed else None
        for key, session in self._sessions.by_key():
            if session.is_busy:
                session.touch()  # its idle time starts when the work ends
            if self._storage is not None:
                self._storage.saver.keep_longer(session)
            idle = session.idle_seconds
            if idle >= self._kept_seconds(session):
                self._tasks.spawn(self._forget(key), name="forget")
            elif idle >= self._limits.session_idle_seconds and session.is_awake:
                log.info("session_sleeps", idleMs=round(idle * 1000))
                self._tasks.spawn(session.sleep(), name="sleep")
            elif session.is_awake and 0 < self._limits.process_idle_seconds <= idle:
                session.servers.stop_idle_processes()
        if self._storage is not None:
            self._tasks.spawn(self.look_after_store(), name="store")

    def _kept_seconds(self, session: Session) -> float:
        kept = self._limits.session_kept_seconds
        if not session.profile.was_used:
            return min(kept, self._limits.unused_session_seconds)
        return min(kept, TAB_KEPT_SECONDS) if session.profile.is_tab else kept

    async def _forget(self, key: SessionKey) -> None:
        log.info("session_forgotten")
        await self.close(key)

    # The store.

    def handle_lost_replica(self, replica: Replica) -> None:
        if self._stored is not None:
            self._stored.handle_lost_replica()

    async def look_after_store(self) -> None:
        if self._stored is not None:
            await self._stored.look_after()

    def _expires_at(self, session: Session) -> datetime:
        return self._clock.now() + timedelta(seconds=self._kept_seconds(session) - session.idle_seconds)

"""All sessions of an installation: opened, found again, put to sleep when idle, ended when forgotten."""

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
TAB_KEPT_SECONDS = 3600.0  # browser tabs are closed without a word
CREATE_TRIES = 3  # for a session under a name that other replicas open, too
HANDLE_BYTES = 24  # 192 random bits: whoever has the handle and is the same principal is in


class _KeyTaken(Exception):
    """Another replica has opened a session under the same key."""


class SessionDirectory:
    """One per installation. With a store whose state outlives the process, a session that is not here may be there."""

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
        self.on_load: OnLoad | None = None  # awaited with what is stored for the connections of a session
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
        """Whether anything works, or waits for an answer, in any session."""
        return any(session.is_busy for session in self._sessions)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def kept_ms(self) -> int:
        return round(self._limits.session_kept_seconds * 1000)

    def write_records(self, kind: RecordKind, writer: Callable[[str], bytes | None]) -> None:
        """Records of that kind are no part of a session; `writer` writes them by their ids."""
        if self._storage is not None:
            self._storage.saver.record_writers[kind] = writer

    @property
    def may_be_stored(self) -> bool:
        """Whether a session that is not here may be in a store."""
        return self._storage is not None

    @property
    def state_problem(self) -> str | None:
        """Why sessions cannot be saved just now."""
        return None if self._storage is None else self._storage.problem

    @property
    def unsaved_problem(self) -> str | None:
        """Return why changes that a reply called unsaved may still be unsaved. Outlasts `state_problem` by a commit."""
        return None if self._storage is None else self._storage.saver.unsaved_problem

    @property
    def has_configuration_problem(self) -> bool:
        """Whether the operator's configuration, as it is now, is not used."""
        return self._parts.registry.problem is not None

    def set_notice_options(self, options: NoticeOptions) -> None:
        """Apply them to every session, open or not."""
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
        """An id or a handle as callers get it: with the slot of this replica, where there are several."""
        return value if self._storage is None else self._storage.mint(value)

    @property
    def is_sure(self) -> bool:
        """Whether no other process can have taken over what is here. If not, `confirm`."""
        return self._storage is None or self._storage.is_sure

    @property
    def is_in_doubt(self) -> bool:
        """Whether nothing that is here may be served until it is confirmed."""
        return self._storage is not None and self._storage.is_in_doubt

    async def confirm(self) -> None:
        """Let go of what others have taken over."""
        if self._storage is not None:
            await self._storage.confirm()

    def forget_holder(self, key: SessionKey) -> None:
        """It was not where it was thought to be."""
        if self._storage is not None:
            self._storage.forget_guess(key)

    async def use(self, key: SessionKey, *, may_guess: bool = True) -> Session | None:
        """Find a session for a request, here or in the store: from now on it counts as just used.

        With `may_guess`, one whose id names another replica is taken to be there.

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
        """What is here is not asked for in the store: taking it anew would void the lease that a commit is made by."""
        return self._sessions.find(key) or self._sessions.find_by_connection(key)

    # Who looks on.

    def sessions_of(self, principal: str) -> list[Session]:
        """All that the principal has, adopted ones first."""
        return self._sessions.of(principal)

    @property
    def sessions(self) -> list[Session]:
        """All that are here, whosever they are."""
        return list(self._sessions)

    def adopt(self, session: Session) -> None:
        """List a session that lives elsewhere. It is never put to sleep, forgotten or closed from here."""
        self._sessions.adopt(session)

    def release(self, session: Session) -> None:
        """An adopted session is about to end."""
        self._sessions.release(session)

    async def end(self, session: Session) -> bool:
        """Close it. False if that is not ours to do: it is adopted, or gone already."""
        key = self._sessions.key_of(session)
        return key is not None and await self.close(key)

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` of every session that comes or goes; whether it is there, `sessions_of` says."""
        self._sessions.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._sessions.unwatch(watcher)

    # Opening and closing.

    async def open(self, principal: str) -> tuple[SessionKey, Session]:
        """A new session under a protocol session id."""
        return await self._open(SessionKey(principal, KeyKind.ID, self.mint(self._ids.unguessable())))

    async def open_handle(self, principal: str) -> tuple[SessionKey, Session]:
        """A new session under a handle. Whoever asks for one means to use it, at any time."""
        handle = self.mint(secrets.token_urlsafe(HANDLE_BYTES))
        key, session = await self._open(SessionKey(principal, KeyKind.HANDLE, handle))
        session.update_profile(was_used=True, connects_on_use=True)
        return key, session

    async def find_or_open(self, key: SessionKey, *, may_guess: bool = True) -> Session:
        """For names and principals, which exist as soon as they are used. A new one connects servers on use.

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
                # Others may open it too, even if none is known yet: one may have started a moment ago.
                is_shared = storage is not None and storage.is_shared and not store_fails
                with suppress(_KeyTaken):
                    _, session = await self._open(key, is_shared=is_shared)
                    session.update_profile(connects_on_use=True)
                    return session
            except SessionsUnavailable:
                if storage is None or storage.may_have_others or store_fails:
                    raise
                store_fails = True  # nobody else can have it: a new one then, as long as that lasts
        raise SessionsUnavailable("Other replicas open and close this session in the same moment. Try again.")

    async def close(self, key: SessionKey) -> bool:
        """End it and everything it started. False if there is none."""
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
        """End what it has running; what is stored of it stays."""
        self._sessions.notify_watchers(session)
        try:
            if self.on_end is not None:
                await self.on_end(session)
        finally:  # who asked for it may hang up meanwhile, and nobody else would
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")

    async def close_all(self) -> None:
        """What outlives the process is saved, and left as it is."""
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        if self._stored is not None:
            await self._stored.close()
        left = [session for key, _ in self._sessions.by_key() if (session := self._sessions.remove(key))]
        await asyncio.gather(*map(self.close_here, left))
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _open(self, key: SessionKey, *, is_shared: bool = False) -> tuple[SessionKey, Session]:
        """`is_shared`: other replicas may open one under the same key. Raises: _KeyTaken if one did."""
        self._sessions.make_room(key.principal, self._limits, give_way=self._end_idle_session_of)
        if self._storage is not None:
            self._storage.check_room()
        session = self.make_session(self._ids.new(), key.principal)
        session.keys = frozenset({key})
        if not is_shared:  # else nobody may find it before it is surely the only one
            self.put(key, session)
        try:
            await session.open()
            if self._storage is not None and not is_shared:
                self._storage.keep(session)
            elif self._storage is not None and not await self._storage.create(session):
                raise _KeyTaken
        except BaseException:
            self._sessions.remove(key)
            self._sessions.notify_watchers(session)  # someone may have seen it meanwhile
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")
            raise
        if is_shared:
            self.put(key, session)
        self._sessions.notify_watchers(session)
        return key, session

    def make_session(self, session_id: str, principal: str, profile: SessionProfile | None = None) -> Session:
        """One that is neither open nor to be found yet."""
        return Session(session_id, principal, self._parts, profile)

    def put(self, key: SessionKey, session: Session) -> None:
        """From now on it can be found."""
        self._sessions.put(key, session)
        if self._is_stopping:
            session.begin_stop()
        self.sweep_later()

    async def load_connections(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        if self.on_load is not None:
            await self.on_load(session, stored)

    def sweep_later(self) -> None:
        """Look after sessions and the store in a while."""
        if self._next_sweep is None:
            self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def _end_idle_session_of(self, principal: str) -> bool:
        """End an idle session: one that was never used if there is one, else the one idle longest."""
        if (key := self._sessions.most_idle(principal)) is None or (session := self._sessions.remove(key)) is None:
            return False
        log.info("session_gave_way", wasUsed=session.profile.was_used)
        self._tasks.spawn(self._end(session), name="give way")
        return True

    def _sweep(self) -> None:
        """Stop the processes of idle sessions, put these to sleep later, and forget them after a day."""
        is_needed = self._sessions or self._storage is not None
        self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep) if is_needed else None
        for key, session in self._sessions.by_key():
            if session.is_busy:
                session.touch()  # it is idle from the end of that on
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

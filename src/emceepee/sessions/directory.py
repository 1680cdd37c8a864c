"""All sessions of an installation: opened, found again, put to sleep when idle, ended when forgotten."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from emceepee.clock import Clock, Handle, milliseconds
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner, close_bounded
from emceepee.sessions.due_watch import DueWatch
from emceepee.sessions.open_sessions import OpenSessions, Watcher
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.persistence import stored_profile
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.sessions.session_storage import SessionElsewhere, SessionStorage, SessionsUnavailable
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey, StoredSession
from emceepee.surface import call_to
from emceepee.telemetry.journal import unowned_journal
from emceepee.telemetry.logs import EventLog

OnLoad = Callable[[Session, Mapping[RecordKey, bytes]], Awaitable[None]]
log = EventLog("sessions")

SWEEP_SECONDS = 60.0
TAB_KEPT_SECONDS = 3600.0  # browser tabs are closed without a word
HAND_OVER_SECONDS = 0.05  # between two looks for sessions that can be let go
LAST_ANSWERS_SECONDS = 0.5  # for requests in a session that another replica has taken over
CREATE_TRIES = 3  # for a session under a name that other replicas open, too
HANDLE_BYTES = 24  # 192 random bits: whoever has the handle and is the same principal is in


class TooManySessions(EmceepeeError):
    """The limit of this principal or of the whole installation is reached."""

    code = ErrorCode.LIMIT_EXCEEDED


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
        self._resting: dict[SessionKey, asyncio.Task[None]] = {}
        self._due: DueWatch | None = None
        if storage is not None:
            self._due = storage.watch_due(load=self._load_due, spawn=partial(self._tasks.spawn, name="due"))
            storage.saver.expires_at = self._expires_at
            storage.saver.on_lost = self._let_go

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
    def has_configuration_problem(self) -> bool:
        """Whether the operator's configuration, as it is now, is not used."""
        return self._parts.registry.problem is not None

    def set_manners(self, structured_notices: bool, asks_natively: bool) -> None:
        """How callers are told and asked from now on, in every session."""
        self._parts = replace(self._parts, structured_notices=structured_notices, asks_natively=asks_natively)
        for session in self._sessions.with_adopted:
            session.structured_notices, session.asks_natively = structured_notices, asks_natively

    def begin_stop(self) -> None:
        self._is_stopping = True
        for session in self._sessions:
            session.begin_stop()
        if self._storage is not None and self._storage.is_shared:
            self._tasks.spawn(self._hand_over(), name="hand over")

    async def _hand_over(self) -> None:
        """Let go of each session as soon as nothing is at work in it: other replicas wait for it."""
        while self._sessions:
            for key, session in self._sessions.by_key():
                is_at_work = session.is_busy or session.activity.is_on_the_way  # else its events were told twice
                if not is_at_work and self._can_rest(session) and self._sessions.remove(key) is not None:
                    self._begin_rest(key, session)
            await self._clock.sleep(HAND_OVER_SECONDS)

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
        if session is None and self._storage is not None:
            if may_guess:
                self._expect_here(key)
            async with self._opening:
                session = self._find_by_any(key) or await self._load(key)
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
        storage, store_fails = self._storage, False
        for _ in range(CREATE_TRIES):
            try:
                if storage is not None and not store_fails and (loaded := await self._load(key)) is not None:
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
        await self._close(session)

    async def _close(self, session: Session) -> None:
        self._sessions.notify_watchers(session)
        try:
            if self.on_end is not None:
                await self.on_end(session)
        finally:  # who asked for it may hang up meanwhile, and nobody else would
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")

    async def close_all(self) -> None:
        """What outlives the process is saved, and left as it is."""
        for pending in (self._next_sweep, self._due):
            if pending is not None:
                pending.cancel()
        if self._resting:
            await asyncio.wait(list(self._resting.values()), timeout=CLOSE_SESSION_SECONDS)
        if self._storage is not None:
            for open_session in self._sessions:
                open_session.calls.leave_kept()
            await self._storage.close(self._sessions)
        left = [session for key, _ in self._sessions.by_key() if (session := self._sessions.remove(key))]
        await asyncio.gather(*map(self._close, left))
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _open(self, key: SessionKey, *, is_shared: bool = False) -> tuple[SessionKey, Session]:
        """`is_shared`: other replicas may open one under the same key. Raises: _KeyTaken if one did."""
        self._make_room(key.principal)
        if self._storage is not None:
            self._storage.check_room()
        session = Session(self._ids.new(), key.principal, self._parts)
        session.keys = frozenset({key})
        if not is_shared:  # else nobody may find it before it is surely the only one
            self._put(key, session)
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
            self._put(key, session)
        self._sessions.notify_watchers(session)
        return key, session

    def _put(self, key: SessionKey, session: Session) -> None:
        self._sessions.put(key, session)
        if self._is_stopping:
            session.begin_stop()
        self._sweep_later()

    def _sweep_later(self) -> None:
        if self._next_sweep is None:
            self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep)

    def _make_room(self, principal: str, *, for_stored: bool = False) -> None:
        """Where there are too many, one that is idle gives way: the principal's own, or that of who has most."""
        own = self._sessions.count_of(principal)
        give_way = self._rest_idle_session_of if for_stored else self._end_idle_session_of
        if own >= self._limits.sessions_per_principal:
            if not give_way(principal):
                raise TooManySessions(
                    "You have as many sessions as you may, and all are in use; end one with DELETE or "
                    f"{call_to('close_session')}."
                )
        elif len(self._sessions) >= self._limits.sessions_in_all:
            largest = self._sessions.who_has_most()
            has_more = self._sessions.count_of(largest) > own
            if not (has_more and give_way(largest)) and not give_way(principal):
                raise TooManySessions(
                    "This server has as many sessions as it may, and all are in use; try again later."
                )

    def _end_idle_session_of(self, principal: str) -> bool:
        """End an idle session: one that was never used if there is one, else the one idle longest."""
        if (key := self._sessions.most_idle(principal)) is None or (session := self._sessions.remove(key)) is None:
            return False
        log.info("session_gave_way", wasUsed=session.profile.was_used)
        self._tasks.spawn(self._end(session), name="give way")
        return True

    def _rest_idle_session_of(self, principal: str) -> bool:
        """Leave an idle session to the store."""
        key = self._sessions.most_idle(principal)
        session = None if key is None else self._sessions.find(key)
        if key is None or session is None or not self._can_rest(session):
            return False
        self._sessions.remove(key)
        self._begin_rest(key, session)
        return True

    def _can_rest(self, session: Session) -> bool:
        """Whether letting go of it would lose nothing that the store cannot take just now."""
        return self.state_problem is None or not session.unsaved

    def _begin_rest(self, key: SessionKey, session: Session) -> None:
        resting = self._resting[key] = self._tasks.spawn(self._rest(session), name="rest")
        resting.add_done_callback(lambda _: self._resting.pop(key, None))

    def _sweep(self) -> None:
        """Sessions that nobody uses sleep, and are forgotten after a day; those never used, after minutes."""
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
        """Its timers are for others to fire now."""
        if self._due is not None and not self._is_stopping:
            self._due.hurry()

    async def look_after_store(self) -> None:
        """After the sessions that are there and not here: some expire, and some have timers that fall due."""
        if self._storage is not None and self._due is not None:
            await self._storage.forget_expired(self._limits.sessions_in_all)
            await self._due.look()

    async def _load(self, key: SessionKey) -> Session | None:
        """From the store, as its last process left it. Raises: TooManySessions, SessionsUnavailable."""
        assert self._storage is not None  # whoever calls it looked
        if (resting := self._resting.get(key)) is not None:
            await asyncio.wait({resting})
        loaded = await self._storage.take(key)
        if loaded is None:
            return None
        for known in self._sessions:  # the store may lag behind with what leads to a session that is here
            if known.session_id == loaded.head.session_id:
                self._storage.saver.renew_lease(known, loaded.lease)
                return None
        return await self._restore(loaded)

    async def _restore(self, stored: StoredSession) -> Session:
        assert self._storage is not None
        key = next(key for key in stored.head.keys if key.kind is not KeyKind.CONNECTION)
        try:
            self._make_room(key.principal, for_stored=True)
        except TooManySessions:
            await self._storage.give_back(stored)
            raise
        session = Session(stored.head.session_id, key.principal, self._parts, stored_profile(stored.records))
        session.keys = stored.head.keys
        try:
            await session.open()
            rest = await self._storage.restore(session, stored)
            if self.on_load is not None:
                await self.on_load(session, rest)
        except BaseException:
            await self._storage.release(session)
            await self._storage.give_back(stored)  # if it came to nothing before it was followed
            await self._close(session)
            raise
        self._put(key, session)  # not before: nobody is to find half of it
        log.info("session_restored")
        self._sessions.notify_watchers(session)
        return session

    async def _rest(self, session: Session) -> None:
        """Let it go from here; the store keeps it."""
        assert self._storage is not None
        await self._storage.release(session)
        await self._close(session)
        if self._due is not None and not self._is_stopping:
            await self._due.wait()

    def _let_go(self, session: Session) -> None:
        """Another process holds it now."""
        session.lose()
        key = self._sessions.key_of(session)
        if key is not None and self._sessions.remove(key) is not None:
            log.warning("session_taken_by_another_process", session=session.session_id)
            self._tasks.spawn(self._close_lost(session), name="let go")

    async def _close_lost(self, session: Session) -> None:
        """Who waits for an answer in it has a moment to get the one that says so."""
        try:
            await self._clock.sleep(LAST_ANSWERS_SECONDS)
        finally:
            await self._close(session)

    def _expires_at(self, session: Session) -> datetime:
        return self._clock.now() + timedelta(seconds=self._kept_seconds(session) - session.idle_seconds)

    async def _load_due(self) -> int | None:
        """Load the sessions that time changes now: how many, or None if the next sweep has to try some again."""
        assert self._storage is not None
        is_any_left = False
        async with self._opening:
            taken = await self._storage.take_due()
            for stored in taken:
                try:
                    await self._restore(stored)
                except TooManySessions:
                    is_any_left = True
                    log.warning("session_not_loaded", reason="there are as many as there may be")
                except Exception as error:  # whatever is wrong with one, the others are loaded, and the process starts
                    is_any_left = True
                    log.error("session_not_loaded", error=f"{type(error).__name__}: {error}")
        if is_any_left:
            self._sweep_later()
        return None if is_any_left else len(taken)

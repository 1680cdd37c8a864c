"""All sessions of an installation: open them, find them again, put idle ones to sleep, and end expired ones.

With a store, sessions also move between this process and the store. They are loaded on request or when due, released,
or lost to another replica.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from functools import partial

from emceepee.clock import Clock, Handle, milliseconds
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner, close_bounded
from emceepee.sessions.directory.open_sessions import (
    KeyClaim,
    OpenSessions,
    SessionConnections,
    TooManySessions,
    Watcher,
    kept_seconds,
)
from emceepee.sessions.directory.persistence import stored_profile
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.directory.session_storage import (
    DurableStorage,
    SessionElsewhere,
    SessionStorage,
    SessionsUnavailable,
)
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.notice_options import NoticeOptions
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Store, StoredSession
from emceepee.telemetry.journal import unowned_journal
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
SWEEP_SECONDS = 60.0
CREATE_TRIES = 3  # for a session under a name that other replicas may open concurrently
HANDLE_BYTES = 24  # 192 random bits: the handle and the same principal are enough for access
HAND_OVER_SECONDS = 0.05  # between two checks for sessions that can be released
LAST_ANSWERS_SECONDS = 0.5  # grace period for requests in a session that another replica has taken over


class _KeyTaken(Exception):
    """Another replica has opened a session under the same key."""


class _ClaimLost(Exception):
    """The key turned out to lead to a session that is being loaded under another key."""


class SessionDirectory:
    """One per installation. If the store outlives the process, a session that is not open here may be stored."""

    def __init__(
        self,
        parts: SessionParts,
        store: Store | None = None,
        placement: Placement | None = None,
        *,
        is_contested: bool = False,
    ) -> None:
        """With `is_contested`, processes that are no replicas of each other may open the same names at once."""
        self._parts = parts
        self.clock: Clock = parts.clock
        self._limits: Limits = parts.limits
        self._ids = Ulids(lambda: milliseconds(self.clock.now()))
        self._sessions = OpenSessions(parts)
        self.unowned_requests = unowned_journal(parts.journals, parts.clock, self._ids)
        self._taking = asyncio.Lock()  # a second take of the same session would invalidate the lease of the first
        self._tasks = TaskOwner("directory")
        self._releasing: dict[asyncio.Task[None], KeyClaim] = {}
        self._next_sweep: Handle | None = None
        self.storage = SessionStorage()
        if store is not None and store.is_durable:
            self.storage = DurableStorage(
                store,
                parts.clock,
                parts.limits,
                placement,
                is_contested=is_contested,
                lose=self._drop_lost,
                write_other=self._sessions.write_connection_record,
            )
        self._due = self.storage.watch_due(
            self.clock, load=self._load_due, spawn=partial(self._tasks.spawn, name="due")
        )

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def is_busy(self) -> bool:
        """Whether any session has running work or waits for an answer."""
        return any(session.is_busy for session in self._sessions)

    @property
    def is_sure(self) -> bool:
        return self.storage.is_sure

    async def confirm(self) -> None:
        await self.storage.confirm()

    @property
    def kept_ms(self) -> int:
        return round(self._limits.session_kept_seconds * 1000)

    @property
    def has_configuration_problem(self) -> bool:
        """Whether the operator's current configuration is not in use."""
        return self._parts.registry.problem is not None

    def attach(self, connections: SessionConnections) -> None:
        """Store and restore these connections with their sessions, and close them first when a session ends."""
        self._sessions.connections = connections

    def set_notice_options(self, options: NoticeOptions) -> None:
        """Apply the options to every session, open or adopted, and to sessions opened later."""
        self._sessions.set_notice_options(options)

    def begin_stop(self) -> None:
        self._sessions.begin_stop()
        if self.storage.is_shared:
            self._tasks.spawn(self._hand_over(), name="hand over")

    def stop_calls(self) -> None:
        for session in self._sessions:
            session.stop()

    def find(self, key: SessionKey) -> Session | None:
        return self._sessions.find(key)

    async def use(self, key: SessionKey, *, may_guess: bool = True) -> Session | None:
        """Find the session for a request, here or in the store, and mark it as just used.

        With `may_guess`, a session whose id names another replica is assumed to be there.

        Raises:
            SessionsUnavailable, TooManySessions, SessionElsewhere
        """
        session = self._sessions.find(key) or await self._find_or(self._load, key, may_guess=may_guess)
        if session is not None:
            session.touch()
        return session

    async def _find_or(
        self, bring: Callable[[SessionKey, KeyClaim], Awaitable[Session | None]], key: SessionKey, *, may_guess: bool
    ) -> Session | None:
        """Return the open session, or else the result of `bring`. Requests for other sessions do not wait for it.

        Race: several requests may name the same session, even by different keys. Only one of them loads or opens it.

        Raises: SessionElsewhere if another replica probably has it.
        """
        if may_guess and (holder := self.storage.guess(key)) is not None:
            raise SessionElsewhere(key, holder)
        while True:
            if (claim := self._sessions.claim_on(key)) is not None:
                await claim.wait()
            elif (session := self._sessions.find(key)) is not None:
                return session
            else:
                with self._sessions.claim([key]) as claim, suppress(_ClaimLost):
                    return await bring(key, claim)

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
        if not self._sessions.remove(session):
            return False
        await self._end(session)
        return True

    def watch(self, watcher: Watcher) -> None:
        """Call `watcher` whenever a session opens or closes. `sessions_of` shows whether the session is still open."""
        self._sessions.watch(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        self._sessions.unwatch(watcher)

    # Opening and closing.

    async def open(self, principal: str) -> tuple[SessionKey, Session]:
        """Open a new session under a protocol session id."""
        key = SessionKey(principal, KeyKind.ID, self.storage.mint(self._ids.unguessable()))
        return key, await self._create(key)

    async def open_handle(self, principal: str) -> tuple[SessionKey, Session]:
        """Open a new session under a handle. It counts as used, because its caller may use it at any time."""
        key = SessionKey(principal, KeyKind.HANDLE, self.storage.mint(secrets.token_urlsafe(HANDLE_BYTES)))
        session = await self._create(key)
        session.update_profile(was_used=True, connects_on_use=True)
        return key, session

    async def find_or_open(self, key: SessionKey, *, may_guess: bool = True) -> Session:
        """Return the session of a name or a principal, or open one that connects servers on use.

        Raises:
            SessionsUnavailable, TooManySessions, SessionElsewhere
        """
        session = self._sessions.find(key) or await self._find_or(self._load_or_create, key, may_guess=may_guess)
        assert session is not None  # it was created, if nothing else
        session.touch()
        return session

    async def _load_or_create(self, key: SessionKey, claim: KeyClaim) -> Session:
        store_fails = False
        for _ in range(CREATE_TRIES):
            try:
                if not store_fails and (loaded := await self._load(key, claim)) is not None:
                    return loaded
                # Race: another replica may open the session, even if none is known yet. One may have started just now.
                is_shared = self.storage.creates_atomically and not store_fails
                with suppress(_KeyTaken):
                    session = await self._create(key, is_shared=is_shared)
                    session.update_profile(connects_on_use=True)
                    return session
            except SessionsUnavailable:
                if self.storage.may_have_others or store_fails:
                    raise
                store_fails = True  # no other replica can hold it: open a new session while the store fails
        raise SessionsUnavailable("Other replicas are opening and closing this session at the same time. Try again.")

    async def _create(self, key: SessionKey, *, is_shared: bool = False) -> Session:
        """Create a session. With `is_shared`, other replicas may open the same key. Raises: _KeyTaken if one did."""
        session: Session | None = None
        try:
            async with self._sessions.place(key.principal, give_way=self._end_idle_session_of):
                self.storage.check_room()
                session = self._sessions.new(self._ids.new(), frozenset({key}))
                await session.open()
                if not is_shared:
                    self.storage.keep(session)
                elif not await self.storage.create(session):
                    raise _KeyTaken
                self._sessions.put(session)
                self._sweep_later()
        except BaseException:
            if session is not None:
                await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")
            raise
        return session

    async def close(self, key: SessionKey) -> bool:
        """End the session and everything it started. Return False if it does not exist."""
        await self.use(key)
        session = self._sessions.find(key)
        return session is not None and await self.end(session)

    async def _end(self, session: Session) -> None:
        await self.storage.forget(session)
        await self._sessions.close(session)

    async def close_all(self) -> None:
        """Save the sessions that outlive the process, then close all sessions here. Stored state stays."""
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        self._due.cancel()
        if self._releasing:
            await asyncio.wait(self._releasing, timeout=CLOSE_SESSION_SECONDS)
        if self.storage.is_durable:
            for session in self._sessions:
                session.calls.detach_stored()
        await self.storage.close(self._sessions)
        left = [session for session in self._sessions if self._sessions.remove(session)]
        await asyncio.gather(*map(self._sessions.close, left))
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    # Idle sessions.

    def _sweep_later(self) -> None:
        """Schedule the next sweep of the sessions and the store, unless one is scheduled."""
        if self._next_sweep is None:
            self._next_sweep = self.clock.call_later(SWEEP_SECONDS, self._sweep)

    def _end_idle_session_of(self, principal: str) -> bool:
        """End an idle session: preferably one that was never used, otherwise the one idle longest."""
        session = self._sessions.most_idle(principal)
        if session is None or not self._sessions.remove(session):
            return False
        log.info("session_evicted", wasUsed=session.profile.was_used)
        self._tasks.spawn(self._end(session), name="evict")
        return True

    def _sweep(self) -> None:
        """Stop the processes of idle sessions, then put the sessions to sleep, and forget them after a day."""
        is_needed = self._sessions or self.storage.is_durable
        self._next_sweep = self.clock.call_later(SWEEP_SECONDS, self._sweep) if is_needed else None
        for session in self._sessions:
            if session.is_busy:
                session.touch()  # its idle time starts when the work ends
            self.storage.keep_longer(session)
            idle = session.idle_seconds
            if idle >= kept_seconds(session, self._limits):
                log.info("session_forgotten")
                self._tasks.spawn(self.end(session), name="forget")
            elif idle >= self._limits.session_idle_seconds and session.is_awake:
                log.info("session_sleeps", idleMs=round(idle * 1000))
                self._tasks.spawn(session.sleep(), name="sleep")
            elif session.is_awake and 0 < self._limits.process_idle_seconds <= idle:
                session.servers.stop_idle_processes()
        if self.storage.is_durable:
            self._tasks.spawn(self.look_after_store(), name="store")

    # Load from the store.

    async def _load(self, key: SessionKey, claim: KeyClaim) -> Session | None:
        """Load the session from the store.

        Raises:
            TooManySessions, SessionsUnavailable, SessionElsewhere, _ClaimLost
        """
        async with self._taking:
            if not claim.holds(key):
                raise _ClaimLost
            stored = await self.storage.take(key)
            if stored is None:
                return None
            claim.extend(stored.head.keys)
        for known in self._sessions:  # the store may not know every key of a session that is open here
            if known.session_id == stored.head.session_id:
                self.storage.renew_lease(known, stored.lease)
                return None
        return await self._restore(stored)

    async def _restore(self, stored: StoredSession) -> Session:
        head, session = stored.head, None
        try:
            async with self._sessions.place(head.principal, give_way=self._release_idle_session_of):
                session = self._sessions.new(head.session_id, head.keys, stored_profile(stored.records))
                await session.open()
                await self._sessions.restore_connections(session, await self.storage.restore(session, stored))
                if session.is_lost:
                    raise SessionsUnavailable("Another process has just taken over this session. Try again.")
                log.info("session_restored")
                self._sessions.put(session)  # last, so that no request finds a half-restored session
                self._sweep_later()
        except BaseException:
            if session is not None:
                await self.storage.release(session)
            await self.storage.give_back(stored)  # if it failed before the saver followed the session
            if session is not None:
                await self._sessions.close(session)
            raise
        return session

    async def look_after_store(self) -> None:
        """Delete expired sessions from the store, and load sessions with due timers."""
        await self.storage.forget_expired(self._limits.sessions_in_all)
        await self._due.look()

    def handle_lost_replica(self, replica: Replica) -> None:
        """Check for due timers soon: other replicas now fire those of the lost replica's sessions."""
        if not self._sessions.are_stopping:
            self._due.hurry()

    async def _load_due(self) -> int | None:
        """Load due sessions. Return their number, or None if the next sweep has to retry some."""
        is_any_left = False
        with ExitStack() as claims:
            async with self._taking:
                taken = [
                    (stored, claims.enter_context(self._sessions.claim(stored.head.keys)))
                    for stored in await self.storage.take_due()
                ]
            for stored, claim in taken:
                try:
                    await self._restore(stored)
                except Exception as error:  # a broken session must not keep the others or the process from starting
                    is_any_left = True
                    report = log.warning if isinstance(error, TooManySessions) else log.error
                    report("session_not_loaded", error=f"{type(error).__name__}: {error}")
                finally:
                    claim.end()
        if is_any_left:
            self._sweep_later()
        return None if is_any_left else len(taken)

    # Release to the store.

    async def _hand_over(self) -> None:
        """Release each session as soon as no work runs in it: other replicas wait for it."""
        while self._sessions:
            for session in self._sessions:
                is_at_work = session.is_busy or session.activity.is_on_the_way  # else its events would be sent twice
                if not is_at_work and self._can_release(session) and self._sessions.remove(session):
                    self._begin_release(session)
            await self.clock.sleep(HAND_OVER_SECONDS)

    def _release_idle_session_of(self, principal: str) -> bool:
        """Release an idle session to the store."""
        session = self._sessions.most_idle(principal)
        if session is None or not self._can_release(session) or not self._sessions.remove(session):
            return False
        self._begin_release(session)
        return True

    def _can_release(self, session: Session) -> bool:
        """Whether releasing the session would lose no unsaved changes."""
        return self.storage.problem is None or not session.unsaved

    def _begin_release(self, session: Session) -> None:
        releasing = self._tasks.spawn(self._release(session), name="release")
        self._releasing[releasing] = self._sessions.claim(session.keys)
        releasing.add_done_callback(lambda task: self._releasing.pop(task).end())

    async def _release(self, session: Session) -> None:
        """Release the session from this process. The store keeps it."""
        await self.storage.release(session)
        await self._sessions.close(session)
        if not self._sessions.are_stopping:
            await self._due.wait()

    def _drop_lost(self, session: Session) -> None:
        """Drop a session that another process now holds."""
        session.lose()
        if self._sessions.remove(session):
            log.warning("session_taken_by_another_process", session=session.session_id)
            self._tasks.spawn(self._close_lost(session), name="lost")

    async def _close_lost(self, session: Session) -> None:
        """Close a lost session after a grace period, in which waiting callers receive the error."""
        try:
            await self.clock.sleep(LAST_ANSWERS_SECONDS)
        finally:
            await self._sessions.close(session)

"""Move sessions between this process and the store.

They are loaded on request or when due, released to the store, or lost to another replica.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import NoReturn, Protocol

from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner
from emceepee.sessions.directory.open_sessions import OpenSessions, TooManySessions
from emceepee.sessions.directory.persistence import stored_profile
from emceepee.sessions.directory.session_storage import SessionStorage, SessionsUnavailable
from emceepee.sessions.records import SessionProfile
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey, StoredSession
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")

HAND_OVER_SECONDS = 0.05  # between two checks for sessions that can be released
LAST_ANSWERS_SECONDS = 0.5  # grace period for requests in a session that another replica has taken over


class SessionHost(Protocol):
    """The directory that holds a session while it is open here."""

    def make_session(self, session_id: str, principal: str, profile: SessionProfile | None = None) -> Session: ...

    async def load_connections(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        """Restore the stored connections of a session that was loaded."""
        ...

    def put(self, key: SessionKey, session: Session) -> None:
        """Register the session, so that requests can find it from now on."""
        ...

    async def close_here(self, session: Session) -> None:
        """End the session's running work. Its stored state stays."""
        ...

    def sweep_later(self) -> None:
        """Schedule the next sweep of the store."""
        ...


class StoredSessions:
    """One per directory with a store. `opening` allows only one session to be opened or loaded at a time."""

    def __init__(
        self,
        storage: SessionStorage,
        host: SessionHost,
        sessions: OpenSessions,
        *,
        opening: asyncio.Lock,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._storage, self._host, self._sessions = storage, host, sessions
        self._opening, self._tasks, self._clock, self._limits = opening, tasks, clock, limits
        self._resting: dict[SessionKey, asyncio.Task[None]] = {}
        self._is_stopping = False
        self._due = storage.watch_due(load=self._load_due, spawn=partial(tasks.spawn, name="due"))
        storage.saver.on_lost = self.let_go

    # Load from the store.

    async def load(self, key: SessionKey) -> Session | None:
        """Load the session from the store. Raises: TooManySessions, SessionsUnavailable, SessionElsewhere."""
        if (resting := self._resting.get(key)) is not None:
            await asyncio.wait({resting})
        loaded = await self._storage.take(key)
        if loaded is None:
            return None
        if key not in loaded.head.keys:
            await self._refuse(loaded)
        for known in self._sessions:  # the store may not know every key of a session that is open here
            if known.session_id == loaded.head.session_id:
                self._storage.saver.renew_lease(known, loaded.lease)
                return None
        return await self._restore(loaded)

    async def _refuse(self, stored: StoredSession) -> NoReturn:
        """Release the session and reject it. Raises: SessionsUnavailable."""
        await self._storage.give_back(stored)
        log.error("session_refused", reason="the keys that lead to it are not those of one principal")
        raise SessionsUnavailable(
            "The stored state of this session was changed by another program. Open a new session."
        )

    async def _restore(self, stored: StoredSession) -> Session:
        if {each.principal for each in stored.head.keys} != {stored.head.principal}:
            await self._refuse(stored)
        key = next(key for key in stored.head.keys if key.kind is not KeyKind.CONNECTION)
        try:
            self._sessions.make_room(key.principal, self._limits, give_way=self._rest_idle_session_of)
        except TooManySessions:
            await self._storage.give_back(stored)
            raise
        session = self._host.make_session(stored.head.session_id, key.principal, stored_profile(stored.records))
        session.keys = stored.head.keys
        try:
            await session.open()
            await self._host.load_connections(session, await self._storage.restore(session, stored))
        except BaseException:
            await self._storage.release(session)
            await self._storage.give_back(stored)  # if it failed before the saver followed the session
            await self._host.close_here(session)
            raise
        self._host.put(key, session)  # register it last, so that no request finds a half-restored session
        log.info("session_restored")
        self._sessions.notify_watchers(session)
        return session

    async def look_after(self) -> None:
        """Delete expired sessions from the store, and load sessions with due timers."""
        await self._storage.forget_expired(self._limits.sessions_in_all)
        await self._due.look()

    def handle_lost_replica(self) -> None:
        """Check for due timers soon: other replicas now fire those of the lost replica's sessions."""
        if not self._is_stopping:
            self._due.hurry()

    async def _load_due(self) -> int | None:
        """Load due sessions. Return their number, or None if the next sweep has to retry some."""
        is_any_left = False
        async with self._opening:
            taken = await self._storage.take_due()
            for stored in taken:
                try:
                    await self._restore(stored)
                except TooManySessions:
                    is_any_left = True
                    log.warning("session_not_loaded", reason="there are as many as there may be")
                except Exception as error:  # a broken session must not keep the others or the process from starting
                    is_any_left = True
                    log.error("session_not_loaded", error=f"{type(error).__name__}: {error}")
        if is_any_left:
            self._host.sweep_later()
        return None if is_any_left else len(taken)

    # Release to the store.

    def begin_stop(self) -> None:
        self._is_stopping = True
        if self._storage.is_shared:
            self._tasks.spawn(self._hand_over(), name="hand over")

    async def _hand_over(self) -> None:
        """Release each session as soon as no work runs in it: other replicas wait for it."""
        while self._sessions:
            for key, session in self._sessions.by_key():
                is_at_work = session.is_busy or session.activity.is_on_the_way  # else its events would be sent twice
                if not is_at_work and self._can_rest(session) and self._sessions.remove(key) is not None:
                    self._begin_rest(key, session)
            await self._clock.sleep(HAND_OVER_SECONDS)

    def _rest_idle_session_of(self, principal: str) -> bool:
        """Release an idle session to the store."""
        key = self._sessions.most_idle(principal)
        session = None if key is None else self._sessions.find(key)
        if key is None or session is None or not self._can_rest(session):
            return False
        self._sessions.remove(key)
        self._begin_rest(key, session)
        return True

    def _can_rest(self, session: Session) -> bool:
        """Whether releasing the session would lose no unsaved changes."""
        return self._storage.problem is None or not session.unsaved

    def _begin_rest(self, key: SessionKey, session: Session) -> None:
        resting = self._resting[key] = self._tasks.spawn(self._rest(session), name="rest")
        resting.add_done_callback(lambda _: self._resting.pop(key, None))

    async def _rest(self, session: Session) -> None:
        """Release the session from this process. The store keeps it."""
        await self._storage.release(session)
        await self._host.close_here(session)
        if not self._is_stopping:
            await self._due.wait()

    def let_go(self, session: Session) -> None:
        """Drop a session that another process now holds."""
        session.lose()
        key = self._sessions.key_of(session)
        if key is not None and self._sessions.remove(key) is not None:
            log.warning("session_taken_by_another_process", session=session.session_id)
            self._tasks.spawn(self._close_lost(session), name="let go")

    async def _close_lost(self, session: Session) -> None:
        """Close a lost session after a grace period, in which waiting callers receive the error."""
        try:
            await self._clock.sleep(LAST_ANSWERS_SECONDS)
        finally:
            await self._host.close_here(session)

    async def close(self) -> None:
        """Save all open sessions and release them. Stored state stays."""
        self._due.cancel()
        if self._resting:
            await asyncio.wait(list(self._resting.values()), timeout=CLOSE_SESSION_SECONDS)
        for session in self._sessions:
            session.calls.detach_stored()
        await self._storage.close(self._sessions)

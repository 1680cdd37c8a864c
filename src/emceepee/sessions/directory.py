"""All sessions of an installation: opened, found again, put to sleep when idle, ended when forgotten."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from emceepee.clock import Clock, Handle, milliseconds
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner, close_bounded
from emceepee.sessions.session import Session, SessionParts
from emceepee.state.limits import Limits
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")

SWEEP_SECONDS = 60.0
TAB_KEPT_SECONDS = 3600.0  # browser tabs are closed without a word
HANDLE_BYTES = 24  # 192 random bits: whoever has the handle and is the same principal is in


class TooManySessions(EmceepeeError):
    """The limit of this principal or of the whole installation is reached."""

    code = ErrorCode.LIMIT_EXCEEDED


class SessionDirectory:
    """One per installation."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._clock: Clock = parts.clock
        self._limits: Limits = parts.limits
        self._ids = Ulids(lambda: milliseconds(self._clock.now()))
        self._sessions: dict[SessionKey, Session] = {}
        self._of_principals: dict[str, dict[SessionKey, Session]] = {}
        self._adopted: list[Session] = []
        self._watchers: list[Callable[[Session], None]] = []
        self._opening = asyncio.Lock()
        self._tasks = TaskOwner("directory")
        self._next_sweep: Handle | None = None
        self.on_end: Callable[[Session], Awaitable[None]] | None = None  # awaited before a session is closed

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def clock(self) -> Clock:
        return self._clock

    @property
    def kept_ms(self) -> int:
        return round(self._limits.session_kept_seconds * 1000)

    def stop_calls(self) -> None:
        for session in self._sessions.values():
            session.calls.stop()

    def find(self, key: SessionKey) -> Session | None:
        return self._sessions.get(key)

    def use(self, key: SessionKey) -> Session | None:
        """Find a session for a request: from now on it counts as just used."""
        session = self._sessions.get(key)
        if session is not None:
            session.touch()
        return session

    # Who looks on.

    def sessions_of(self, principal: str) -> list[Session]:
        """All that the principal has, adopted ones first."""
        adopted = [session for session in self._adopted if session.principal == principal]
        return adopted + list(self._of_principals.get(principal, {}).values())

    def adopt(self, session: Session) -> None:
        """List a session that lives elsewhere. It is never put to sleep, forgotten or closed from here."""
        self._adopted.append(session)
        self._notify_watchers(session)

    def release(self, session: Session) -> None:
        """An adopted session is about to end."""
        if session in self._adopted:
            self._adopted.remove(session)
            self._notify_watchers(session)

    async def end(self, session: Session) -> bool:
        """Close it. False if that is not ours to do: it is adopted, or gone already."""
        key = next((key for key, known in self._sessions.items() if known is session), None)
        return key is not None and await self.close(key)

    def watch(self, watcher: Callable[[Session], None]) -> None:
        """Tell `watcher` of every session that comes or goes; whether it is there, `sessions_of` says."""
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[Session], None]) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def _notify_watchers(self, session: Session) -> None:
        for watcher in list(self._watchers):
            watcher(session)

    # Opening and closing.

    async def open(self, principal: str) -> tuple[SessionKey, Session]:
        """A new session under a protocol session id."""
        return await self._open(SessionKey(principal, KeyKind.ID, self._ids.unguessable()))

    async def open_handle(self, principal: str) -> tuple[SessionKey, Session]:
        """A new session under a handle. Whoever asks for one means to use it, at any time."""
        key, session = await self._open(SessionKey(principal, KeyKind.HANDLE, secrets.token_urlsafe(HANDLE_BYTES)))
        session.was_used = session.connects_on_use = True
        return key, session

    async def find_or_open(self, key: SessionKey) -> Session:
        """For names and principals, which exist as soon as they are used. A new one connects servers on use."""
        if (known := self.use(key)) is not None and known.is_open:
            return known
        async with self._opening:
            if (known := self.use(key)) is not None:
                return known
            _, session = await self._open(key)
            session.connects_on_use = True
            return session

    async def close(self, key: SessionKey) -> bool:
        """End it and everything it started. False if there is none."""
        session = self._remove(key)
        if session is None:
            return False
        await self._end(session)
        return True

    async def _end(self, session: Session) -> None:
        self._notify_watchers(session)
        try:
            if self.on_end is not None:
                await self.on_end(session)
        finally:  # who asked for it may hang up meanwhile, and nobody else would
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")

    async def close_all(self) -> None:
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        await asyncio.gather(*(self.close(key) for key in list(self._sessions)))
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _open(self, key: SessionKey) -> tuple[SessionKey, Session]:
        self._make_room(key.principal)
        session = Session(self._ids.new(), key.principal, self._parts)
        self._sessions[key] = session
        self._of_principals.setdefault(key.principal, {})[key] = session
        try:
            await session.open()
        except BaseException:
            self._remove(key)
            self._notify_watchers(session)  # someone may have seen it meanwhile
            raise
        self._notify_watchers(session)
        if self._next_sweep is None:
            self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep)
        return key, session

    def _remove(self, key: SessionKey) -> Session | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            own = self._of_principals[key.principal]
            del own[key]
            if not own:
                del self._of_principals[key.principal]
        return session

    def _make_room(self, principal: str) -> None:
        """Where there are too many, one that is idle gives way: the principal's own, or that of who has most."""
        own = len(self._of_principals.get(principal, ()))
        if own >= self._limits.sessions_per_principal:
            if not self._end_idle_session_of(principal):
                raise TooManySessions(
                    "You have as many sessions as you may, and all are in use; end one with DELETE or close_session."
                )
        elif len(self._sessions) >= self._limits.sessions_in_all:
            largest = max(self._of_principals, key=lambda name: len(self._of_principals[name]))
            has_more = len(self._of_principals[largest]) > own
            if not (has_more and self._end_idle_session_of(largest)) and not self._end_idle_session_of(principal):
                raise TooManySessions(
                    "This server has as many sessions as it may, and all are in use; try again later."
                )

    def _end_idle_session_of(self, principal: str) -> bool:
        """End an idle session: one that was never used if there is one, else the one idle longest."""
        own = self._of_principals.get(principal, {})
        idle = [(session.was_used, session.touched, key) for key, session in own.items() if not session.is_busy]
        if not idle:
            return False
        session = self._remove(min(idle, key=lambda found: found[:2])[2])
        if session is not None:
            log.info("session_gave_way", wasUsed=session.was_used)
            self._tasks.spawn(self._end(session), name="give way")
        return True

    def _sweep(self) -> None:
        """Sessions that nobody uses sleep, and are forgotten after a day; those never used, after minutes."""
        self._next_sweep = self._clock.call_later(SWEEP_SECONDS, self._sweep) if self._sessions else None
        for key, session in list(self._sessions.items()):
            if session.is_busy:
                session.touch()  # it is idle from the end of that on
            idle = session.idle_seconds
            if idle >= self._kept_seconds(session):
                self._tasks.spawn(self._forget(key), name="forget")
            elif idle >= self._limits.session_idle_seconds and session.is_awake:
                log.info("session_sleeps", idleMs=round(idle * 1000))
                self._tasks.spawn(session.sleep(), name="sleep")

    def _kept_seconds(self, session: Session) -> float:
        kept = self._limits.session_kept_seconds
        if not session.was_used:
            return min(kept, self._limits.unused_session_seconds)
        return min(kept, TAB_KEPT_SECONDS) if session.is_tab else kept

    async def _forget(self, key: SessionKey) -> None:
        log.info("session_forgotten")
        await self.close(key)

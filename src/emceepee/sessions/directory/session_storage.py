"""The directory's access to the store: keep, take, release, and forget sessions.

A store failure is logged. Taking or creating a session then raises `SessionsUnavailable`; other operations go on as if
the store were empty.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from typing import Any

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError
from emceepee.sessions.directory.due_watch import DueWatch
from emceepee.sessions.directory.persistence import restore
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.directory.saver import Saver
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica, with_slot
from emceepee.state.session_key import SessionKey
from emceepee.store.store import HeldElsewhere, RecordKey, Store, StoredSession, StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
MOST_DUE = 100  # due sessions to load at once
ASK_AGAIN_SECONDS = 0.5
_UNREADABLE = "Stored sessions cannot be read just now. Try again later."


class SessionsUnavailable(EmceepeeError):
    """The store that may hold the session cannot be read, or a new session cannot be saved."""


class SessionElsewhere(Exception):
    """Another replica holds the session or can find its holder. Forward the request to that replica."""

    def __init__(self, key: SessionKey, holder: Replica) -> None:
        super().__init__(f"slot {holder.slot} has it")
        self.key, self.holder = key, holder


class SessionStorage:
    """Wrap a `store` whose state outlives the process."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        placement: Placement | None = None,
        limits: Limits | None = None,
        *,
        is_contested: bool = False,
    ) -> None:
        """Without `placement`, sessions held by another process count as missing.

        With `is_contested`, processes that are no replicas of each other may open the same names at once.
        """
        self._store, self._clock, self._placement = store, clock, placement
        self._is_contested = is_contested
        self._limits = limits or Limits()
        self._asks_again_at = 0.0  # while the store fails, requests before this time fail at once instead of waiting
        self._confirming = asyncio.Lock()
        self.saver = Saver(store, clock)
        self.saver.confirm = self.confirm

    @property
    def problem(self) -> str | None:
        """Return why nothing can be saved now, or None."""
        return self.saver.problem

    @property
    def is_shared(self) -> bool:
        """Whether other replicas may serve the same callers."""
        return self._placement is not None

    @property
    def creates_atomically(self) -> bool:
        """Whether a new session exists only once the store confirms that its keys are free."""
        return self.is_shared or self._is_contested

    @property
    def may_have_others(self) -> bool:
        """Whether another replica is running, or may be running unseen."""
        if self._placement is None:
            return False
        return bool(self._placement.others) or not self._store.sees_others

    def mint(self, value: str) -> str:
        """Return an id or a handle that includes the slot of this replica."""
        return with_slot(value, self._store.replica)

    def check_room(self) -> None:
        """Raises: SessionsUnavailable if as much waits to be saved as may."""
        if self.problem is not None and self.saver.backlog >= self._limits.unsaved_records:
            raise SessionsUnavailable(
                "State cannot be saved just now, and as many changes wait for that as may. Try again later."
            )

    def keep(self, session: Session) -> None:
        """Save a new session with the next commit."""
        self.saver.follow(session)
        session.unsaved.mark(RecordKind.SESSION)

    async def create(self, session: Session) -> bool:
        """Save a new session under a key that other replicas may use. Return False if one of them was first.

        Raises:
            SessionsUnavailable
        """
        self._check_store()
        try:
            return await self.saver.create(session)
        except StoreUnavailable as error:
            raise self._unavailable(error) from None

    def guess(self, key: SessionKey) -> Replica | None:
        """Return the other replica that probably holds the session."""
        return None if self._placement is None else self._placement.guess(key)

    def forget_guess(self, key: SessionKey) -> None:
        if self._placement is not None:
            self._placement.forget(key)

    async def take(self, key: SessionKey) -> StoredSession | None:
        """Take the session from the store. Return None if it does not exist or its live holder cannot be asked.

        Remember the holder, so that the next request for the session does not query the store. A replica that is gone
        may still hold the session until this process may take it over. That case raises `SessionElsewhere`, because the
        session exists.

        Raises:
            SessionsUnavailable, SessionElsewhere
        """
        self._check_store()
        try:
            return await self._store.take(key)
        except HeldElsewhere as held:
            if self._placement is not None and held.holder is not None:
                if self._placement.is_other(held.holder):
                    self._placement.learn(key, held.holder)
                    raise SessionElsewhere(key, held.holder) from None
                if not self._placement.is_alive(held.holder):
                    raise SessionElsewhere(key, held.holder) from None
            log.info("session_held_elsewhere")
            return None
        except StoreUnavailable as error:
            raise self._unavailable(error) from None

    def _check_store(self) -> None:
        if self._clock.monotonic() < self._asks_again_at:
            raise SessionsUnavailable(_UNREADABLE)

    def _unavailable(self, error: StoreUnavailable) -> SessionsUnavailable:
        log.warning("session_not_loaded", error=str(error))
        self._asks_again_at = self._clock.monotonic() + ASK_AGAIN_SECONDS
        return SessionsUnavailable(_UNREADABLE)

    # Lease checks.

    @property
    def is_sure(self) -> bool:
        return self._store.is_sure

    @property
    def is_in_doubt(self) -> bool:
        return self._store.is_in_doubt

    async def confirm(self) -> None:
        """Drop sessions that others have taken over. If the store does not answer, drop none: see `is_in_doubt`."""
        async with self._confirming:
            if not self.is_sure and self._clock.monotonic() >= self._asks_again_at:
                await self._confirm()

    async def _confirm(self) -> None:
        leases = self.saver.leases()
        try:
            lost = await self._store.confirm({session.session_id: lease for session, lease in leases.items()})
        except StoreUnavailable:
            self._asks_again_at = self._clock.monotonic() + ASK_AGAIN_SECONDS
            return
        for session in leases:
            if session.session_id in lost:
                self.saver.lose(session)

    def watch_due(
        self, *, load: Callable[[], Awaitable[int | None]], spawn: Callable[[Coroutine[Any, Any, None]], object]
    ) -> DueWatch:
        if self._placement is None:
            return DueWatch(self._clock, next_due=self.next_due, load=load, spawn=spawn)
        turn_delay, at_most = self._placement.turn_delay, self._limits.replica_lease_seconds
        return DueWatch(
            self._clock, next_due=self.next_due, load=load, spawn=spawn, turn_delay=turn_delay, at_most=at_most
        )

    async def take_due(self) -> Sequence[StoredSession]:
        try:
            return await self._store.take_due(self._clock.now(), MOST_DUE)
        except StoreUnavailable as error:
            log.warning("session_not_loaded", error=str(error))
            return ()

    async def next_due(self) -> datetime | None:
        try:
            return await self._store.next_due()
        except StoreUnavailable:
            return None  # the next sweep asks again

    async def restore(self, session: Session, stored: StoredSession) -> dict[RecordKey, bytes]:
        """Restore the session, and return the stored records of its connections."""
        if any(key.kind in (RecordKind.BACKEND_TASK, RecordKind.SCRIPT) for key in stored.records):
            await session.sealing.load()
        self.saver.follow(session, stored)
        return restore(session, stored.records)

    async def forget(self, session: Session) -> None:
        if (lease := self.saver.leave(session)) is not None:
            try:
                await self._store.forget(session.session_id, lease)
            except StoreUnavailable as error:
                log.warning("session_not_forgotten", error=str(error))

    async def forget_expired(self, most: int) -> None:
        """Delete expired sessions. A process without other replicas keeps at most `most` sessions.

        Each replica bounds the sessions that it holds itself. The other replicas take over all sessions of a lost one,
        however many there are.
        """
        bound = most if self._placement is None else sys.maxsize
        try:
            forgotten = await self._store.forget_expired(self._clock.now(), bound)
        except StoreUnavailable as error:
            log.warning("sessions_not_forgotten", error=str(error))
        else:
            if forgotten:
                log.info("sessions_expired", count=forgotten)

    async def release(self, session: Session) -> None:
        """Save the session and release its lease, so that any process can take it."""
        await self.saver.save(session)
        if (lease := self.saver.leave(session)) is not None:
            try:
                await self._store.release({session.session_id: lease})
            except StoreUnavailable as error:
                log.warning("session_not_released", error=str(error))

    async def give_back(self, stored: StoredSession) -> None:
        """Release a session that was taken but cannot be restored now."""
        try:
            await self._store.release({stored.head.session_id: stored.lease})
        except StoreUnavailable as error:
            log.warning("session_not_released", error=str(error))

    async def close(self, sessions: Iterable[Session]) -> None:
        """Save and release all sessions. Other replicas can take them before their servers have ended here."""
        await self.saver.save_all()
        leases = {session.session_id: lease for session in sessions if (lease := self.saver.leave(session)) is not None}
        await self.saver.close()
        if leases and self.is_shared:
            try:
                await self._store.release(leases)
            except StoreUnavailable as error:
                log.warning("sessions_not_released", error=str(error))

"""The directory's way to the store: sessions are kept, taken up again, let go, forgotten. A store that fails is said so
in the log, and counts as one that has nothing.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError
from emceepee.sessions.persistence import restore
from emceepee.sessions.records import RecordKind
from emceepee.sessions.saver import Saver
from emceepee.sessions.session import Session
from emceepee.state.session_key import SessionKey
from emceepee.store.store import HeldElsewhere, RecordKey, Store, StoredSession, StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
MOST_DUE = 100  # sessions that are loaded at once because their time has come


class SessionsUnavailable(EmceepeeError):
    """The session may be in the store, but that cannot be read."""


class SessionStorage:
    """`store` is one whose state outlives the process."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self.saver = Saver(store, clock)

    @property
    def problem(self) -> str | None:
        """Why nothing can be saved just now."""
        return self.saver.problem

    def keep(self, session: Session) -> None:
        """A new session: it is in the store within a moment."""
        self.saver.follow(session)
        session.unsaved.mark(RecordKind.SESSION)

    async def take(self, key: SessionKey) -> StoredSession | None:
        """None if there is none, or another process has it. Raises: SessionsUnavailable."""
        try:
            return await self._store.take(key)
        except HeldElsewhere:
            log.info("session_held_elsewhere")
            return None
        except StoreUnavailable as error:
            log.warning("session_not_loaded", error=str(error))
            raise SessionsUnavailable("Stored sessions cannot be read just now. Try again later.") from None

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

    def restore(self, session: Session, stored: StoredSession) -> dict[RecordKey, bytes]:
        """Returns what is stored for its connections."""
        self.saver.follow(session, stored)
        return restore(session, stored.records)

    async def forget(self, session: Session) -> None:
        if (lease := self.saver.leave(session)) is not None:
            try:
                await self._store.forget(session.session_id, lease)
            except StoreUnavailable as error:
                log.warning("session_not_forgotten", error=str(error))

    async def forget_expired(self, most: int) -> None:
        try:
            forgotten = await self._store.forget_expired(self._clock.now(), most)
        except StoreUnavailable as error:
            log.warning("sessions_not_forgotten", error=str(error))
        else:
            if forgotten:
                log.info("sessions_expired", count=forgotten)

    async def release(self, session: Session) -> None:
        """The store keeps it, and any process may take it up."""
        await self.saver.save(session)
        if (lease := self.saver.leave(session)) is not None:
            try:
                await self._store.release({session.session_id: lease})
            except StoreUnavailable as error:
                log.warning("session_not_released", error=str(error))

    async def give_back(self, stored: StoredSession) -> None:
        """It was taken, and cannot be taken up just now."""
        try:
            await self._store.release({stored.head.session_id: stored.lease})
        except StoreUnavailable as error:
            log.warning("session_not_released", error=str(error))

    async def close(self, sessions: Iterable[Session]) -> None:
        """Save them all, and follow them no more."""
        await self.saver.save_all()
        for session in sessions:
            self.saver.leave(session)
        await self.saver.close()

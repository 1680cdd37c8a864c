"""The directory's access to the store: save, take, release, and delete sessions.

`SessionStorage` is for state that ends with the process: it stores nothing and finds nothing. `DurableStorage` uses a
store whose state outlives the process. It logs each store failure. Taking or creating a session then raises
`SessionsUnavailable`; other operations continue as if the store were empty.
"""

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NoReturn

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError
from emceepee.sessions.directory.due_watch import DueWatch, LoadDue, Spawn
from emceepee.sessions.directory.persistence import WriteOther, restore, write_no_other
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.directory.saver import Saver
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica, with_slot
from emceepee.state.session_key import SessionKey
from emceepee.store.store import HeldElsewhere, Lease, RecordKey, Store, StoredSession, StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
UNSAVED_RECORDS = 10_000  # of all sessions: while the store fails, unsaved changes must not fill the memory
MOST_DUE = 100  # due sessions to load at once
ASK_AGAIN_SECONDS = 0.5
_SEALED = frozenset[str]({RecordKind.BACKEND_TASK, RecordKind.SCRIPT})  # their records are encrypted
_UNREADABLE = "Stored sessions cannot be read at this time. Try again later."


class SessionsUnavailable(EmceepeeError):
    """The store that may hold the session cannot be read, or a new session cannot be saved."""


class SessionElsewhere(Exception):
    """Another replica holds the session or can find its holder. Forward the request to that replica."""

    def __init__(self, key: SessionKey, holder: Replica) -> None:
        super().__init__(f"slot {holder.slot} has it")
        self.key, self.holder = key, holder


class SessionStorage:
    """The storage of sessions that end with the process. All operations succeed without any effect."""

    is_durable = False
    """Whether a session that is not open here may be stored."""
    is_shared = False
    """Whether other replicas may serve the same callers."""
    is_sure = True
    """Whether no other process can have taken over the sessions open here. If False, call `confirm`."""
    creates_atomically = False
    """Whether a new session exists only once the store confirms that its keys are free."""

    @property
    def problem(self) -> str | None:
        """Return why nothing can be saved now, or None."""
        return None

    @property
    def unsaved_problem(self) -> str | None:
        """Return why changes that a reply reported as unsaved may be unsaved. Outlasts `problem` by a commit."""
        return None

    @property
    def may_have_others(self) -> bool:
        """Whether another replica is running, or may be running unseen."""
        return False

    def watch_due(self, clock: Clock, *, load: LoadDue, spawn: Spawn) -> DueWatch:
        """Return a watch that calls `load` when sessions are due."""
        return DueWatch(clock, next_due=self.next_due, load=load, spawn=spawn)

    # Ids and their holders.

    def mint(self, value: str) -> str:
        """Return an id or a handle for callers. With several replicas, it includes the slot of this replica."""
        return value

    def guess(self, key: SessionKey) -> Replica | None:
        """Return the other replica that probably holds the session."""
        return None

    def forget_guess(self, key: SessionKey) -> None:
        """Forget the guessed holder of `key`: it does not have the session."""

    # Sessions that are open here.

    def check_room(self) -> None:
        """Raises: SessionsUnavailable if the limit of unsaved records is reached."""

    def keep(self, session: Session) -> None:
        """Save a new session with the next commit."""

    async def create(self, session: Session) -> bool:
        """Save a new session under a key that other replicas may use. Return False if one of them was first.

        Raises:
            SessionsUnavailable
        """
        return True

    def renew_lease(self, session: Session, lease: Lease) -> None:
        """Replace the lease of a session that this process itself has taken again."""

    def keep_longer(self, session: Session) -> None:
        """Renew the stored expiry of a session that was used but has not changed otherwise."""

    async def release(self, session: Session) -> None:
        """Save the session and release its lease, so that any process can take it."""

    async def forget(self, session: Session) -> None:
        """Delete the stored state of the session."""

    # Stored sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        """Load the session and acquire its lease. Return None if it does not exist or its live holder cannot be asked.

        Raises:
            SessionsUnavailable, SessionElsewhere
        """
        return None

    async def take_due(self) -> Sequence[StoredSession]:
        """Take sessions whose timers are due and that no process holds."""
        return ()

    async def next_due(self) -> datetime | None:
        """Return when the next timer of a session that no process holds is due."""
        return None

    async def restore(self, session: Session, stored: StoredSession) -> dict[RecordKey, bytes]:
        """Restore the session, and return the stored records of its connections."""
        return {}

    async def give_back(self, stored: StoredSession) -> None:
        """Release a session that was taken but cannot be restored now."""

    async def forget_expired(self, most: int) -> None:
        """Delete expired sessions. A process without other replicas stores at most `most` sessions."""

    # Leases.

    @property
    def is_in_doubt(self) -> bool:
        """Whether the sessions open here must not be served until `confirm` succeeds."""
        return False

    async def confirm(self) -> None:
        """Drop sessions that others have taken over. If the store does not answer, drop none: see `is_in_doubt`."""

    async def close(self, sessions: Iterable[Session]) -> None:
        """Save and release all sessions. Other replicas can take them before their servers have ended here."""


class DurableStorage(SessionStorage):
    """Stores sessions in a `store` whose state outlives the process."""

    is_durable = True

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Limits,
        placement: Placement | None = None,
        *,
        is_contested: bool = False,
        lose: Callable[[Session], None] = lambda _: None,
        write_other: WriteOther = write_no_other,
    ) -> None:
        """Without `placement`, sessions held by another process count as missing.

        With `is_contested`, processes that are no replicas of each other may open the same names at once. `lose` is
        called with each session that another process has taken over. `write_other` writes the records that are
        stored with a session but are no part of it.
        """
        self._store, self._clock, self._placement, self._limits = store, clock, placement, limits
        self._asks_again_at = 0.0  # while the store fails, requests before this time fail at once instead of waiting
        self._confirming = asyncio.Lock()
        self._saver = Saver(store, clock, limits, lose=lose, confirm=self.confirm, write_other=write_other)
        self.is_shared = placement is not None
        self.creates_atomically = self.is_shared or is_contested

    @property
    def problem(self) -> str | None:
        return self._saver.problem

    @property
    def unsaved_problem(self) -> str | None:
        return self._saver.unsaved_problem

    @property
    def may_have_others(self) -> bool:
        if self._placement is None:
            return False
        return bool(self._placement.others) or not self._store.sees_others

    def watch_due(self, clock: Clock, *, load: LoadDue, spawn: Spawn) -> DueWatch:
        if self._placement is None:
            return super().watch_due(clock, load=load, spawn=spawn)
        turn_delay, at_most = self._placement.turn_delay, self._limits.replica_lease_seconds
        return DueWatch(clock, next_due=self.next_due, load=load, spawn=spawn, turn_delay=turn_delay, at_most=at_most)

    def mint(self, value: str) -> str:
        return with_slot(value, self._store.replica)

    def check_room(self) -> None:
        if self.problem is not None and self._saver.backlog >= UNSAVED_RECORDS:
            raise SessionsUnavailable(
                "State cannot be saved at this time, and the limit of unsaved changes is reached. Try again later."
            )

    def keep(self, session: Session) -> None:
        self._saver.follow(session)
        session.unsaved.mark(RecordKind.SESSION)

    def renew_lease(self, session: Session, lease: Lease) -> None:
        self._saver.renew_lease(session, lease)

    def keep_longer(self, session: Session) -> None:
        self._saver.keep_longer(session)

    async def create(self, session: Session) -> bool:
        self._check_store()
        try:
            return await self._saver.create(session)
        except StoreUnavailable as error:
            raise self._unavailable(error) from None

    def guess(self, key: SessionKey) -> Replica | None:
        return None if self._placement is None else self._placement.guess(key)

    def forget_guess(self, key: SessionKey) -> None:
        if self._placement is not None:
            self._placement.forget(key)

    async def take(self, key: SessionKey) -> StoredSession | None:
        """Remember the holder, so that the next request for the session does not query the store.

        A replica that is gone may still hold the session until this process may take it over. That case raises
        `SessionElsewhere`, because the session exists.
        """
        self._check_store()
        try:
            stored = await self._store.take(key)
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
        if stored is not None and not (key in stored.head.keys and _has_one_principal(stored)):
            await self._refuse(stored)
        return stored

    async def _refuse(self, stored: StoredSession) -> NoReturn:
        """Release the session and reject it. Raises: SessionsUnavailable."""
        await self.give_back(stored)
        log.error("session_refused", reason="the keys that lead to it are not those of one principal")
        raise SessionsUnavailable(
            "The stored state of this session was changed by another program. Open a new session."
        )

    def _check_store(self) -> None:
        if self._clock.monotonic() < self._asks_again_at:
            raise SessionsUnavailable(_UNREADABLE)

    def _unavailable(self, error: StoreUnavailable) -> SessionsUnavailable:
        log.warning("session_not_loaded", error=str(error))
        self._asks_again_at = self._clock.monotonic() + ASK_AGAIN_SECONDS
        return SessionsUnavailable(_UNREADABLE)

    # Lease checks.

    @property
    def is_sure(self) -> bool:  # type: ignore[override]  # every call reads it, so it is a constant without a store
        return self._store.is_sure

    @property
    def is_in_doubt(self) -> bool:
        return self._store.is_in_doubt

    async def confirm(self) -> None:
        async with self._confirming:
            if not self.is_sure and self._clock.monotonic() >= self._asks_again_at:
                await self._confirm()

    async def _confirm(self) -> None:
        leases = self._saver.leases()
        try:
            lost = await self._store.confirm({session.session_id: lease for session, lease in leases.items()})
        except StoreUnavailable:
            self._asks_again_at = self._clock.monotonic() + ASK_AGAIN_SECONDS
            return
        for session in leases:
            if session.session_id in lost:
                self._saver.lose(session)

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
        if not _SEALED.isdisjoint({key.kind for key in stored.records}):
            await session.sealing.load()
        self._saver.follow(session, stored)
        return restore(session, stored.records)

    async def forget(self, session: Session) -> None:
        if (lease := self._saver.leave(session)) is not None:
            try:
                await self._store.forget(session.session_id, lease)
            except StoreUnavailable as error:
                log.warning("session_not_deleted", error=str(error))

    async def forget_expired(self, most: int) -> None:
        # Each replica bounds its own sessions. The others take over all sessions of a lost one, however many there are.
        bound = most if self._placement is None else sys.maxsize
        try:
            forgotten = await self._store.forget_expired(self._clock.now(), bound)
        except StoreUnavailable as error:
            log.warning("sessions_not_deleted", error=str(error))
        else:
            if forgotten:
                log.info("sessions_expired", count=forgotten)

    async def release(self, session: Session) -> None:
        await self._saver.save(session)
        if (lease := self._saver.leave(session)) is not None:
            try:
                await self._store.release({session.session_id: lease})
            except StoreUnavailable as error:
                log.warning("session_not_released", error=str(error))

    async def give_back(self, stored: StoredSession) -> None:
        try:
            await self._store.release({stored.head.session_id: stored.lease})
        except StoreUnavailable as error:
            log.warning("session_not_released", error=str(error))

    async def close(self, sessions: Iterable[Session]) -> None:
        await self._saver.save_all()
        leases = {
            session.session_id: lease for session in sessions if (lease := self._saver.leave(session)) is not None
        }
        await self._saver.close()
        if leases and self.is_shared:
            try:
                await self._store.release(leases)
            except StoreUnavailable as error:
                log.warning("sessions_not_released", error=str(error))


def _has_one_principal(stored: StoredSession) -> bool:
    return {key.principal for key in stored.head.keys} == {stored.head.principal}

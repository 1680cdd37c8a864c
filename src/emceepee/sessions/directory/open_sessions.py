"""Sessions open in this process, indexed by key and principal, and the watchers to notify of changes.

A session that is being opened, loaded, or released is in no index. A claim on its keys makes other requests for it
wait, and a reserved place makes it count toward the limits.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Protocol, Self

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, close_bounded
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.records import RecordKind, SessionProfile
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.notice_options import NoticeOptions
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey
from emceepee.surface import call_to

TAB_KEPT_SECONDS = 3600.0  # browser tabs close without notice
Watcher = Callable[[Session], None]


class TooManySessions(EmceepeeError):
    """The limit of the principal or of the whole installation is reached."""

    code = ErrorCode.LIMIT_EXCEEDED


def kept_seconds(session: Session, limits: Limits) -> float:
    """Return how long an idle session is kept."""
    kept = limits.session_kept_seconds
    if not session.profile.was_used:
        return min(kept, limits.unused_session_seconds)
    return min(kept, TAB_KEPT_SECONDS) if session.profile.is_tab else kept


class KeyClaim:
    """The keys of a session that is being opened, loaded, or released. Requests for these keys `wait` for its end.

    A later claim may take over some of the keys. `holds` shows whether that has happened.
    """

    def __init__(self, claims: "dict[SessionKey, KeyClaim]", keys: Iterable[SessionKey]) -> None:
        self._claims, self._keys = claims, set(keys)
        self._ended = asyncio.Event()
        claims.update(dict.fromkeys(self._keys, self))

    def extend(self, keys: Collection[SessionKey]) -> None:
        """Claim more keys: those of the session that a claimed key led to."""
        self._keys.update(keys)
        self._claims.update(dict.fromkeys(keys, self))

    def holds(self, key: SessionKey) -> bool:
        return self._claims.get(key) is self

    def end(self) -> None:
        for key in self._keys:
            if self._claims.get(key) is self:
                del self._claims[key]
        self._keys.clear()
        self._ended.set()

    async def wait(self) -> None:
        await self._ended.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class SessionConnections(Protocol):
    """The callers' connections to sessions. Their records are stored with the session."""

    def write_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        """Return the current record, or None if it no longer exists."""
        ...

    async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        """Restore the connections of a session that was loaded."""
        ...

    async def close_all_of(self, session: Session) -> None:
        """Close the connections of a session that is about to be closed."""
        ...


class OpenSessions:
    """Sessions of this process are stored under a key. Adopted sessions live elsewhere and are only listed."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self.connections: SessionConnections | None = None
        self.are_stopping = False
        self._by_key: dict[SessionKey, Session] = {}
        self._of_principals: dict[str, dict[SessionKey, Session]] = {}
        self._adopted: list[Session] = []
        self._watchers: list[Watcher] = []
        self._claims: dict[SessionKey, KeyClaim] = {}
        self._places: dict[asyncio.Future[None], str] = {}  # principals of arriving sessions

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Session]:
        """Iterate over a snapshot without adopted sessions. Sessions may open and close during the iteration."""
        return iter(list(self._by_key.values()))

    def of(self, principal: str) -> list[Session]:
        """Return all sessions of the principal, adopted ones first."""
        adopted = [session for session in self._adopted if session.principal == principal]
        return adopted + list(self._of_principals.get(principal, {}).values())

    def find(self, key: SessionKey) -> Session | None:
        """Return the session with that key. A connection's key leads to a session that is stored under another key."""
        if (session := self._by_key.get(key)) is not None or key.kind is not KeyKind.CONNECTION:
            return session
        own = self._of_principals.get(key.principal, {})
        return next((session for session in own.values() if key in session.keys), None)

    def put(self, session: Session) -> None:
        """Register an open session, so that `find` returns it from now on."""
        session.notice_options = self._parts.notice_options  # they may have changed while the session opened
        if self.are_stopping:
            session.begin_stop()
        key = _main_key(session)
        self._by_key[key] = session
        self._of_principals.setdefault(key.principal, {})[key] = session
        self.notify_watchers(session)

    def remove(self, session: Session) -> bool:
        """Remove the session. Return False if it is adopted or was removed already."""
        key = next((key for key in session.keys if self._by_key.get(key) is session), None)
        if key is None:
            return False
        del self._by_key[key]
        own = self._of_principals[key.principal]
        del own[key]
        if not own:
            del self._of_principals[key.principal]
        return True

    # Sessions and their connections.

    def new(self, session_id: str, keys: frozenset[SessionKey], profile: SessionProfile | None = None) -> Session:
        """Return a session that is not open yet and that `find` does not return yet."""
        principal = next(iter(keys)).principal
        session = Session(session_id, principal, self._parts, profile)
        session.keys = keys
        return session

    async def close(self, session: Session) -> None:
        """End the running work of a session that was removed. Its stored state stays."""
        self.notify_watchers(session)
        try:
            if self.connections is not None:
                await self.connections.close_all_of(session)
        finally:  # the caller may disconnect while its connections close, and nothing else closes the session
            await close_bounded(session.close(), within=CLOSE_SESSION_SECONDS, what="a session")

    def begin_stop(self) -> None:
        self.are_stopping = True
        for session in self:
            session.begin_stop()

    def set_notice_options(self, options: NoticeOptions) -> None:
        self._parts = replace(self._parts, notice_options=options)
        for session in (*self, *self._adopted):
            session.notice_options = options

    def write_connection_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        return None if self.connections is None else self.connections.write_record(kind, record_id)

    async def restore_connections(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        if self.connections is not None:
            await self.connections.restore(session, stored)

    # Claims.

    def claim(self, keys: Iterable[SessionKey]) -> KeyClaim:
        """Claim the keys of a session that is being opened, loaded, or released."""
        return KeyClaim(self._claims, keys)

    def claim_on(self, key: SessionKey) -> KeyClaim | None:
        return self._claims.get(key)

    # Limits.

    def count_of(self, principal: str) -> int:
        """Return the number of the principal's sessions, including arriving ones."""
        return len(self._of_principals.get(principal, ())) + list(self._places.values()).count(principal)

    def most_idle(self, principal: str) -> Session | None:
        """Return an unused session if there is one, otherwise the one idle longest. None if all are busy."""
        idle = [session for session in self._of_principals.get(principal, {}).values() if not session.is_busy]
        return min(idle, key=lambda session: (session.profile.was_used, session.touched), default=None)

    @asynccontextmanager
    async def place(self, principal: str, *, give_way: Callable[[str], bool]) -> AsyncIterator[None]:
        """Reserve a place for a session that is put into the table inside this context.

        At the limit, `give_way` removes an idle session: the principal's own, or one of the principal with the most
        sessions. If all are in use, wait for sessions that are arriving now, because they may be idle on arrival.

        Raises: TooManySessions
        """
        limits = self._parts.limits
        while True:
            own = self.count_of(principal)
            if own >= limits.sessions_per_principal:
                candidates = [principal]
                arriving = [arrived for arrived, owner in self._places.items() if owner == principal]
                words = "You have reached the limit of sessions, and all are in use; end one with DELETE or "
                words += f"{call_to('close_session')}."
            elif len(self) + len(self._places) >= limits.sessions_in_all:
                largest = max(self._of_principals, key=self.count_of, default=principal)
                candidates = [largest, principal] if self.count_of(largest) > own else [principal]
                arriving = list(self._places)
                words = "This server has reached the limit of sessions, and all are in use; try again later."
            else:
                break
            if any(map(give_way, candidates)):
                break
            if not arriving:
                raise TooManySessions(words)
            await asyncio.wait(arriving, return_when=asyncio.FIRST_COMPLETED)
        arrived = asyncio.get_running_loop().create_future()
        self._places[arrived] = principal
        try:
            yield
        finally:
            del self._places[arrived]
            arrived.set_result(None)

    # Observers.

    def adopt(self, session: Session) -> None:
        self._adopted.append(session)
        self.notify_watchers(session)

    def release(self, session: Session) -> None:
        """Stop listing the session if it was adopted."""
        if session in self._adopted:
            self._adopted.remove(session)
            self.notify_watchers(session)

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def notify_watchers(self, session: Session) -> None:
        """Notify watchers that the session opened or closed. `of` shows which."""
        for watcher in list(self._watchers):
            watcher(session)


def _main_key(session: Session) -> SessionKey:
    """Return the key that the session is stored under. The others are those of its connections."""
    return next(key for key in session.keys if key.kind is not KeyKind.CONNECTION)

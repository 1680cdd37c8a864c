"""Sessions open in this process, indexed by key and principal, and the watchers to notify of changes."""

from collections.abc import Callable, Iterator

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.surface import call_to

Watcher = Callable[[Session], None]


class TooManySessions(EmceepeeError):
    """The limit of the principal or of the whole installation is reached."""

    code = ErrorCode.LIMIT_EXCEEDED


class OpenSessions:
    """Sessions of this process are stored under a key. Adopted sessions live elsewhere and are only listed."""

    def __init__(self) -> None:
        self._by_key: dict[SessionKey, Session] = {}
        self._of_principals: dict[str, dict[SessionKey, Session]] = {}
        self._adopted: list[Session] = []
        self._watchers: list[Watcher] = []

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Session]:
        """Iterate over a snapshot without adopted sessions. Sessions may open and close during the iteration."""
        return iter(list(self._by_key.values()))

    def by_key(self) -> list[tuple[SessionKey, Session]]:
        return list(self._by_key.items())

    @property
    def with_adopted(self) -> list[Session]:
        return [*self._by_key.values(), *self._adopted]

    def of(self, principal: str) -> list[Session]:
        """Return all sessions of the principal, adopted ones first."""
        adopted = [session for session in self._adopted if session.principal == principal]
        return adopted + list(self._of_principals.get(principal, {}).values())

    def find(self, key: SessionKey) -> Session | None:
        return self._by_key.get(key)

    def find_by_connection(self, key: SessionKey) -> Session | None:
        """Return the session that a connection's key leads to. The session itself is stored under another key."""
        if key.kind is not KeyKind.CONNECTION:
            return None
        own = self._of_principals.get(key.principal, {})
        return next((session for session in own.values() if key in session.keys), None)

    def key_of(self, session: Session) -> SessionKey | None:
        return next((key for key, known in self._by_key.items() if known is session), None)

    def put(self, key: SessionKey, session: Session) -> None:
        self._by_key[key] = session
        self._of_principals.setdefault(key.principal, {})[key] = session

    def remove(self, key: SessionKey) -> Session | None:
        session = self._by_key.pop(key, None)
        if session is not None:
            own = self._of_principals[key.principal]
            del own[key]
            if not own:
                del self._of_principals[key.principal]
        return session

    # Session counts per principal.

    def count_of(self, principal: str) -> int:
        return len(self._of_principals.get(principal, ()))

    def who_has_most(self) -> str:
        return max(self._of_principals, key=self.count_of)

    def most_idle(self, principal: str) -> SessionKey | None:
        """Return an unused session if there is one, otherwise the one idle longest. None if all are busy."""
        own = self._of_principals.get(principal, {})
        idle = [(session.profile.was_used, session.touched, key) for key, session in own.items() if not session.is_busy]
        return min(idle, key=lambda found: found[:2])[2] if idle else None

    def make_room(self, principal: str, limits: Limits, *, give_way: Callable[[str], bool]) -> None:
        """At the limit, remove an idle session: the principal's own, or one of the principal with the most sessions.

        Raises: TooManySessions
        """
        own = self.count_of(principal)
        if own >= limits.sessions_per_principal:
            if not give_way(principal):
                raise TooManySessions(
                    "You have as many sessions as you may, and all are in use; end one with DELETE or "
                    f"{call_to('close_session')}."
                )
        elif len(self) >= limits.sessions_in_all:
            largest = self.who_has_most()
            has_more = self.count_of(largest) > own
            if not (has_more and give_way(largest)) and not give_way(principal):
                raise TooManySessions(
                    "This server has as many sessions as it may, and all are in use; try again later."
                )

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

"""The sessions that are open in this process, by their keys and by whose they are, and who wants to hear of them."""

from collections.abc import Callable, Iterator

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.surface import call_to

Watcher = Callable[[Session], None]


class TooManySessions(EmceepeeError):
    """The limit of this principal or of the whole installation is reached."""

    code = ErrorCode.LIMIT_EXCEEDED


class OpenSessions:
    """Those that it has itself stand under a key. Adopted ones live elsewhere, and are only shown."""

    def __init__(self) -> None:
        self._by_key: dict[SessionKey, Session] = {}
        self._of_principals: dict[str, dict[SessionKey, Session]] = {}
        self._adopted: list[Session] = []
        self._watchers: list[Watcher] = []

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[Session]:
        """Without the adopted. Also while it changes: over those that there were at the beginning."""
        return iter(list(self._by_key.values()))

    def by_key(self) -> list[tuple[SessionKey, Session]]:
        return list(self._by_key.items())

    @property
    def with_adopted(self) -> list[Session]:
        return [*self._by_key.values(), *self._adopted]

    def of(self, principal: str) -> list[Session]:
        """All that the principal has, adopted ones first."""
        adopted = [session for session in self._adopted if session.principal == principal]
        return adopted + list(self._of_principals.get(principal, {}).values())

    def find(self, key: SessionKey) -> Session | None:
        return self._by_key.get(key)

    def find_by_connection(self, key: SessionKey) -> Session | None:
        """The one that a connection's key leads to: it stands under another."""
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

    # Who has how many.

    def count_of(self, principal: str) -> int:
        return len(self._of_principals.get(principal, ()))

    def who_has_most(self) -> str:
        return max(self._of_principals, key=self.count_of)

    def most_idle(self, principal: str) -> SessionKey | None:
        """One that was never used if there is one, else the one idle longest; None if all are busy."""
        own = self._of_principals.get(principal, {})
        idle = [(session.profile.was_used, session.touched, key) for key, session in own.items() if not session.is_busy]
        return min(idle, key=lambda found: found[:2])[2] if idle else None

    def make_room(self, principal: str, limits: Limits, *, give_way: Callable[[str], bool]) -> None:
        """Where there are too many, an idle one gives way: the principal's own, or that of who has most.

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

    # Who looks on.

    def adopt(self, session: Session) -> None:
        self._adopted.append(session)
        self.notify_watchers(session)

    def release(self, session: Session) -> None:
        """If it was adopted."""
        if session in self._adopted:
            self._adopted.remove(session)
            self.notify_watchers(session)

    def watch(self, watcher: Watcher) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    def notify_watchers(self, session: Session) -> None:
        """It came or went: whether it is there, `of` says."""
        for watcher in list(self._watchers):
            watcher(session)

"""The sessions that a console shows, in the test's hands."""

from collections.abc import Callable

from emceepee.sessions.session import Session


class SessionSource:
    """A directory of the sessions it was given."""

    def __init__(self, *sessions: Session) -> None:
        self.sessions = list(sessions)
        self.is_sure = True
        self.ended: list[Session] = []
        self._watchers: list[Callable[[Session], None]] = []

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def sessions_of(self, principal: str) -> list[Session]:
        return [session for session in self.sessions if session.principal == principal]

    async def confirm(self) -> None:
        self.is_sure = True

    def watch(self, watcher: Callable[[Session], None]) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[Session], None]) -> None:
        self._watchers.remove(watcher)

    async def end(self, session: Session) -> bool:
        if session.profile.transport != "http":
            return False
        self.leave(session)
        self.ended.append(session)
        return True

    def enter(self, session: Session) -> None:
        self.sessions.append(session)
        self._tell(session)

    def leave(self, session: Session) -> None:
        self.sessions.remove(session)
        self._tell(session)

    def _tell(self, session: Session) -> None:
        for watcher in self._watchers:
            watcher(session)

"""Stores that last as long as the process."""

from collections import deque
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime

from emceepee.store.protocols import StaleRevision, StoredMessage, StoredServer, StoredSession


class MemorySessions:
    """A SessionStore in a dictionary."""

    def __init__(self) -> None:
        self._sessions: dict[str, StoredSession] = {}

    async def load(self, session_id: str) -> StoredSession | None:
        return self._sessions.get(session_id)

    async def commit(self, session: StoredSession) -> StoredSession:
        kept = self._sessions.get(session.session_id)
        if session.revision != (kept.revision if kept else 0):
            raise StaleRevision(session.session_id)
        committed = replace(session, revision=session.revision + 1)
        self._sessions[session.session_id] = committed
        return committed

    async def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    async def expired(self, now: datetime) -> AsyncIterator[str]:
        for session in list(self._sessions.values()):
            if session.expires_at <= now:
                yield session.session_id


class MemoryServers:
    """A ServerStore in a dictionary."""

    def __init__(self) -> None:
        self._servers: dict[tuple[str, str], StoredServer] = {}

    async def all(self, principal: str) -> list[StoredServer]:
        return [server for server in self._servers.values() if server.principal == principal]

    async def add(self, server: StoredServer) -> bool:
        key = (server.principal, server.name)
        if key in self._servers:
            return False
        self._servers[key] = server
        return True

    async def remove(self, principal: str, name: str) -> bool:
        return self._servers.pop((principal, name), None) is not None


class MemoryReplay:
    """A ReplayStore in a list a session."""

    def __init__(self) -> None:
        self._logs: dict[str, deque[tuple[datetime, StoredMessage]]] = {}

    async def append(self, session_id: str, message: StoredMessage, *, at: datetime) -> None:
        self._logs.setdefault(session_id, deque()).append((at, message))

    async def stream_of(self, session_id: str, event_id: str) -> str | None:
        found = (message.stream for _, message in self._logs.get(session_id, ()) if message.event_id == event_id)
        return next(found, None)

    async def after(self, session_id: str, event_id: str) -> list[StoredMessage]:
        stream = await self.stream_of(session_id, event_id)
        later: list[StoredMessage] | None = None
        for _, message in self._logs.get(session_id, ()):
            if later is not None and message.stream == stream:
                later.append(message)
            elif message.event_id == event_id:
                later = []
        return later or []

    async def prune(self, session_id: str, *, older_than: datetime, most: int) -> None:
        log = self._logs.get(session_id, deque())
        while log and (len(log) > most or log[0][0] < older_than):
            log.popleft()

    async def forget(self, session_id: str) -> None:
        self._logs.pop(session_id, None)

"""What a store engine promises. Three small protocols, so that an engine can be chosen for each."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from emceepee.json_types import JsonObject


class StaleRevision(Exception):
    """Someone else committed since this was loaded; load again and decide anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session at rest. `state` is the session's own document; the store never looks inside."""

    session_id: str
    principal: str
    revision: int = 0  # 0: never committed
    expires_at: datetime
    state: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """A server configuration that one principal added."""

    principal: str
    name: str
    entry: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """One message that went out on a stream, kept for a caller that comes back for it."""

    event_id: str
    stream: str
    data: bytes
    is_final: bool = False


class SessionStore(Protocol):
    """Sessions by id. A commit names the revision it was based on, so that two owners never overwrite each other."""

    async def load(self, session_id: str) -> StoredSession | None: ...

    async def commit(self, session: StoredSession) -> StoredSession:
        """Keep it, and return it with its new revision.

        Raises:
            StaleRevision: the kept revision is not the one this was based on.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """No error if it is not there."""
        ...

    def expired(self, now: datetime) -> AsyncIterator[str]:
        """The ids of sessions whose time has passed."""
        ...


class ServerStore(Protocol):
    """Server configurations by principal and name."""

    async def all(self, principal: str) -> list[StoredServer]:
        """In the order in which they were added."""
        ...

    async def add(self, server: StoredServer) -> bool:
        """False if the name is taken; then nothing changes."""
        ...

    async def remove(self, principal: str, name: str) -> bool:
        """False if there was none."""
        ...


class ReplayStore(Protocol):
    """Messages of a session's streams, in order. Event ids are looked up, never parsed."""

    async def append(self, session_id: str, message: StoredMessage, *, at: datetime) -> None: ...

    async def stream_of(self, session_id: str, event_id: str) -> str | None:
        """The stream an event went out on; None if it is not kept (any more)."""
        ...

    async def after(self, session_id: str, event_id: str) -> list[StoredMessage]:
        """The later messages of that event's stream, oldest first; empty if the event is not kept."""
        ...

    async def prune(self, session_id: str, *, older_than: datetime, most: int) -> None: ...

    async def forget(self, session_id: str) -> None: ...

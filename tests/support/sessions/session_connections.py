"""Connections to sessions, for tests without an endpoint."""

from collections.abc import Mapping

from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.store.store import RecordKey


class NoConnections:
    """No connections. A test overrides the step that it watches or delays."""

    def write_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        return None

    async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None: ...

    async def close_all_of(self, session: Session) -> None: ...

"""Sessions as a store has them, made in few words."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import Commit, Lease, RecordKey, SessionHead, Store, StoredSession

NOW = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOT_STORED = Lease(fence=0, revision=0)


def key(value: str, *, principal: str = "alice", kind: KeyKind = KeyKind.ID) -> SessionKey:
    return SessionKey(principal, kind, value)


def head(
    session_id: str,
    *keys: SessionKey,
    principal: str = "alice",
    expires_at: datetime = NOW + HOUR,
    due_at: datetime | None = None,
) -> SessionHead:
    """It is found by its id, if by no key that is given."""
    found_by = frozenset(keys or (key(session_id, principal=principal),))
    return SessionHead(session_id=session_id, principal=principal, keys=found_by, expires_at=expires_at, due_at=due_at)


def records(**data: str) -> dict[RecordKey, bytes]:
    """By their ids, all of one kind."""
    return {RecordKey("event", record_id): text.encode() for record_id, text in data.items()}


def change(of: SessionHead, lease: Lease = NOT_STORED, *deletes: str, **puts: str) -> Commit:
    gone = frozenset(RecordKey("event", record_id) for record_id in deletes)
    return Commit(head=of, lease=lease, puts=records(**puts), deletes=gone)


async def put(store: Store, commit: Commit) -> Lease:
    """Make one change that must succeed."""
    (lease,) = await store.commit([commit])
    assert lease is not None
    return lease


async def store_session(store: Store, of: SessionHead, **puts: str) -> Lease:
    return await put(store, change(of, NOT_STORED, **puts))


async def taken(store: Store, by: SessionKey) -> StoredSession:
    found = await store.take(by)
    assert found is not None
    return found


async def records_in(store: Store, by: SessionKey) -> Mapping[RecordKey, bytes]:
    return (await taken(store, by)).records

"""Changes that somebody with write access to the store makes to a stored session."""

from collections.abc import Callable

from emceepee.state.session_key import SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Commit, StoredSession


async def change_stored_session(store: MemoryStore, key: SessionKey, change: Callable[[StoredSession], Commit]) -> None:
    """Commit the change from another process. No process may hold the session."""
    other = store.another_process()
    stored = await other.take(key)
    assert stored is not None
    assert await other.commit([change(stored)]) != [None]
    other.die()

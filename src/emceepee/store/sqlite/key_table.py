"""The session that each key belongs to. The last write of each session is cached, because keys rarely change."""

import sqlite3
from collections.abc import Iterable, Mapping

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.sqlite.statements import batches, placeholders

Keys = frozenset[SessionKey]


class KeyTable:
    """The cache is valid because no other process changes the keys of a session that this process holds."""

    def __init__(self) -> None:
        self._written: dict[str, Keys] = {}

    def write(self, connection: sqlite3.Connection, wanted: Mapping[str, Keys], new: frozenset[str]) -> dict[str, Keys]:
        """Assign each session its wanted keys that are free. Return the result, for `remember` after the commit."""
        changed = {session_id: keys for session_id, keys in wanted.items() if self._written.get(session_id) != keys}
        if not changed:
            return {}
        before = {
            session_id: frozenset() if session_id in new else read_keys(connection, session_id)
            for session_id in changed
        }
        _delete(connection, [key for session_id, keys in changed.items() for key in before[session_id] - keys])
        return {
            session_id: self._gain(connection, session_id, keys, before[session_id] & keys)
            for session_id, keys in changed.items()
        }

    def remember(self, written: Mapping[str, Keys]) -> None:
        self._written.update(written)

    def disregard(self, session_ids: Iterable[str]) -> None:
        for session_id in session_ids:
            self._written.pop(session_id, None)

    def _gain(self, connection: sqlite3.Connection, session_id: str, wanted: Keys, had: Keys) -> Keys:
        gained = 0
        for batch in batches(list(wanted - had)):
            statement = f"INSERT OR IGNORE INTO keys VALUES {placeholders(4, len(batch))}"
            values = [part for key in batch for part in (key.principal, str(key.kind), key.value, session_id)]
            gained += connection.execute(statement, values).rowcount
        return wanted if gained == len(wanted - had) else read_keys(connection, session_id)


def read_keys(connection: sqlite3.Connection, session_id: str) -> Keys:
    rows = connection.execute("SELECT principal, kind, value FROM keys WHERE session_id = ?", (session_id,))
    return frozenset(SessionKey(principal, KeyKind(kind), value) for principal, kind, value in rows.fetchall())


def is_any_taken(connection: sqlite3.Connection, keys: Iterable[SessionKey]) -> bool:
    """Return whether any of the keys belongs to a session."""
    one = "SELECT 1 FROM keys WHERE principal = ? AND kind = ? AND value = ?"
    found = (connection.execute(one, (key.principal, str(key.kind), key.value)).fetchone() for key in keys)
    return any(row is not None for row in found)


def _delete(connection: sqlite3.Connection, keys: Iterable[SessionKey]) -> None:
    for key in keys:
        one = "DELETE FROM keys WHERE principal = ? AND kind = ? AND value = ?"
        connection.execute(one, (key.principal, str(key.kind), key.value))

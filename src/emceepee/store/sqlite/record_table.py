"""The table of session records. Used by one thread."""

import sqlite3
from collections.abc import Mapping, Sequence

from emceepee.store.sqlite.statements import batches, insert_one_by_one, listed, placeholders
from emceepee.store.store import Commit, RecordKey

READ_AT_ONCE_BYTES = 4 << 20
LARGE_BYTES = 4 << 10  # smaller records share statements; a prepared statement retains its last rows in memory

_Row = tuple[str, str, str, bytes]


def write_records(connection: sqlite3.Connection, commits: Sequence[Commit]) -> None:
    """Write the combined result of the commits, in their order. Call this within a transaction."""
    outcome: dict[tuple[str, str, str], bytes | None] = {}
    for commit in commits:
        session_id = commit.head.session_id
        for kind, record_id in commit.deletes:
            outcome[session_id, kind, record_id] = None
        for (kind, record_id), data in commit.puts.items():
            outcome[session_id, kind, record_id] = data
    for gone in batches([name for name, data in outcome.items() if data is None]):
        matching = f"(session_id, kind, record_id) IN {listed(3, len(gone))}"
        connection.execute(f"DELETE FROM records WHERE {matching}", [part for name in gone for part in name])
    large, small = list[_Row](), list[_Row]()
    for name, content in outcome.items():
        if content is not None:
            (large if isinstance(content, bytes) and len(content) > LARGE_BYTES else small).append((*name, content))
    if large:
        insert_one_by_one(connection, "records", 4, large)
    for rows in batches(small):
        statement = f"INSERT OR REPLACE INTO records VALUES {placeholders(4, len(rows))}"
        connection.execute(statement, [value for row in rows for value in row])


def read_records(connection: sqlite3.Connection, session_id: str) -> Mapping[RecordKey, bytes]:
    """Return all records of a session. Small sessions are read as one row, because each row acquires the GIL once."""
    size = "SELECT total(length(data)) FROM records WHERE session_id = ?"
    (total,) = connection.execute(size, (session_id,)).fetchone()
    if total > READ_AT_ONCE_BYTES:
        rows = connection.execute("SELECT kind, record_id, data FROM records WHERE session_id = ?", (session_id,))
        return {RecordKey(kind, record_id): data for kind, record_id, data in rows}
    joined = (
        "SELECT group_concat(hex(kind) || ',' || hex(record_id) || ',' || hex(data), ';')"
        " FROM records WHERE session_id = ?"
    )
    (text,) = connection.execute(joined, (session_id,)).fetchone()
    if text is None:
        return {}
    parts = [[bytes.fromhex(part) for part in row.split(",")] for row in text.split(";")]
    return {RecordKey(kind.decode(), record_id.decode()): data for kind, record_id, data in parts}

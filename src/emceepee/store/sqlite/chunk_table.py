"""The table of chunks, which are large parts of sessions. Used by one thread."""

from collections.abc import Sequence

from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.statements import insert_one_by_one


class ChunkTable:
    """Callers run each public method within `Database.attempt`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM sessions WHERE session_id = ?", (session_id,)).fetchone() is None:
                return False
            rows = ((session_id, name, number, chunk) for number, chunk in enumerate(chunks, first))
            insert_one_by_one(connection, "chunks", 4, rows)
        return True

    def read(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        query = (
            "SELECT number, data FROM chunks WHERE session_id = ? AND name = ? AND number >= ? AND number < ?"
            " ORDER BY number"
        )
        rows = self._database.connection.execute(query, (session_id, name, first, first + count))
        found: list[bytes] = []
        for number, data in rows:
            if number != first + len(found):
                break
            found.append(data)
        return found

    def drop(self, session_id: str, name: str) -> None:
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM chunks WHERE session_id = ? AND name = ?", (session_id, name))

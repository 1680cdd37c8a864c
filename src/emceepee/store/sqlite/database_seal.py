"""Encryption of the secrets in a state file, with its one key, in the transaction that writes them."""

import sqlite3
from collections.abc import Sequence

from emceepee.store.secret_box import SecretBox, StateKey, Tampered
from emceepee.store.sqlite.database import Database
from emceepee.store.store import StoreUnavailable


class DatabaseSealing:
    """Seals and opens secrets with the key of a database. Like the database, it is used by one thread."""

    def __init__(self, database: Database, key: StateKey) -> None:
        self._database, self._key = database, key
        self._box: SecretBox | None = None

    def check_key(self) -> None:
        """Raises: StoreUnusable."""
        self._box = self._key.verify(_key_check(self._database.connection))

    def seal(self, connection: sqlite3.Connection, plain: bytes, *, place: Sequence[str]) -> bytes:
        """Encrypt data for a place. Call this within a transaction."""
        return self.box(connection).seal(plain, place=place)

    def box(self, connection: sqlite3.Connection) -> SecretBox:
        """Return the box of the key. The first secret creates the key.

        Call this within a transaction, so that no other process creates another key at the same time.
        """
        expected = _key_check(connection)
        box = self._key.verify(expected) or self._key.make()
        if expected is None:
            connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (box.check_value,))
        self._box = box
        return box

    def known_box(self) -> SecretBox | None:
        """Return the box of the existing key, or None if there is none. Raises: StoreUnusable."""
        if self._box is None:
            self.check_key()
        return self._box

    def open(self, sealed: bytes, *, place: Sequence[str], damaged: str) -> bytes:
        """Decrypt data. `damaged` is the error message if the data is damaged. Raises: StoreUnavailable."""
        box = self.known_box()
        assert box is not None
        try:
            return box.open(sealed, place=place)
        except Tampered as error:
            self.check_key()
            raise StoreUnavailable(damaged) from error


def _key_check(connection: sqlite3.Connection) -> bytes | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    return None if row is None else bytes(row[0])

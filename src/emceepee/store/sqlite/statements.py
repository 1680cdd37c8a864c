"""SQL for many rows at once. Each statement acquires the GIL once, so few statements are faster than many."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TypeVar

ROWS_AT_ONCE = 64  # far below the limit on bound values; all distinct statements fit into the cache of prepared ones

T = TypeVar("T")


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def insert_one_by_one(
    connection: sqlite3.Connection, table: str, columns: int, rows: Iterable[Sequence[object]]
) -> None:
    """Insert or replace rows with large data in the last column, and leave no copy of it in memory.

    SQLite copies each bound value, and a prepared statement retains the copies until other values are bound.
    """
    values = ",".join(f"?{number}" for number in range(1, columns + 1))
    statement = f"INSERT OR REPLACE INTO {table} SELECT {values} WHERE ?{columns} IS NOT NULL"
    connection.executemany(statement, chain(rows, [(None,) * columns]))  # the last inserts nothing


@cache
def placeholders(columns: int, rows: int = 1) -> str:
    """Return placeholders for several rows, such as `(?,?),(?,?)`."""
    return ",".join([f"({','.join('?' * columns)})"] * rows)


@cache
def listed(columns: int, rows: int) -> str:
    """Return a row list for `IN` that uses an index. With a bare `VALUES` list, SQLite would scan the whole table."""
    names = ", ".join(f"column{number}" for number in range(1, columns + 1))
    return f"(SELECT {names} FROM (VALUES {placeholders(columns, rows)}))"

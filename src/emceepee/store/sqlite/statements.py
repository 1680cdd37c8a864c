"""SQL for many rows at once: each statement is a turn with the interpreter's lock, so few of them are quick."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import TypeVar

ROWS_AT_ONCE = 64  # far below the limit on values, and so few different texts that all stay prepared

T = TypeVar("T")


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


def insert_one_by_one(
    connection: sqlite3.Connection, table: str, columns: int, rows: Iterable[Sequence[object]]
) -> None:
    """Replace rows with large data in the last column, and leave none of it in memory.

    SQLite copies each value that is bound, and a prepared statement keeps the copies until others are bound.
    """
    values = ",".join(f"?{number}" for number in range(1, columns + 1))
    statement = f"INSERT OR REPLACE INTO {table} SELECT {values} WHERE ?{columns} IS NOT NULL"
    connection.executemany(statement, chain(rows, [(None,) * columns]))  # the last one inserts nothing


@cache
def placeholders(columns: int, rows: int = 1) -> str:
    """`(?,?),(?,?)`"""
    return ",".join([f"({','.join('?' * columns)})"] * rows)


@cache
def listed(columns: int, rows: int) -> str:
    """Rows to be found by an index with `IN`. For a bare `VALUES` list SQLite would look through the whole table."""
    names = ", ".join(f"column{number}" for number in range(1, columns + 1))
    return f"(SELECT {names} FROM (VALUES {placeholders(columns, rows)}))"

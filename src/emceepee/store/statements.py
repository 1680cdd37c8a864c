"""SQL for many rows at once: each statement is a turn with the interpreter's lock, so few of them are quick."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TypeVar

ROWS_AT_ONCE = 64  # far below the limit on values, and so few different texts that all stay prepared

T = TypeVar("T")


def batches(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[start : start + ROWS_AT_ONCE]


@cache
def placeholders(columns: int, rows: int = 1) -> str:
    """`(?,?),(?,?)`"""
    return ",".join([f"({','.join('?' * columns)})"] * rows)


@cache
def listed(columns: int, rows: int) -> str:
    """Rows to be found by an index with `IN`. For a bare `VALUES` list SQLite would look through the whole table."""
    names = ", ".join(f"column{number}" for number in range(1, columns + 1))
    return f"(SELECT {names} FROM (VALUES {placeholders(columns, rows)}))"

"""Statements for many rows use an index, however large the table is."""

import sqlite3

import pytest

from emceepee.store.sqlite.schema import STEPS
from emceepee.store.sqlite.statements import ROWS_AT_ONCE, batches, insert_one_by_one, listed, placeholders


@pytest.fixture
def connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for step in STEPS:
        for statement in step:
            connection.execute(statement)
    return connection


def plan(connection: sqlite3.Connection, statement: str) -> str:
    values = [None] * statement.count("?")
    return "\n".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", values))


@pytest.mark.parametrize(
    "statement",
    [
        f"DELETE FROM records WHERE (session_id, kind, record_id) IN {listed(3, 5)}",
        f"UPDATE sessions SET owner = NULL WHERE owner = ? AND (session_id, fence) IN {listed(2, 5)}",
        f"DELETE FROM records WHERE session_id IN {placeholders(5)}",
        f"DELETE FROM keys WHERE session_id IN {placeholders(5)}",
        f"SELECT due_at FROM sessions WHERE due_at IS NOT NULL AND owner NOT IN {placeholders(2)} ORDER BY due_at",
        f"SELECT * FROM sessions WHERE due_at <= ? AND owner NOT IN {placeholders(2)} ORDER BY due_at",
    ],
)
def test_no_statement_scans_a_whole_table(connection: sqlite3.Connection, statement: str) -> None:
    found = plan(connection, statement)
    assert "SEARCH" in found
    assert not [table for table in ("records", "sessions", "keys") if f"SCAN {table}" in found]
    assert "TEMP B-TREE" not in found


def test_many_rows_are_processed_in_batches_without_omissions() -> None:
    rows = list(range(2 * ROWS_AT_ONCE + 1))
    assert [len(batch) for batch in batches(rows)] == [ROWS_AT_ONCE, ROWS_AT_ONCE, 1]
    assert [row for batch in batches(rows) for row in batch] == rows
    assert list(batches([])) == []


def test_placeholders_are_generated_as_rows_of_columns() -> None:
    assert placeholders(2, 3) == "(?,?),(?,?),(?,?)"


def test_rows_inserted_one_by_one_replace_earlier_ones(connection: sqlite3.Connection) -> None:
    insert_one_by_one(connection, "records", 4, [("s", "task", "1", b"old"), ("s", "task", "2", b"")])
    insert_one_by_one(connection, "records", 4, [("s", "task", "1", b"new")])
    found = connection.execute("SELECT * FROM records ORDER BY record_id").fetchall()
    assert found == [("s", "task", "1", b"new"), ("s", "task", "2", b"")]

"""The write-ahead log of a state file stays short, regardless of the amount of data."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite import database
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import StoreUnavailable
from support.figures import record_figure
from support.store.stored_sessions import change, head, store_session

CHUNK = bytes(256 << 10)
MIB = 1 << 20


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(path, SystemClock())
    yield opened
    await opened.close()


def log_bytes(store: SqliteStore) -> int:
    return Path(f"{store.path}-wal").stat().st_size


async def put_much(store: SqliteStore) -> None:
    for first in range(0, 400, 4):
        await store.put_chunks("s1", "r", first, [CHUNK] * 4)


async def test_large_results_that_are_added_and_deleted_leave_a_short_write_ahead_log(store: SqliteStore) -> None:
    await store_session(store, head("s1"))
    longest = 0
    for number in range(40):
        for first in range(0, 16, 4):
            assert await store.put_chunks("s1", f"r{number}", first, [CHUNK] * 4)
            longest = max(longest, log_bytes(store))
        if number >= 4:
            await store.drop_chunks("s1", f"r{number - 4}", 16)
            longest = max(longest, log_bytes(store))
    record_figure(f"160 MiB of results through the state file: its log had at most {longest / MIB:.1f} MiB")
    assert longest <= 16 * MIB


async def test_deleted_sessions_leave_a_short_write_ahead_log(store: SqliteStore) -> None:
    for number in range(8):
        lease = await store_session(store, head(f"s{number}"))
        for first in range(0, 16, 4):
            await store.put_chunks(f"s{number}", "r", first, [CHUNK] * 4)
        await store.forget(f"s{number}", lease)
    assert log_bytes(store) <= 16 * MIB


async def test_the_write_ahead_log_stays_bounded_while_another_program_reads_the_file_and_shrinks_afterwards(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "HELD_WAL_BYTES", 24 * MIB)
    await store_session(store, head("s1"))
    with closing(sqlite3.connect(store.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sessions").fetchall()
        with pytest.raises(StoreUnavailable, match="another program has a transaction open on it"):
            await put_much(store)
        assert log_bytes(store) <= 32 * MIB
        with pytest.raises(StoreUnavailable):
            await store.commit([change(head("s2"))])
        assert store.commit_now([change(head("s2"))]) is None
    assert await store.put_chunks("s1", "r", 0, [CHUNK])
    assert log_bytes(store) <= 16 * MIB
    await store_session(store, head("s2"))

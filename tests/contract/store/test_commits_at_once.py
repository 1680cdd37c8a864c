"""Short commits run inline in the event loop. The writer thread runs all others."""

import sqlite3
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite.inline_commits import (
    ENOUGH_PAGES,
    FEW_SESSIONS,
    LEFT_TO_THREAD_SECONDS,
    PAGE_BYTES,
    PAGES_PER_COMMIT,
    SLOW_SECONDS,
    SMALL_BYTES,
    InlineCommits,
)
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Lease, Store
from support.fakes.clock import FakeClock
from support.store.stored_sessions import NOT_STORED, change, head, key, store_session


@pytest.mark.parametrize("engine", ["memory", "sqlite"], indirect=True)
async def test_an_inline_commit_equals_any_other_commit(store: Store) -> None:
    leases = store.commit_now([change(head("a"), NOT_STORED, x="1")])
    assert leases is not None
    (lease,) = leases
    assert lease is not None
    assert store.commit_now([change(head("a"), Lease(lease.fence, 0), x="2")]) == [None], "of an old revision"
    (again,) = await store.commit([change(head("a"), lease, "x", y="3")])
    assert again is not None
    stored = await store.take(key("a"))
    assert stored is not None
    assert list(stored.records.values()) == [b"3"]


async def test_an_inline_commit_does_not_wait_in_the_event_loop_for_another_process(path: Path) -> None:
    store = await SqliteStore.open(path, SystemClock())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert store.commit_now([change(head("a"), x="1")]) is None
    other.execute("ROLLBACK")
    assert store.commit_now([change(head("a"), x="1")]) is not None
    other.close()
    await store.close()


async def test_large_commits_and_commits_that_sync_the_disk_are_left_to_the_writer_thread(path: Path) -> None:
    store = await SqliteStore.open(path, SystemClock())
    assert store.commit_now([change(head("a"), x="1" * (SMALL_BYTES + 1))]) is None
    assert store.commit_now([change(head(str(number)), x="1") for number in range(FEW_SESSIONS + 1)]) is None
    assert await store.take(key("a")) is None
    await store.close()
    assert store.commit_now([change(head("a"), x="1")]) is None, "it is closed"
    careful = await SqliteStore.open(path, SystemClock(), survives_power_loss=True)
    assert careful.commit_now([change(head("a"), x="1")]) is None
    await careful.close()


async def test_after_a_slow_inline_commit_the_next_ones_are_left_to_the_writer_thread_for_a_while() -> None:
    clock = FakeClock()
    here = InlineCommits(clock, is_off=False)
    commits = [change(head("a"), x="1")]
    with here.timed():
        await clock.advance(SLOW_SECONDS * 0.9)
    assert here.is_good_for(commits)
    with here.timed():
        await clock.advance(SLOW_SECONDS * 1.1)
    assert not here.is_good_for(commits)
    await clock.advance(LEFT_TO_THREAD_SECONDS)
    assert here.is_good_for(commits)


async def test_the_write_ahead_log_is_regularly_checkpointed_into_the_database(path: Path) -> None:
    """Otherwise the file would grow as long as the process runs."""
    store = await SqliteStore.open(path, SystemClock())
    lease: Lease | None = await store_session(store, head("a"))
    sizes = []
    for _ in range(8):
        for number in range(ENOUGH_PAGES // PAGES_PER_COMMIT):
            assert lease is not None
            (lease,) = await store.commit([change(head("a"), lease, x=f"{number} " * 100)])
        await store.shared_revision()  # comes behind a checkpoint that has begun
        sizes.append(path.with_name("state.db-wal").stat().st_size)
    assert max(sizes) < 1.5 * ENOUGH_PAGES * PAGE_BYTES, "it starts from the beginning after each checkpoint"
    await store.close()

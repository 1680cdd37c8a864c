"""When the file cannot be written, the change has no effect, the error names the next step, and the store recovers."""

import errno
import fcntl
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite import database
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, Lease, RecordKey, StoreUnavailable, StoreUnusable
from support.fakes.clock import FakeClock
from support.store.stored_sessions import change, head, key, put, records, records_in, store_session, taken

LARGE = {RecordKey("result", "1"): os.urandom(1 << 20)}


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    return sqlite_store


async def why_unavailable(store: SqliteStore, commit: Commit) -> str:
    with pytest.raises(StoreUnavailable) as refused:
        await store.commit([commit])
    assert str(store.path) in str(refused.value)
    return str(refused.value)


async def check_that_it_goes_on(store: SqliteStore, lease: Lease) -> None:
    """As if nothing had been tried."""
    lease = await put(store, change(head("s1"), lease, e="2"))
    assert lease.revision == 2
    assert await records_in(store, key("s1")) == records(e="2")


# A full disk.


@contextmanager
def no_file_may_grow_beyond(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_failed_write_leaves_no_changes_and_the_next_one_succeeds(store: SqliteStore) -> None:
    lease = await store_session(store, head("s1"), e="1")
    with no_file_may_grow_beyond(256 << 10):
        await why_unavailable(store, Commit(head=head("s1"), lease=lease, puts=LARGE))
        assert await records_in(store, key("s1")) == records(e="1")
    await check_that_it_goes_on(store, (await taken(store, key("s1"))).lease)


async def test_a_full_disk_is_reported_and_the_store_recovers(store: SqliteStore) -> None:
    lease = await store_session(store, head("s1"), e="1")
    connection = store._database.connection
    connection.execute("PRAGMA max_page_count = 20")
    said = await why_unavailable(store, Commit(head=head("s1"), lease=lease, puts=LARGE))
    assert "the disk is full" in said
    assert "Free space" in said
    connection.execute("PRAGMA max_page_count = 1000000")
    await check_that_it_goes_on(store, lease)


async def test_of_several_joined_commits_only_the_faulty_one_fails(store: SqliteStore) -> None:
    leases = [await store_session(store, head(name), e="1") for name in ("s1", "s2", "s3")]
    store._database.connection.execute("PRAGMA max_page_count = 20")
    jobs = [
        store._queue._job(commits=[change(head("s1"), leases[0], e="2")]),
        store._queue._job(commits=[Commit(head=head("s2"), lease=leases[1], puts=LARGE)]),
        store._queue._job(commits=[change(head("s3"), leases[2], e="2")]),
    ]
    store._queue._commit_joined(jobs)
    assert [[made.revision for made in job.result] for job in (jobs[0], jobs[2])] == [[2], [2]]
    assert isinstance(jobs[1].error, StoreUnavailable)
    assert await records_in(store, key("s2")) == records(e="1")


# A file that others use.


async def test_a_state_file_that_is_locked_for_long_is_reported(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    store = await SqliteStore.open(path, clock)
    lease = await store_session(store, head("s1"), e="1")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "locked by another program" in await why_unavailable(store, change(head("s1"), lease, e="x"))
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.take(key("s1"))
    other.close()
    await check_that_it_goes_on(store, lease)
    await store.close()


async def test_a_state_file_that_was_moved_away_is_reported_and_not_created_again(
    store: SqliteStore, path: Path, clock: FakeClock
) -> None:
    lease = await store_session(store, head("s1"), e="1")
    away = path.with_name("away.db")
    path.rename(away)
    for _ in range(2):
        await clock.advance(database.MOVED_CHECK_SECONDS)
        assert "Put it back" in await why_unavailable(store, change(head("s1"), lease, e="x"))
        assert not path.exists()
    away.rename(path)
    await check_that_it_goes_on(store, lease)


async def test_a_replaced_state_file_is_used_and_leases_of_the_old_one_are_invalid(
    store: SqliteStore, path: Path, clock: FakeClock
) -> None:
    lease = await store_session(store, head("s1"), e="1")
    other = await SqliteStore.open(path.with_name("other.db"), clock)
    await store_session(other, head("s1"), e="other")
    await other.close()
    os.replace(path.with_name("other.db"), path)
    for beside in ("-wal", "-shm"):
        path.with_name(f"state.db{beside}").unlink()
    await clock.advance(database.MOVED_CHECK_SECONDS)
    assert await store.commit([change(head("s1"), lease, e="x")]) == [None]
    assert await records_in(store, key("s1")) == records(e="other")


async def test_damage_to_a_state_file_in_use_is_a_clear_error(store: SqliteStore, path: Path, clock: FakeClock) -> None:
    lease = await store_session(store, head("s1"), e="1")
    await store.close()
    store = await SqliteStore.open(path, clock)
    good = path.read_bytes()
    path.write_bytes(good[:4096] + os.urandom(len(good) - 4096))
    said = await why_unavailable(store, change(head("s1"), lease, e="x"))
    assert "damaged" in said
    path.write_bytes(good)
    assert (await taken(store, key("s1"))).records == records(e="1")
    await store.close()


async def test_an_invalid_commit_does_not_affect_others(store: SqliteStore) -> None:
    lease = await store_session(store, head("s1"), e="1")
    wrong = Commit(head=head("s2"), lease=Lease(0, 0), puts={RecordKey("event", "1"): object()})  # type: ignore[dict-item]  # the mistake
    with pytest.raises((sqlite3.Error, StoreUnavailable)):
        await store.commit([wrong])
    assert await store.take(key("s2")) is None
    await check_that_it_goes_on(store, lease)


# File systems without locks.


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
async def test_a_file_system_without_locks_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StoreUnusable, match="without file locks") as refused:
        await SqliteStore.open(path, SystemClock())
    assert "Put it on a local disk" in str(refused.value)
    assert str(path) in str(refused.value)


async def test_closing_the_store_succeeds_even_if_nothing_can_be_written(store: SqliteStore, path: Path) -> None:
    await store_session(store, head("s1"), e="1")
    store._database.connection.execute("PRAGMA query_only = 1")
    await store.close()
    again = await SqliteStore.open(path, SystemClock())
    assert await records_in(again, key("s1")) == records(e="1")
    await again.close()

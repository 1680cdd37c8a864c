"""Written data stays in the file and leaves memory."""

import contextlib
import os
from pathlib import Path

from emceepee.clock import SystemClock
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, RecordKey
from support.figures import record_figure
from support.store.stored_sessions import HOUR, NOT_STORED, head, key, put, records_in
from support.system.processes import memory_of
from support.waiting import eventually

RECORD_BYTES = 1 << 20
VERY_LARGE_BYTES = 100 << 20
AT_ONCE = 24  # commits have 1 to so many records
ALLOWED_BYTES = 60 << 20


async def growth_since(before: int) -> int:
    """Return how much memory the process has gained, once the thread of the store has freed the last commit.

    The thread reports a commit before it frees it.
    """
    with contextlib.suppress(AssertionError):
        await eventually(lambda: memory_of(os.getpid()) - before < ALLOWED_BYTES)
    return memory_of(os.getpid()) - before


async def test_large_records_do_not_stay_in_memory_after_the_write(tmp_path: Path) -> None:
    clock = SystemClock()
    store = await SqliteStore.open(tmp_path / "state.db", clock)
    of, lease = head("one", expires_at=clock.now() + HOUR), NOT_STORED
    lease = await put(store, Commit(head=of, lease=lease, puts={}, deletes=frozenset()))
    before = memory_of(os.getpid())
    for count in range(1, AT_ONCE + 1):
        puts = {RecordKey("task", str(number)): os.urandom(1) * RECORD_BYTES for number in range(count)}
        lease = await put(store, Commit(head=of, lease=lease, puts=puts, deletes=frozenset()))
        del puts
    grown = await growth_since(before)
    found = await records_in(store, key("one"))
    sizes = [len(data) for data in found.values()]
    await store.close()
    written = AT_ONCE * (AT_ONCE + 1) // 2 * RECORD_BYTES
    record_figure(f"{written >> 20} MiB of large records written: memory +{grown / (1 << 20):.0f} MiB")
    assert sizes == [RECORD_BYTES] * AT_ONCE
    assert grown < ALLOWED_BYTES


async def test_the_last_written_record_does_not_stay_in_memory(tmp_path: Path) -> None:
    clock = SystemClock()
    store = await SqliteStore.open(tmp_path / "state.db", clock)
    of = head("one", expires_at=clock.now() + HOUR)
    lease = await put(store, Commit(head=of, lease=NOT_STORED, puts={}, deletes=frozenset()))
    before = memory_of(os.getpid())
    puts = {RecordKey("task", "1"): os.urandom(1) * VERY_LARGE_BYTES}
    await put(store, Commit(head=of, lease=lease, puts=puts, deletes=frozenset()))
    del puts
    grown = await growth_since(before)
    await store.close()
    record_figure(f"one record of {VERY_LARGE_BYTES >> 20} MiB written: memory +{grown / (1 << 20):.0f} MiB")
    assert grown < ALLOWED_BYTES

"""After a kill at any time, each batch is stored wholly or not at all, and every confirmed batch is stored."""

import asyncio
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import HeldElsewhere, Store
from support.documentation import ROOT
from support.figures import record_figure
from support.programs import committing
from support.store.stored_sessions import change, head, key, put, store_session, taken

KILLS = 10  # of each kind
MOST_BATCHES = 40  # before a kill
BOUND = 30.0  # seconds


@asynccontextmanager
async def committer(path: Path, *steps: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """It is killed at the end, if it does not kill itself."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, committing.__file__, str(path), *map(str, steps)),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


async def reported(process: asyncio.subprocess.Process, batches: int) -> int:
    """The number of the last batch that it says is there, after so many of them."""
    assert process.stdout is not None
    last = b""
    for _ in range(batches):
        last = await asyncio.wait_for(process.stdout.readline(), BOUND)
        assert last, "the program ended"
    return int(last)


async def last_words(process: asyncio.subprocess.Process, otherwise: int) -> int:
    """Return its output before the kill, including unread lines."""
    assert process.stdout is not None
    lines = (await asyncio.wait_for(process.stdout.read(), BOUND)).split(b"\n")[:-1]
    await asyncio.wait_for(process.wait(), BOUND)
    return int(lines[-1]) if lines else otherwise


async def whole_batch_in(store: Store) -> int:
    """The number of the batch that all sessions have in common."""
    sessions = [await taken(store, key(f"s{number}")) for number in range(committing.SESSIONS)]
    (revision,) = {found.lease.revision for found in sessions}
    for number, found in enumerate(sessions):
        assert found.records == committing.batch(number, revision)
    return revision


async def last_batch_of_a_killed_process(path: Path) -> int:
    store = await SqliteStore.open(path, SystemClock())
    try:
        return await whole_batch_in(store)
    finally:
        await store.close()


async def test_a_batch_is_applied_wholly_or_not_at_all_when_the_process_is_killed(tmp_path: Path) -> None:
    path, choice, last = tmp_path / "state.db", random.Random(15), 0
    for _ in range(KILLS):
        async with committer(path) as process:
            said = await reported(process, choice.randint(1, MOST_BATCHES))
            for _ in range(choice.randint(0, 200)):  # turns of the loop: a random moment within a batch
                await asyncio.sleep(0)
            process.send_signal(signal.SIGKILL)
            said = await last_words(process, said)
        found = await last_batch_of_a_killed_process(path)
        assert last < said <= found
        last = found
    record_figure(f"{KILLS} kills from outside, {last} batches")


async def test_a_batch_is_applied_wholly_or_not_at_all_if_the_process_dies_between_two_changes(
    tmp_path: Path,
) -> None:
    path, choice = tmp_path / "state.db", random.Random(16)
    async with committer(path) as process:
        await reported(process, 1)
    last = await last_batch_of_a_killed_process(path)
    for _ in range(KILLS):
        async with committer(path, choice.randint(1, 2 * committing.STEPS_PER_BATCH)) as process:
            said = await last_words(process, last)
        assert process.returncode == -signal.SIGKILL
        found = await last_batch_of_a_killed_process(path)
        assert said <= found
        last = found
    record_figure(f"{KILLS} kills from inside, {last} batches")


async def test_the_sessions_of_a_killed_process_are_free_at_once(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "state.db", SystemClock())
    async with committer(tmp_path / "state.db") as process:
        await reported(process, 1)
        with pytest.raises(HeldElsewhere, match="holds this session"):
            await store.take(key("s0"))
    await whole_batch_in(store)
    await store.close()


async def test_two_processes_write_to_one_state_file_concurrently(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "state.db", SystemClock())
    lease = await store_session(store, head("mine"))
    async with committer(tmp_path / "state.db") as process:
        first = await reported(process, 1)
        for number in range(100):
            lease = await put(store, change(head("mine"), lease, e=str(number)))
        assert await reported(process, 100) == first + 100
    assert lease.revision == 101
    await whole_batch_in(store)
    await store.close()

"""Processes that share a state file identify each other by their lock files."""

import asyncio
import json
import os
import socket
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.state.replica import Replica
from emceepee.store.sqlite.owners import SOCKET_FOLDER_PREFIX, Owners, folder_of
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import HeldElsewhere, StoreUnusable
from support.store.store_engines import kill_sqlite_store
from support.store.stored_sessions import change, head, key, store_session, taken

HERE = "http://127.0.0.1:1"
OPENS_A_STORE = """
import asyncio, sys
from pathlib import Path
from emceepee.clock import SystemClock
from emceepee.store.sqlite.sqlite_store import SqliteStore

async def main():
    store = await SqliteStore.open(Path(sys.argv[1]), SystemClock())
    print(store.replica.slot, flush=True)
    sys.stdin.read()
    await store.close()

asyncio.run(main())
"""


class Processes:
    """In a test a process is a store of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stores: list[SqliteStore] = []

    async def start(self, *, address: str = "", slot: int | None = None) -> SqliteStore:
        store = await SqliteStore.open(self._path, SystemClock(), address=address, slot=slot)
        self._stores.append(store)
        return store

    async def kill(self, store: SqliteStore) -> None:
        await kill_sqlite_store(store)

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


@pytest.fixture
async def processes(path: Path) -> AsyncIterator[Processes]:
    processes = Processes(path)
    yield processes
    await processes.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where a replica has its socket. Not below the test's own: the path of a socket is short."""
    made = Path(tempfile.mkdtemp(prefix=SOCKET_FOLDER_PREFIX))
    yield made
    for file in made.glob("*"):
        file.unlink()
    if made.exists():
        made.rmdir()


def itself(store: SqliteStore) -> Replica:
    assert store.replica is not None
    return store.replica


async def slots_seen_by(store: SqliteStore) -> list[int]:
    return sorted(replica.slot for replica in await store.replicas())


async def test_the_lock_file_of_a_replica_contains_its_slot_and_its_address(processes: Processes, path: Path) -> None:
    store = await processes.start(address=HERE, slot=7)
    (mark,) = [file for file in folder_of(path).iterdir() if file.name != "opening"]
    assert json.loads(mark.read_bytes()) == {"slot": 7, "epoch": itself(store).epoch, "address": HERE}
    other = await processes.start()
    assert await other.replicas() == [itself(other), itself(store)]


async def test_a_slot_is_free_as_soon_as_its_process_is_dead(processes: Processes) -> None:
    first, second, third = [await processes.start() for _ in range(3)]
    await processes.kill(second)
    assert await slots_seen_by(first) == [0, 2]
    again = await processes.start()
    assert itself(again).slot == 1
    assert await slots_seen_by(third) == [0, 1, 2]
    assert len({itself(store).epoch for store in (first, second, third, again)}) == 4


async def test_the_slot_of_a_living_replica_is_refused_with_the_next_step(processes: Processes) -> None:
    first = await processes.start(slot=3)
    with pytest.raises(StoreUnusable, match=r"another emceepee process with the slot 3\. Omit --replica-slot"):
        await processes.start(slot=3)
    assert await slots_seen_by(first) == [3]
    await processes.kill(first)
    assert await slots_seen_by(await processes.start(slot=3)) == [3]


async def test_processes_that_start_concurrently_get_separate_slots(path: Path) -> None:
    command, pipe = (sys.executable, "-c", OPENS_A_STORE, str(path)), asyncio.subprocess.PIPE
    running = [await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe) for _ in range(4)]
    found = []
    for process in running:
        assert process.stdout is not None
        found.append(int(await asyncio.wait_for(process.stdout.readline(), 30)))
    for process in running:
        await asyncio.wait_for(process.communicate(b""), 30)
    assert sorted(found) == [0, 1, 2, 3]


async def test_a_process_with_an_empty_lock_file_is_alive_but_no_replica(processes: Processes, path: Path) -> None:
    """It is an earlier version of emceepee, or a process that only reads the file."""
    store = await processes.start()
    looking = Owners(path)
    with looking.opening():
        looking.join()
    assert Owners(path).is_alive(looking.own_id)
    assert await slots_seen_by(store) == [0]
    assert itself(await processes.start()).slot == 1
    looking.leave()


async def test_an_unreadable_lock_file_counts_as_empty(processes: Processes, path: Path) -> None:
    store = await processes.start()
    for words in (b"\xff", b"[]", b'{"slot": "x", "epoch": 1, "address": ""}', b'{"slot": 1}'):
        other = Owners(path)
        with other.opening():
            other.join()
        (folder_of(path) / other.own_id).write_bytes(words)
        assert await slots_seen_by(store) == [0]
        other.leave()


async def test_the_holder_of_a_session_is_returned_without_waiting_for_a_writer(
    processes: Processes, path: Path
) -> None:
    """A forwarding replica needs the holder often."""
    holder, other = await processes.start(address=HERE), await processes.start()
    await store_session(holder, head("s1"))
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("BEGIN IMMEDIATE")
    with pytest.raises(HeldElsewhere) as refused:
        await asyncio.wait_for(other.take(key("s1")), 2)
    writing.close()
    assert refused.value.holder == itself(holder)


async def test_a_process_whose_lock_file_was_deleted_keeps_its_slot_if_it_is_free(
    processes: Processes, path: Path
) -> None:
    first, second = await processes.start(), await processes.start()
    for file in folder_of(path).iterdir():
        file.unlink()
    third = await processes.start()
    assert itself(third).slot == 0
    for store in (second, first):
        store._database._drop_connection()  # as after a fault of the disk
        await store.replicas()
    assert [itself(store).slot for store in (first, second, third)] == [2, 1, 0]
    assert await slots_seen_by(third) == [0, 1, 2]


async def test_the_secret_of_replicas_is_created_once_and_is_in_no_other_file(processes: Processes, path: Path) -> None:
    first, second = await processes.start(), await processes.start()
    found = await asyncio.gather(first.replica_secret(), second.replica_secret(), first.replica_secret())
    (secret,) = set(found)
    assert len(secret) == 32
    await first.close()
    await second.close()
    again = await processes.start()
    assert await again.replica_secret() == secret
    assert [file for file in path.parent.rglob("*") if file.is_file() and file.stat().st_mode & 0o077] == []


async def test_a_session_is_created_wholly_or_not_at_all_in_a_race_of_two_processes(processes: Processes) -> None:
    stores = [await processes.start() for _ in range(2)]
    for number in range(50):
        shared, own = key("name" + str(number)), [key(f"{side}{number}") for side in "ab"]
        commits = [change(head(f"{side}{number}", shared, own[side == "b"]), e=side) for side in "ab"]
        leases = await asyncio.gather(*(store.create(commit) for store, commit in zip(stores, commits, strict=True)))
        (winner,) = [side for side, lease in enumerate(leases) if lease is not None]
        assert (await taken(stores[winner], shared)).head.session_id == f"{'ab'[winner]}{number}"
        assert await stores[winner].take(own[1 - winner]) is None
    assert stores[0].commit_statistics.count + stores[1].commit_statistics.count == 100


# Sockets of the dead.


def listen(folder: Path) -> str:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    return f"unix:{folder / 'socket'}"


async def test_the_socket_of_a_dead_process_is_removed_by_the_next_one(processes: Processes, folder: Path) -> None:
    living = await processes.start()
    dead = await processes.start(address=listen(folder))
    await processes.start()
    assert folder.exists()
    await processes.kill(dead)
    await processes.start()
    assert not folder.exists()
    assert await slots_seen_by(living) == [0, 1, 2]


async def test_only_a_socket_in_a_directory_of_its_own_is_removed(processes: Processes, folder: Path) -> None:
    file, deeper = folder / "file", folder / "folder"
    file.write_text("kept")
    deeper.mkdir()
    link = folder.with_name(f"{SOCKET_FOLDER_PREFIX}link-{os.getpid()}")
    link.symlink_to(deeper)
    try:
        elsewhere = listen(deeper)
        for address in (f"unix:{file}", elsewhere, f"unix:{link / 'socket'}", "unix:", f"unix:{folder}", "unix:\0"):
            await processes.kill(await processes.start(address=address))
            await processes.start()
        assert file.read_text() == "kept"
        assert (deeper / "socket").exists()
    finally:
        link.unlink()
        (deeper / "socket").unlink(missing_ok=True)
        deeper.rmdir()

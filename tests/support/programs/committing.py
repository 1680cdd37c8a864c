"""Commits numbered batches to a state file until it is killed, and says after each that it is there.

A batch replaces all records of the one before, so that half a batch would show. With a number it kills itself, after so
many steps of the database's own machine: that is between any two changes.
"""

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

from emceepee.clock import SystemClock
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, RecordKey
from support.store.stored_sessions import NOT_STORED, head, key

SESSIONS, RECORDS = 3, 40
STEPS_PER_BATCH = 5000  # about


def batch(session: int, number: int) -> dict[RecordKey, bytes]:
    """The last digits are part of the ids: so a batch both puts and deletes."""
    data = b"%d " % number * 100
    return {RecordKey("event", f"{number % 2}-{session}-{place}"): data for place in range(RECORDS)}


def kill_after(steps: int, store: SqliteStore) -> None:
    left = count(steps, -1)

    def look() -> None:
        if next(left) <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    store._database.connection.set_progress_handler(look, 1)


async def commit_for_ever(path: Path, steps: int | None) -> None:
    store = await SqliteStore.open(path, SystemClock())
    leases = {}
    first = 0
    for session in range(SESSIONS):
        found = await store.take(key(f"s{session}"))
        leases[session] = NOT_STORED if found is None else found.lease
        first = NOT_STORED.revision if found is None else found.lease.revision
    if steps is not None:
        kill_after(steps, store)
    for number in count(first + 1):
        made = await store.commit(
            [
                Commit(
                    head=head(f"s{session}"),
                    lease=lease,
                    puts=batch(session, number),
                    deletes=frozenset(batch(session, number - 1)),
                )
                for session, lease in leases.items()
            ]
        )
        leases = {session: lease for session, lease in enumerate(made) if lease is not None}
        assert len(leases) == SESSIONS
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(commit_for_ever(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None))

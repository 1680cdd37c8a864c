"""Opens a state file without root's rights, commits to it at every line that it reads, and says what comes of it."""

import asyncio
import concurrent.futures.thread  # noqa: F401  what is loaded later would have to be readable for everyone
import os
import sys
from pathlib import Path

from emceepee.clock import SystemClock
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import StoreError
from support.programs.unprivileged_emceepee import give_up_root
from support.store.stored_sessions import NOT_STORED, change, head


async def commit_line_by_line(path: Path) -> None:
    store = await SqliteStore.open(path, SystemClock())
    lease = NOT_STORED
    print("opened", flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            (made,) = await store.commit([change(head("s1"), lease, e=line)])
        except StoreError as error:
            print(error, flush=True)
        else:
            lease = made or lease
            print("committed" if made else "out of date", flush=True)
    await store.close()


if __name__ == "__main__":
    if os.geteuid() == 0:
        give_up_root()
    try:
        asyncio.run(commit_line_by_line(Path(sys.argv[1])))
    except StoreError as error:
        print(f"{type(error).__name__}: {error}")

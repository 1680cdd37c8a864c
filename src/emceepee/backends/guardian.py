"""Outlives emceepee to end what it started: run as a program of its own, with the standard library only.

Its standard input is a pipe from emceepee. As long as that is open it only keeps books: `watch PGID` and `forget PGID`,
a line each. When it closes, emceepee is gone, however it went; then every process that is still in a watched group, or
bears emceepee's mark in its environment, is asked to end, and after a moment made to. On Linux the mark also finds
those that left their group.
"""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

MARK_VARIABLE = "EMCEEPEE_FAMILY"
TERM_SECONDS = 1.0
GIVE_UP_SECONDS = 10.0
POLL_SECONDS = 0.05


def main(mark: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        verb, _, group = line.partition(" ")
        if verb == "watch":
            groups.add(int(group))
        else:
            groups.discard(int(group))
    end_family(mark, groups)


def end_family(mark: str, groups: set[int]) -> None:
    """TERM, then KILL, until nobody of them is left."""
    began = time.monotonic()  # noqa: TID251  # a program of its own, with no clock to take
    while (waited := time.monotonic() - began) < GIVE_UP_SECONDS:  # noqa: TID251  # no clock to take
        number = signal.SIGTERM if waited < TERM_SECONDS else signal.SIGKILL
        alive = [group for group in groups if _signal_group(group, number)]
        strays = marked_processes(mark)
        for pid in strays:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        if not alive and not strays:
            return
        time.sleep(POLL_SECONDS)  # noqa: TID251  # there is no loop here to block, and no clock to take


def marked_processes(mark: str) -> list[int]:
    """Living processes that inherited the mark, this one excepted; none where there is no /proc."""
    wanted = f"{MARK_VARIABLE}={mark}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            marked = wanted in (entry / "environ").read_bytes().split(b"\0")
            is_zombie = marked and (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
        except OSError:
            continue  # gone meanwhile, or someone else's
        if marked and not is_zombie and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])

"""Which processes there are; nothing here ends any."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from support.waiting import eventually

STATE, VIRTUAL_BYTES = 0, 20  # where they stand in /proc/PID/stat after the name


async def until(holds: Callable[[], bool], *, within: float = 20.0, what: str = "the condition") -> None:
    """A bounded wait for what nobody announces: processes, files, memory."""
    await eventually(holds, what=what, within=within)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not collected does not.

    A process without memory does not run either. An exiting process frees its memory, then its descriptors, and only
    then is a zombie: a test that waits for a socket to close finds it between the last two.
    """
    fields = _stat_of(pid)
    return bool(fields) and fields[STATE] != "Z" and fields[VIRTUAL_BYTES] != "0"


def state_of(pid: int) -> str | None:
    return fields[STATE] if (fields := _stat_of(pid)) else None


def _stat_of(pid: int) -> list[str]:
    """Return the kernel's fields after the process name; nothing if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def below(pid: int) -> list[int]:
    """All running processes that descend from one."""
    found: list[int] = []
    for child in children_of(pid):
        found += [child, *below(child)]
    return [pid for pid in found if is_alive(pid)]


def guardians_of(pid: int) -> list[int]:
    """Return the guardian processes of an emceepee: one that starts others, and a keeper per server."""
    return [found for found in below(pid) if is_guardian(found)]


def servers_of(pid: int) -> list[int]:
    """Return the processes of an emceepee's servers with all their descendants, even reparented ones."""
    found = [each for each in below(pid) if not is_guardian(each)]
    return [each for each in found if is_alive(each)]  # still: a guardian that ends is not known as one any more


def environment_of(pid: int) -> dict[str, str]:
    """As it was started with."""
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return {name: value for name, found, value in (entry.partition("=") for entry in entries) if found}


def is_guardian(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return len(words) > 3 and b"/backends/" in words[3] and b"guardian" in words[3]


def sandbox_workers_of(pid: int) -> list[int]:
    """Return the worker processes in which an emceepee runs scripts."""
    return [found for found in below(pid) if _name_of(found) == "monty"]


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    """Direct children, zombies included."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # it has just exited
            found += map(int, listed.read_text().split())
    return found


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

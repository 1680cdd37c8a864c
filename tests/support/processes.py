"""Which processes there are, by their mark; nothing here ends any but by its id."""

import os
from collections.abc import Callable
from pathlib import Path

from support.waiting import eventually

MARK = "EMCEEPEE_FAMILY"


async def until(holds: Callable[[], bool], *, within: float = 20.0, what: str = "the condition") -> None:
    """A bounded wait for what nobody announces: processes, files, memory."""
    await eventually(holds, what=what, within=within)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not collected does not."""
    state = state_of(pid)
    return state is not None and state != "Z"


def state_of(pid: int) -> str | None:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def marked_with(variable: str, value: str) -> list[int]:
    """Running processes with that in their environment, ourselves excepted."""
    wanted = f"{variable}={value}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0") and int(entry.name) != os.getpid():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if is_alive(pid)]


def family_of(pid: int) -> str:
    """The mark that the child `pid` of an emceepee bears."""
    for entry in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
        name, _, value = entry.partition(b"=")
        if name == MARK.encode():
            return value.decode()
    raise AssertionError(f"process {pid} bears no mark")


def children_of(pid: int) -> list[int]:
    """Direct children, zombies included."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, listed.read_text().split())
    return found


def memory_of(pid: int) -> int:
    """Resident bytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

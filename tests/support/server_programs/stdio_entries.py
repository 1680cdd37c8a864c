"""The small stdio servers beside this module, as server entries, and what becomes of their processes."""

import sys
from pathlib import Path
from typing import Any

from support.waiting import eventually

STDIO_SERVER = Path(__file__).parent / "stdio_server.py"


def program(script: Path, *words: str) -> dict[str, Any]:
    """The command and arguments that run a server that needs the standard library only."""
    return {"command": sys.executable, "args": ["-S", "-E", str(script), *words]}


def stdio_server(*words: str) -> dict[str, Any]:
    """The command and arguments of a server that behaves as `words` say. -S and -E: nothing of ours is imported."""
    return program(STDIO_SERVER, *words)


def is_running(pid: int) -> bool:
    """Whether the process does anything any more: one that waits to be collected by its parent does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


async def pid_in(marker: Path) -> int:
    """The id that a process writes at its start, as soon as it is there."""
    await eventually(marker.exists, what=f"{marker.name} is written")
    return _number_in(marker)


async def gone(*pids: int) -> None:
    """Wait until none of the processes runs."""
    await eventually(lambda: not any(map(is_running, pids)), what=f"the processes {pids} are gone")


def _number_in(file: Path) -> int:
    return int(file.read_text())

"""All processes that emceepee started: marked, watched by a guardian that outlives us, and reaped."""

import asyncio
import ctypes
import os
import secrets
import signal
import sys
from contextlib import suppress
from pathlib import Path

from emceepee.backends import guardian
from emceepee.backends.guardian import MARK_VARIABLE, marked_processes
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")

_PR_SET_CHILD_SUBREAPER = 36
CLOSE_SECONDS = 2.0


class Family:
    """One an installation. The guardian is started with the first child, so that a probe of emceepee starts nothing."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._guardian: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._members: dict[int, str] = {}

    def environment(self, member: str) -> dict[str, str]:
        """What a child must inherit to be found again."""
        return {MARK_VARIABLE: self._mark, f"{MARK_VARIABLE}_MEMBER": member}

    def new_member(self) -> str:
        return secrets.token_hex(8)

    async def prepare(self) -> None:
        """Before a child is started: there is someone to watch it."""
        async with self._starting:
            if self._guardian is None:
                become_subreaper()
                self._guardian = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", guardian.__file__, self._mark),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    env={},
                )

    def joined(self, pid: int, member: str) -> None:
        self._members[pid] = member
        self._tell(f"watch {pid}")

    def left(self, pid: int) -> None:
        """After its group was ended: end what had left the group, and forget it."""
        member = self._members.pop(pid, None)
        self._tell(f"forget {pid}")
        if member is not None:
            self.end_strays(member)
        self.reap()

    def reap(self) -> None:
        """Collect what we adopted and has ended: an uncollected process still counts as one of its group."""
        reap_orphans(known={*self._members, *([self._guardian.pid] if self._guardian else [])})

    def end_strays(self, member: str) -> None:
        for pid in strays_of(member, self._mark):
            log.warning("stray_process_ended", pid=pid)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    async def close(self) -> None:
        """Everyone has left; let the guardian go. Whoever is still there, it ends."""
        process, self._guardian = self._guardian, None
        if process is not None and process.stdin is not None:
            process.stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(guardian.GIVE_UP_SECONDS + CLOSE_SECONDS):
                    await process.wait()
        reap_orphans(known=set())

    def _tell(self, line: str) -> None:
        if self._guardian is not None and self._guardian.stdin is not None:
            with suppress(ConnectionError, RuntimeError):
                self._guardian.stdin.write(f"{line}\n".encode())


def strays_of(member: str, mark: str) -> list[int]:
    """Processes of one child's making that are still there."""
    wanted = f"{MARK_VARIABLE}_MEMBER={member}".encode()
    found = []
    for pid in marked_processes(mark):
        with suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def become_subreaper() -> None:
    """On Linux, orphans of our children become ours, so that we can reap them. Elsewhere nothing happens."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(*, known: set[int]) -> None:
    """Collect adopted children that have ended. Our own are the event loop's to collect."""
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for pid in map(int, children.read_text().split()):
                if pid not in known and _is_zombie(pid):
                    with suppress(ChildProcessError):
                        os.waitpid(pid, os.WNOHANG)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False

"""All processes that emceepee started: marked, watched by a guardian that outlives us, and reaped."""

import asyncio
import ctypes
import os
import secrets
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emceepee.backends import guardian
from emceepee.backends.guardian import MARK_VARIABLE
from emceepee.clock import Clock
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")

_PR_SET_CHILD_SUBREAPER = 36
CLOSE_SECONDS = 2.0
STRAY_TRIES, STRAY_PAUSE = 50, 0.02  # a killed process needs a moment to be gone, and may have had a child meanwhile
REAP_SECONDS = 10.0  # between two looks for adopted children that have ended


class Family:
    """One an installation. The guardian is started with the first child, so that a probe of emceepee starts nothing."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(16)
        self._guardian: asyncio.subprocess.Process | None = None
        self._starting = asyncio.Lock()
        self._members: dict[int, str] = {}
        self._being_started = 0
        self._reaping: asyncio.TimerHandle | None = None

    def environment(self, member: str) -> dict[str, str]:
        """What a child must inherit to be found again."""
        return {MARK_VARIABLE: self._mark, f"{MARK_VARIABLE}_MEMBER": member}

    def new_member(self) -> str:
        return secrets.token_hex(8)

    async def prepare(self) -> None:
        """Before a child is started: there is someone to watch it."""
        async with self._starting:
            if not self._has_guardian():
                become_subreaper()
                self._reap_now_and_then()
                self._guardian = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", guardian.__file__, self._mark),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                    env={},
                )
                for pid in self._members:
                    self._tell(f"watch {pid}")

    def _has_guardian(self) -> bool:
        """Looked at closely: that it has just ended may not have been told to us yet."""
        process = self._guardian
        return process is not None and process.returncode is None and not _is_zombie(process.pid)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """While a child is being started, a process that is not known yet may be our own and not ours to collect."""
        self._being_started += 1
        try:
            yield
        finally:
            self._being_started -= 1

    def joined(self, pid: int, member: str) -> None:
        self._members[pid] = member
        self._tell(f"watch {pid}")

    async def left(self, pid: int, clock: Clock) -> None:
        """After its group was ended: end what had left the group, and forget it."""
        member = self._members.get(pid)
        if member is not None:
            await self._end_strays(member, clock)
        self._members.pop(pid, None)
        self._tell(f"forget {pid}")
        self.reap()

    def reap(self) -> None:
        """Collect what we adopted and has ended: an uncollected process still counts as one of its group."""
        known = {*self._members, *([self._guardian.pid] if self._guardian else [])}
        reap_orphans(known=known, spare_leaders=self._being_started > 0 or self._starting.locked())

    def _reap_now_and_then(self) -> None:
        """A server that leaves orphans behind while it runs must not fill the process table."""
        self.reap()
        if self._reaping is not None:
            self._reaping.cancel()
        self._reaping = asyncio.get_running_loop().call_later(REAP_SECONDS, self._reap_now_and_then)

    async def _end_strays(self, member: str, clock: Clock) -> None:
        """Those that left their group are known by their mark; they are not asked."""
        for _ in range(STRAY_TRIES):
            strays = strays_of(member)
            if not strays:
                return
            for pid in strays:
                log.warning("stray_process_ended", pid=pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            await clock.sleep(STRAY_PAUSE)
            self.reap()

    async def close(self) -> None:
        """Everyone has left; let the guardian go. Whoever is still there, it ends."""
        if self._reaping is not None:
            self._reaping.cancel()
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


def strays_of(member: str) -> list[int]:
    """Processes of one gone child's making that are still there. Orphans are our children: see become_subreaper."""
    wanted = f"{MARK_VARIABLE}_MEMBER={member}".encode()
    found = []
    for pid in own_children():
        with suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and not _is_zombie(pid):
                found.append(pid)
    return found


def own_children() -> list[int]:
    """None where there is no /proc."""
    found: list[int] = []
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, children.read_text().split())
    return found


def become_subreaper() -> None:
    """On Linux, orphans of our children become ours, so that we can reap them. Elsewhere nothing happens."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans(*, known: set[int], spare_leaders: bool = False) -> None:
    """Collect adopted children that have ended. Our own are the event loop's to collect: they lead a session each."""
    for pid in own_children():
        if pid not in known and _is_zombie(pid) and not (spare_leaders and _session_of(pid) == pid):
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0

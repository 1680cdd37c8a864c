"""Sessions opened in waves, each with a process that forked, and abandoned: nobody must be left."""

import asyncio
import os
import sys

from emceepee.app.session_parts import open_session, session_parts
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.guard.caller_identity import LOCAL
from support.callers.recorder import HOSTILE
from support.system.processes import below, children_of, is_alive, servers_of, until
from support.waiting import eventually

SESSIONS = 50


def forking(name: str, *flags: str) -> BackendSpec:
    return BackendSpec(name=name, target=StdioTarget(command=sys.executable, args=("-S", str(HOSTILE), *flags)))


async def waves_of_sessions(waves: int) -> int:
    """Returns how many processes there were in all; every one of them is gone."""
    before, total = set(children_of(os.getpid())), 0
    async with session_parts(Config(), SystemClock()) as parts:

        async def one(number: int, ready: asyncio.Barrier) -> int:
            flag = ("--fork", "--fork-away")[number % 2]
            async with open_session(f"s{number}", f"{LOCAL}{number}", parts) as session:
                connection = await session.servers.add(forking("one", flag))
                pid = int((connection.process or {})["pid"])
                await ready.wait()
            return pid

        for _ in range(waves):
            barrier = asyncio.Barrier(SESSIONS + 1)
            opening = [asyncio.ensure_future(one(number, barrier)) for number in range(SESSIONS)]
            async with asyncio.timeout(120):
                await _all_there(barrier, opening)
                alive = _servers(before)
                total += len(alive)
                assert len(alive) == 2 * SESSIONS, f"{len(alive)} processes in a wave"
                await barrier.wait()
                await asyncio.gather(*opening)
            assert [pid for pid in alive if is_alive(pid)] == []
            assert _servers(before) == []
    await until(lambda: set(children_of(os.getpid())) <= before, what="the collection of what ended")
    return total


async def sessions_abandoned_at_start() -> None:
    """Leave while some servers are being started, some are being spoken to, and some have not begun."""
    before = set(children_of(os.getpid()))
    async with session_parts(Config(), SystemClock()) as parts:

        async def one(number: int) -> None:
            async with open_session(f"s{number}", f"{LOCAL}{number}", parts) as session:
                await session.servers.add(forking("one", "--fork-away"))

        opening = [asyncio.ensure_future(one(number)) for number in range(SESSIONS)]
        await until(lambda: len(_servers(before)) >= SESSIONS // 5, what="the first processes")
        for task in opening:
            task.cancel()
        async with asyncio.timeout(60):
            await asyncio.gather(*opening, return_exceptions=True)
        left = _servers(before)
        assert left == [], f"{len(left)} processes are left"
    await until(lambda: set(children_of(os.getpid())) <= before, what="the collection of what ended")


def _servers(before: set[int]) -> list[int]:
    """Return descendants that were not running before and are no guardians."""
    others = {found for pid in before for found in (pid, *below(pid))}
    return [pid for pid in servers_of(os.getpid()) if pid not in others]


async def _all_there(barrier: asyncio.Barrier, opening: "list[asyncio.Task[int]]") -> None:
    def are_there() -> bool:
        for task in opening:
            if task.done():
                task.result()
        return barrier.n_waiting >= SESSIONS

    await eventually(are_there, what="every session of the wave has its server", within=120)

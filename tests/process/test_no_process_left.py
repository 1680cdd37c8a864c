"""However emceepee or a session ends, everything it started ends with it."""

import asyncio
import os
import signal

import pytest

from emceepee.app import open_session, session_parts
from emceepee.backends import family
from emceepee.clock import SystemClock
from emceepee.config import Config
from emceepee.errors import ExecutionFailed
from emceepee.guard.visitor import LOCAL
from support.processes import children_of, family_of, is_alive, marked_with, until
from support.recorder import hostile, recorded
from support.waves import SESSIONS, forking, sessions_abandoned_at_start, waves_of_sessions


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_nothing_survives_emceepee_whatever_ends_it(number: signal.Signals) -> None:
    servers = [hostile("one", "--fork", "--ignore-end"), hostile("two", "--fork-away", "--ignore-end")]
    async with recorded(*servers) as emceepee:
        pids = [int(await emceepee.text("pid", name)) for name in ("one", "two")]
        pids += [int(await emceepee.text("fork", away=True, stubborn=True))]
        members = marked_with("EMCEEPEE_FAMILY", family_of(pids[0]))
        assert len(members) == 5
        os.kill(emceepee.pid, number)
        await until(lambda: not any(map(is_alive, members)), within=15, what=f"the end of everyone after {number.name}")


async def test_nothing_survives_when_the_caller_is_gone() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        members = marked_with("EMCEEPEE_FAMILY", family_of(int(await emceepee.text("pid"))))
        assert await emceepee.process.end() == 0
        assert [pid for pid in members if is_alive(pid)] == []


async def test_nothing_survives_a_kill_in_the_middle_of_a_start() -> None:
    async with recorded() as emceepee:
        for name in ("one", "two", "three"):
            await emceepee.value("add_server", **hostile(name))
        mark = family_of(int(await emceepee.text("pid", "one")))
        emceepee.process.send_line(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"reconnect_server",'
            b'"arguments":{"name":"one"}}}'
        )
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: marked_with("EMCEEPEE_FAMILY", mark) == [], within=15, what="the end of everyone")


async def test_a_guardian_that_was_killed_is_replaced_with_the_next_child() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        pid = int(await emceepee.text("pid"))
        mark = family_of(pid)
        os.kill(guardian_of(mark), signal.SIGKILL)
        await until(lambda: not guardians_of(mark), what="the end of the guardian")
        await emceepee.value("add_server", **hostile("two"))
        assert len(guardians_of(mark)) == 1
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: marked_with("EMCEEPEE_FAMILY", mark) == [], within=15, what="the end of everyone")


async def test_a_hundred_sessions_abandoned_in_waves_leave_no_process() -> None:
    assert await waves_of_sessions(2) == 2 * 2 * SESSIONS


async def test_sessions_abandoned_while_their_servers_start_leave_no_process() -> None:
    for _ in range(3):
        await sessions_abandoned_at_start()


async def test_orphans_that_end_while_their_server_runs_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "REAP_SECONDS", 0.05)
    before = set(children_of(os.getpid()))
    async with (
        session_parts(Config(), SystemClock()) as parts,
        open_session("s", LOCAL, parts) as session,
    ):
        await session.add_server(forking("one"))
        for _ in range(20):
            await session.call("one", "tools/call", {"name": "orphan", "arguments": {}}, tool="orphan")
        own = set(children_of(os.getpid())) - before
        await until(lambda: len(set(children_of(os.getpid())) - before) == 2, what="a collection while it runs")
        assert len(own) >= 2


async def test_a_child_that_crashes_at_start_is_never_taken_for_an_orphan() -> None:
    """Its exit code is told, however many others start and end at the same moment."""
    async with session_parts(Config(), SystemClock()) as parts:

        async def crash(number: int) -> str:
            async with open_session(f"s{number}", f"p{number}", parts) as session:
                with pytest.raises(ExecutionFailed) as error:
                    await session.add_server(forking("one", "--crash-at-start"))
                return str(error.value)

        for words in await asyncio.gather(*(crash(number) for number in range(30))):
            assert "exited with code 3; its stderr ends: no key for the lock" in words


def guardians_of(mark: str) -> list[int]:
    """Its guardian is given the mark as an argument, and does not bear it."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words and is_alive(int(entry)):
                found.append(int(entry))
    return found


def guardian_of(mark: str) -> int:
    (pid,) = guardians_of(mark)
    return pid

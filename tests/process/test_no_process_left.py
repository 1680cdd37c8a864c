"""However emceepee or a session ends, everything it started ends with it."""

import os
import signal

import pytest

from support.processes import family_of, is_alive, marked_with, until
from support.recorder import hostile, recorded
from support.waves import SESSIONS, sessions_abandoned_at_start, waves_of_sessions


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_nothing_survives_emceepee_whatever_ends_it(number: signal.Signals) -> None:
    servers = [hostile("one", "--fork", "--ignore-end"), hostile("two", "--fork-away", "--ignore-end")]
    async with recorded(*servers) as emceepee:
        pids = [int(await emceepee.text("pid", name)) for name in ("one", "two")]
        pids += [int(await emceepee.text("fork", away=True, stubborn=True))]
        family = marked_with("EMCEEPEE_FAMILY", family_of(pids[0]))
        assert len(family) == 5
        os.kill(emceepee.pid, number)
        await until(lambda: not any(map(is_alive, family)), within=15, what=f"the end of everyone after {number.name}")


async def test_nothing_survives_when_the_caller_is_gone() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        family = marked_with("EMCEEPEE_FAMILY", family_of(int(await emceepee.text("pid"))))
        assert await emceepee.process.end() == 0
        assert [pid for pid in family if is_alive(pid)] == []


async def test_nothing_survives_a_kill_in_the_middle_of_a_start() -> None:
    async with recorded() as emceepee:
        for name in ("one", "two", "three"):
            await emceepee.value("add_server", **hostile(name))
        family = family_of(int(await emceepee.text("pid", "one")))
        emceepee.process.send_line(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"reconnect_server",'
            b'"arguments":{"name":"one"}}}'
        )
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: marked_with("EMCEEPEE_FAMILY", family) == [], within=15, what="the end of everyone")


async def test_a_guardian_that_was_killed_is_replaced_with_the_next_child() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        pid = int(await emceepee.text("pid"))
        family = family_of(pid)
        os.kill(guardian_of(family), signal.SIGKILL)
        await until(lambda: not guardians_of(family), what="the end of the guardian")
        await emceepee.value("add_server", **hostile("two"))
        assert len(guardians_of(family)) == 1
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: marked_with("EMCEEPEE_FAMILY", family) == [], within=15, what="the end of everyone")


async def test_a_hundred_sessions_abandoned_in_waves_leave_no_process() -> None:
    assert await waves_of_sessions(2) == 2 * 2 * SESSIONS


async def test_sessions_abandoned_while_their_servers_start_leave_no_process() -> None:
    for _ in range(3):
        await sessions_abandoned_at_start()


def guardians_of(family: str) -> list[int]:
    """Its guardian is given the mark as an argument, and does not bear it."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if family.encode() in words and is_alive(int(entry)):
                found.append(int(entry))
    return found


def guardian_of(family: str) -> int:
    (pid,) = guardians_of(family)
    return pid

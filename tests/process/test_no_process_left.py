"""All child processes end with emceepee or their session, in every way that these end."""

import asyncio
import os
import signal

import pytest

from emceepee.app.session_parts import open_session, session_parts
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.errors import ExecutionFailed
from emceepee.guard.caller_identity import LOCAL
from support.callers.recorder import hostile, recorded
from support.faults.session_waves import SESSIONS, forking, sessions_abandoned_at_start, waves_of_sessions
from support.system.processes import below, children_of, guardians_of, is_alive, is_guardian, servers_of, until


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
async def test_no_child_process_survives_any_end_of_emceepee(number: signal.Signals) -> None:
    servers = [hostile("one", "--fork", "--ignore-end"), hostile("two", "--fork-away", "--ignore-end")]
    async with recorded(*servers) as emceepee:
        pids = [int(await emceepee.text("pid", name)) for name in ("one", "two")]
        pids += [int(await emceepee.text("fork", away=True, stubborn=True))]
        pids += [int(await emceepee.text("daemon", name)) for name in ("one", "two")]
        members = servers_of(emceepee.pid)
        assert set(pids) < set(members)
        assert len(members) == 7
        members += guardians_of(emceepee.pid)
        os.kill(emceepee.pid, number)
        await until(lambda: not any(map(is_alive, members)), within=15, what=f"the end of everyone after {number.name}")


async def test_a_background_process_ends_with_the_server_that_started_it_and_not_with_another() -> None:
    async with recorded(hostile("one"), hostile("two")) as emceepee:
        ones, twos = [int(await emceepee.text("daemon", name)) for name in ("one", "two")]
        await emceepee.value("remove_server", name="one")
        assert (is_alive(ones), is_alive(twos)) == (False, True)
        await emceepee.value("reconnect_server", name="two")
        assert not is_alive(twos)


async def test_no_child_process_survives_the_exit_of_the_caller() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        daemon = int(await emceepee.text("daemon"))
        members = below(emceepee.pid)
        assert daemon in members
        assert await emceepee.process.end() == 0
        assert [pid for pid in members if is_alive(pid)] == []


async def test_no_child_process_survives_a_kill_during_a_start() -> None:
    async with recorded() as emceepee:
        for name in ("one", "two", "three"):
            await emceepee.value("add_server", **hostile(name))
        members = below(emceepee.pid)
        [guardian] = [pid for pid in children_of(emceepee.pid) if is_guardian(pid)]
        emceepee.process.send_line(
            b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"reconnect_server",'
            b'"arguments":{"name":"one"}}}'
        )
        os.kill(emceepee.pid, signal.SIGKILL)
        # A process that starts in between is a child of the guardian, which ends last.
        await until(lambda: not is_alive(guardian), within=15, what="the end of the guardian")
        assert [pid for pid in members if is_alive(pid)] == []


async def test_a_killed_guardian_is_replaced_at_the_next_child_process() -> None:
    async with recorded(hostile("one", "--fork-away")) as emceepee:
        pid = int(await emceepee.text("pid"))
        members = below(emceepee.pid)
        [guardian] = children_of(emceepee.pid)
        os.kill(guardian, signal.SIGKILL)
        await until(lambda: not is_alive(guardian), what="the end of the guardian")
        assert int(await emceepee.text("pid")) == pid
        await emceepee.value("add_server", **hostile("two"))
        members += below(emceepee.pid)
        assert len(servers_of(emceepee.pid)) == 1
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: not any(map(is_alive, members)), within=15, what="the end of everyone")


async def test_a_server_whose_guardian_was_killed_is_stopped_and_restarted() -> None:
    """Its children end at the latest with emceepee."""
    async with recorded(hostile("one")) as emceepee:
        pid, daemon = int(await emceepee.text("pid")), int(await emceepee.text("daemon"))
        [keeper] = [found for found in guardians_of(emceepee.pid) if pid in children_of(found)]
        os.kill(keeper, signal.SIGKILL)
        await emceepee.until("server_reconnected")
        assert not is_alive(pid)
        assert int(await emceepee.text("pid")) != pid
        os.kill(emceepee.pid, signal.SIGKILL)
        await until(lambda: not is_alive(daemon), within=15, what="the end of the daemon")


async def test_a_hundred_sessions_abandoned_in_waves_leave_no_process() -> None:
    assert await waves_of_sessions(2) == 2 * 2 * SESSIONS


async def test_sessions_abandoned_while_their_servers_start_leave_no_process() -> None:
    for _ in range(3):
        await sessions_abandoned_at_start()


async def test_orphans_that_exit_while_their_server_runs_are_reaped() -> None:
    async with session_parts(Config(), SystemClock()) as parts, open_session("s", LOCAL, parts) as session:
        connection = await session.servers.add(forking("one"))
        pid = int((connection.process or {})["pid"])
        [keeper] = [found for found in guardians_of(os.getpid()) if pid in children_of(found)]
        for _ in range(20):
            await session.call("one", "tools/call", {"name": "orphan", "arguments": {}}, tool="orphan")
        await until(lambda: children_of(keeper) == [pid], what="a collection while it runs")


async def test_a_child_that_crashes_at_start_is_never_taken_for_an_orphan() -> None:
    """Its exit code is reported even while many others start and end."""
    async with session_parts(Config(), SystemClock()) as parts:

        async def crash(number: int) -> str:
            async with open_session(f"s{number}", f"p{number}", parts) as session:
                with pytest.raises(ExecutionFailed) as error:
                    await session.servers.add(forking("one", "--crash-at-start"))
                return str(error.value)

        for words in await asyncio.gather(*(crash(number) for number in range(30))):
            assert "exited with code 3; its stderr: no key for the lock" in words

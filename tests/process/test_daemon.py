"""Callers on standard input that share a daemon: discovery, start, checks, loss, and recovery."""

import asyncio
import os
import shutil
import signal
import stat
import time
from pathlib import Path

from emceepee import __version__
from emceepee.daemon.daemon_folder import folder_problem, peer_problem
from support.callers.attached_callers import Home, home, said
from support.callers.emceepee_process import BOUND
from support.figures import record_figure
from support.programs import outdated_emceepee
from support.programs.outdated_emceepee import OTHER_VERSION
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import children_of, is_alive, memory_of, servers_of, until

OUTDATED = (outdated_emceepee.__file__,)
ANSWER_SECONDS = 5.0  # not how fast it is, which is recorded, but that nothing waits for a timer


async def test_the_first_caller_starts_the_daemon_and_the_others_find_it() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as first:
        await first.initialize()
        pid = user.daemon
        begun = time.monotonic()
        async with user.attached() as second:
            await second.initialize()
            record_figure(f"the first answer through a running daemon comes after {time.monotonic() - begun:.2f} s")
            assert time.monotonic() - begun < ANSWER_SECONDS
            assert user.daemon == pid is not None
            result = await second.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            assert not result.get("isError")
            assert await second.end() == 0
        record_figure(f"a caller that only attaches takes {memory_of(first.process.pid) >> 20} MB")


async def test_concurrent_callers_start_one_daemon() -> None:
    async with home() as user:
        pids = await asyncio.gather(*(_daemon_of_a_caller(user) for _ in range(4)))
        assert len(set(pids)) == 1


async def _daemon_of_a_caller(user: Home) -> int | None:
    async with user.attached() as caller:
        await caller.initialize()
        await caller.value("list_servers")
        return user.daemon


async def test_the_daemon_socket_is_closed_to_other_users() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        assert stat.S_IMODE(user.place.stat().st_mode) == 0o700
        assert {stat.S_IMODE(found.stat().st_mode) for found in user.place.iterdir()} == {0o600}


async def test_a_socket_folder_that_is_open_to_other_users_is_not_used() -> None:
    async with home() as user:
        user.place.mkdir()
        user.place.chmod(0o755)
        async with user.attached(way="require") as caller:
            assert await asyncio.wait_for(caller.process.wait(), BOUND) == 2
            assert "is open to other users (mode 0755)" in await said(caller)


def test_a_daemon_socket_of_another_user_is_not_used() -> None:
    assert peer_problem(1000, own=1000) is None
    assert peer_problem(0, own=1000) == "a process of another user (uid 0) is the peer of the socket"
    assert "does not report" in str(peer_problem(None, own=1000))
    assert folder_problem(stat.S_IFDIR | 0o700, 1000, own=1000) is None
    assert folder_problem(stat.S_IFDIR | 0o700, 1001, own=1000) == "belongs to another user (uid 1001)"
    assert folder_problem(stat.S_IFLNK | 0o700, 1000, own=1000) == "is not a directory"


async def test_sessions_of_two_callers_of_the_daemon_are_separate() -> None:
    async with home() as user, user.attached() as one, user.attached() as two:
        await one.initialize()
        await two.initialize()
        timer = await one.value("set_timer", duration_ms=3_600_000, message="mine")
        assert (await two.value("list_timers"))["timers"] == []
        error = await two.error("get_timer", timer_id=timer["timerId"])
        assert error["code"] == "ERR_TIMER_NOT_FOUND"


async def test_a_caller_with_another_configuration_runs_without_the_daemon_and_reports_it() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as first:
        await first.initialize()
        async with user.attached("--notices", "blocks") as other:
            await other.initialize()
            words = await said(other)
            assert "runs without the daemon" in words
            assert f"kill {user.daemon}" in words
            assert [server["name"] for server in (await other.value("list_servers"))["servers"]] == ["one"]
        async with user.attached(way="require", env={"EMCEEPEE_CONFIG": ""}) as other:
            assert await asyncio.wait_for(other.process.wait(), BOUND) == 2
            assert "has another configuration" in await said(other)


async def test_a_caller_of_another_version_runs_without_the_daemon_and_reports_it() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as first:
        await first.initialize()
        async with user.attached(entry=OUTDATED) as other:
            opened = await other.initialize()
            assert opened["result"]["serverInfo"]["version"] == OTHER_VERSION
            words = await said(other)
            assert "runs without the daemon" in words
            assert f"is emceepee {__version__}, and this is {OTHER_VERSION}" in words
            assert f"kill {user.daemon}" in words
            result = await other.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            assert not result.get("isError")
            assert servers_of(other.process.pid)
        async with user.attached(way="require", entry=OUTDATED) as other:
            assert await asyncio.wait_for(other.process.wait(), BOUND) == 2
            assert f"and this is {OTHER_VERSION}" in await said(other)


async def test_a_variable_in_the_configuration_distinguishes_callers_of_the_daemon(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"mcpServers": {"one": {"url": "http://127.0.0.1:9/${TENANT}"}}}')
    async with home() as user:
        user.env |= {"EMCEEPEE_CONFIG": str(file), "TENANT": "red"}
        async with user.attached() as first:
            await first.initialize()
            async with user.attached(env={"TENANT": "blue"}) as other:
                await other.initialize()
                assert "has another configuration" in await said(other)


async def test_a_caller_that_requires_a_daemon_exits_without_one() -> None:
    async with home() as user, user.attached(way="require") as caller:
        assert await asyncio.wait_for(caller.process.wait(), BOUND) == 2
        assert "none is running" in await said(caller)


async def test_a_killed_daemon_is_restarted_and_the_session_continues() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as caller:
        await caller.initialize()
        timer = await caller.value("set_timer", duration_ms=3_600_000, message="still there")
        await caller.value("list_tools")  # connects the server, whose events would end the wait below
        while (await caller.value("await_activity", timeout_ms=500))["triggers"] != [{"type": "timeout"}]:
            pass
        waiting = asyncio.ensure_future(caller.request("tools/call", {"name": "await_activity", "arguments": {}}))
        # The first is sent before the task above runs. The answer to the second shows that the wait has arrived.
        for _ in range(2):
            await caller.value("list_servers")
        killed = user.kill_daemon()
        answer = await waiting
        assert "daemon ended while this request was in flight" in answer["error"]["message"]
        assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "still there"
        assert user.daemon not in (None, killed)
        assert not caller.heard  # the handshake that was repeated is nobody's affair


async def test_a_stopping_daemon_leaves_its_sessions_to_the_next() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        timer = await caller.value("set_timer", duration_ms=3_600_000, message="still there")
        stopped = user.kill_daemon(signal.SIGTERM)
        await until(lambda: not is_alive(stopped), what="the daemon has ended")
        assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "still there"


async def test_a_call_to_a_stopping_daemon_is_made_by_the_next_one() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        activity = {"name": "await_activity", "arguments": {}}
        waiting = asyncio.ensure_future(caller.request("tools/call", activity))  # for which it stops slowly
        await caller.value("list_servers")  # so the one before it has arrived
        stopped = user.kill_daemon(signal.SIGTERM)
        await until(lambda: not (user.place / "daemon.sock").exists(), what="the daemon is not to be found any more")
        timer = await caller.value("set_timer", duration_ms=3_600_000, message="late")
        await waiting
        assert user.daemon not in (None, stopped)
        assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "late"


async def test_a_client_that_connects_while_a_daemon_stops_gets_the_next_daemon() -> None:
    async with home({"one": stdio_server("deaf")}) as user, user.attached() as first:
        await first.initialize()
        await first.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
        ending = user.kill_daemon(signal.SIGTERM)
        await until(lambda: not (user.place / "daemon.sock").exists(), what="the daemon is not to be found any more")
        assert is_alive(ending)  # its server does not hear that it is to end
        async with user.attached() as second:
            await asyncio.gather(second.initialize(), first.value("list_servers"))
            await second.end()
            assert second.process.stderr is not None
            assert await second.process.stderr.read() == b""  # it does not work by itself
        assert user.daemon not in (None, ending)


async def test_a_second_daemon_of_a_user_reports_the_first_one_at_once() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        async with user.attached("daemon", way="never") as second:
            assert await asyncio.wait_for(second.process.wait(), BOUND) == 2
            assert "a daemon of this user is running already" in await said(second)


async def test_a_killed_caller_of_the_daemon_leaves_nothing_behind() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as caller:
        await caller.initialize()
        await caller.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
        pid = user.daemon
        assert pid is not None
        (server,) = servers_of(pid)
        os.kill(caller.process.pid, signal.SIGKILL)
        await until(lambda: not is_alive(server), what="its server has ended")
        async with user.attached() as other:
            await other.initialize()
            assert user.daemon == pid


async def test_a_caller_whose_working_directory_was_removed_finds_the_next_daemon() -> None:
    async with home({"one": stdio_server()}) as user:
        folder = user.runtime.parent / "project"
        folder.mkdir()
        async with user.attached(command=("env", "-C", str(folder))) as caller:
            await caller.initialize()
            folder.rmdir()
            killed = user.kill_daemon()
            await said(caller)
            assert [server["name"] for server in (await caller.value("list_servers"))["servers"]] == ["one"]
            assert user.daemon not in (None, killed)


async def test_a_caller_that_cannot_reach_the_daemon_reports_it_and_retries_on_the_next_request() -> None:
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        user.kill_daemon()
        await said(caller)
        shutil.rmtree(user.place)
        user.place.touch()  # so that no folder can be made there
        for _ in range(2):
            answer = await caller.request("tools/list", {})
            assert "no daemon can be reached" in answer["error"]["message"]
        user.place.unlink()
        assert (await caller.value("list_servers"))["servers"] == []
        assert stat.S_IMODE(user.place.stat().st_mode) == 0o700


async def test_the_daemon_writes_files_relative_to_the_directory_of_the_caller() -> None:
    async with home({"one": stdio_server() | {"record": "calls.jsonl"}}) as user:
        folder = user.runtime.parent / "project"  # where the daemon does not stay
        folder.mkdir()
        flags = ("--audit-log", "audit.jsonl", "--log-file", "log.txt", "--link-file", "link", "--console", "0")
        async with user.attached(*flags, command=("env", "-C", str(folder))) as caller:
            await caller.initialize()
            await caller.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            names = {"audit.jsonl", "log.txt", "link", "calls.jsonl"}
            await until(lambda: {file.name for file in folder.iterdir() if file.stat().st_size} == names)
        assert not names & {file.name for file in user.runtime.parent.iterdir()}


async def test_an_unused_daemon_exits_with_everything_it_started() -> None:
    async with home({"one": stdio_server()}) as user:
        async with user.attached(idle=1) as caller:
            await caller.initialize()
            await caller.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            pid = user.daemon
            assert pid is not None
            family = [pid, *servers_of(pid), *children_of(pid)]
            await caller.end()
        await until(lambda: not any(map(is_alive, family)), within=10, what="daemon and server have ended")
        assert not (user.place / "daemon.sock").exists()


async def test_a_named_session_is_resumed_by_the_next_caller_of_the_daemon() -> None:
    async with home() as user:
        async with user.attached("--session", "mine") as caller:
            await caller.initialize()
            timer = await caller.value("set_timer", duration_ms=3_600_000, message="kept")
            await caller.end()
        async with user.attached("--session", "mine") as caller:
            await caller.initialize()
            assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "kept"


async def test_the_daemon_serves_a_caller_of_the_newest_protocol_version() -> None:
    async with home({"one": stdio_server()}) as user, user.attached() as caller:
        await caller.initialize("2026-07-28")
        await caller.value("list_servers")
        user.kill_daemon()
        await said(caller)
        assert [server["name"] for server in (await caller.value("list_servers"))["servers"]] == ["one"]


async def test_the_daemon_shows_its_console_link_on_request() -> None:
    async with home() as user, user.attached("--console", "0") as caller:
        await caller.initialize()
        words = await said(caller)
        assert words.startswith("emceepee console at http://127.0.0.1:") or "console-link" in words

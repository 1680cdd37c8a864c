"""The configuration file of a daemon is edited during use, and callers still find the daemon."""

import os
import signal
from collections.abc import AsyncIterator

import pytest

from support.callers.attached_callers import Home, home, said
from support.callers.emceepee_process import EmceepeeProcess
from support.callers.http_process import until
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import environment_of, servers_of

ONE, SHARED = stdio_server(), stdio_server() | {"sharing": "shared"}


@pytest.fixture
async def user() -> AsyncIterator[Home]:
    async with home() as made:
        made.write_config({"one": SHARED})
        yield made


async def names(caller: EmceepeeProcess) -> list[str]:
    return [server["name"] for server in (await caller.value("list_servers"))["servers"]]


async def echo(caller: EmceepeeProcess, server: str) -> None:
    result = await caller.call("execute_tool", server=server, tool="echo", args={"text": "hello"})
    assert not result.get("isError"), result


async def test_a_configuration_edit_reaches_connected_callers_and_unchanged_servers_continue(user: Home) -> None:
    async with user.attached() as caller:
        await caller.initialize()
        await echo(caller, "one")
        pid = user.daemon
        assert pid is not None
        (server,) = servers_of(pid)
        user.write_config({"one": SHARED, "two": ONE})

        async def is_known() -> bool:
            return await names(caller) == ["one", "two"]

        await until(is_known, "the new server is there")
        await echo(caller, "two")
        assert server in servers_of(pid)
        assert user.daemon == pid


async def test_a_caller_right_after_a_configuration_edit_finds_the_daemon_with_the_new_servers(user: Home) -> None:
    async with user.attached() as first:
        await first.initialize()
        pid = user.daemon
        user.write_config({"one": SHARED, "two": ONE})
        async with user.attached(way="require") as second:
            await second.initialize()
            assert await names(second) == ["one", "two"]
            await echo(second, "two")
            assert await names(first) == ["one", "two"]
            assert user.daemon == pid


async def test_a_changed_secret_reaches_its_server_with_the_next_caller_and_no_other_server(user: Home) -> None:
    secret = user.runtime.parent / "token"
    secret.write_text("old")
    user.write_config({"one": SHARED | {"env": {"TOKEN": f"${{file:{secret}}}"}}, "two": SHARED})

    def tokens() -> dict[int, str | None]:
        assert user.daemon is not None
        return {pid: environment_of(pid).get("TOKEN") for pid in servers_of(user.daemon)}

    async with user.attached() as first:
        await first.initialize()
        await echo(first, "one")
        await echo(first, "two")
        before = tokens()
        assert sorted(before.values(), key=str) == [None, "old"]
        secret.write_text("new")
        async with user.attached(way="require") as second:
            await second.initialize()
            await echo(second, "one")
            await echo(first, "one")
            after = tokens()
            assert sorted(after.values(), key=str) == [None, "new"]
            (untouched,) = before.keys() & after.keys()
            assert after[untouched] is None


async def test_an_invalid_configuration_file_leaves_the_daemon_unchanged_and_new_callers_see_the_error(
    user: Home,
) -> None:
    async with user.attached() as first:
        await first.initialize()
        pid = user.daemon
        file = user.write_config({})
        file.write_text('{"mcpServers": {')
        async with user.attached(way="require") as second:
            await second.initialize()
            words = await said(second)
            assert "uses the previous configuration; the current one is invalid" in words
            assert str(file) in words
            assert (user.daemon, await names(second)) == (pid, ["one"])
            assert "configurationProblem" in await second.value("list_servers")
        user.write_config({"two": ONE})
        async with user.attached(way="require") as third:
            await third.initialize()
            assert (user.daemon, await names(third)) == (pid, ["two"])


async def test_a_change_that_needs_a_restart_of_the_daemon_is_reported_to_new_callers(user: Home) -> None:
    async with user.attached() as first:
        await first.initialize()
        user.write_config({"one": SHARED}, stateSync="full")
        async with user.attached(way="require") as second:
            await second.initialize()
            words = await said(second)
            assert "was started before a change of stateSync" in words
            assert f"kill {user.daemon}" in words


async def test_a_caller_from_before_a_configuration_edit_continues_after_the_daemon_was_killed(user: Home) -> None:
    async with user.attached() as caller:
        await caller.initialize()
        timer = await caller.value("set_timer", duration_ms=3_600_000, message="still there")
        user.write_config({"one": SHARED, "two": ONE})
        killed = user.kill_daemon()
        await said(caller)
        assert await names(caller) == ["one", "two"]
        assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "still there"
        assert user.daemon not in (None, killed)


async def test_a_daemon_that_does_not_watch_its_file_reads_it_on_a_signal(user: Home) -> None:
    async with user.attached("--no-reload") as first:
        await first.initialize()
        pid = user.daemon
        assert pid is not None
        user.write_config({"two": ONE})
        async with user.attached("--no-reload") as second:
            await second.initialize()
            assert "has another configuration" in await said(second)
            assert (await names(first), await names(second)) == (["one"], ["two"])
        os.kill(pid, signal.SIGUSR1)

        async def is_known() -> bool:
            return await names(first) == ["two"]

        await until(is_known, "it was read")
        async with user.attached("--no-reload", way="require") as third:
            await third.initialize()
            assert await names(third) == ["two"]


async def test_a_configuration_file_with_a_relative_path_is_watched_from_any_directory(user: Home) -> None:
    folder = user.runtime.parent / "project"  # where the daemon does not stay
    folder.mkdir()
    file = user.write_config({"one": SHARED}).rename(folder / "own.json")
    command, arguments = ("env", "-C", str(folder)), ("--config", file.name, "--root", ".")
    async with user.attached(*arguments, command=command) as first:
        await first.initialize()
        pid = user.daemon
        user.write_config({"one": SHARED, "two": ONE}).replace(file)
        async with user.attached(*arguments, command=command, way="require") as second:
            await second.initialize()
            assert (user.daemon, await names(second)) == (pid, ["one", "two"])
            await second.end()
            assert second.process.stderr is not None
            assert await second.process.stderr.read() == b""  # the root is not another one either

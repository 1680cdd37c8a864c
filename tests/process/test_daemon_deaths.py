"""A daemon with shared servers or one of its callers is killed: errors, continued calls, and cleanup."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.attached_callers import Home, home
from support.callers.emceepee_process import BOUND, EmceepeeProcess
from support.callers.http_process import until as until_true
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import below, is_alive, servers_of, until

CALLERS = 3
DEATHS = 3
STOPPED_SECONDS = 0.1  # mostly enough for a request to be written; if not, the next daemon is found before it is
SHARED = {"sharing": "shared"}


@pytest.fixture
async def backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        yield running


@pytest.fixture
async def user(backend: WebBackend) -> AsyncIterator[Home]:
    programs = {name: stdio_server() | SHARED for name in ("one", "two")}
    async with home(programs | {"web": {"url": backend.url, **SHARED}}) as made:
        yield made


def begin_wait(caller: EmceepeeProcess) -> "asyncio.Future[dict[str, Any]]":
    arguments = {"server": "web", "tool": "wait", "args": {}}
    return asyncio.ensure_future(caller.request("tools/call", {"name": "execute_tool", "arguments": arguments}))


async def use_programs(caller: EmceepeeProcess) -> None:
    for server in ("one", "two"):
        result = await caller.call("execute_tool", server=server, tool="echo", args={"text": "hello"})
        assert not result.get("isError"), result


async def sessions_kept(user: Home) -> int:
    """How many sessions the state has."""
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "state", "--json", "--state", "sqlite"),
        env={**os.environ, **user.env},
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await asyncio.wait_for(asking.communicate(), BOUND)
    return int(json.loads(said)["sessions"])


async def test_after_a_kill_of_the_daemon_every_caller_gets_an_error_and_continues_with_one_new_daemon(
    user: Home, backend: WebBackend
) -> None:
    async with AsyncExitStack() as stack:
        callers = [await stack.enter_async_context(user.attached()) for _ in range(CALLERS)]
        timers = []
        for caller in callers:
            await caller.initialize()
            await use_programs(caller)
            timers.append(await caller.value("set_timer", duration_ms=3_600_000, message="still there"))
        under_way = [begin_wait(caller) for caller in callers]
        for _ in callers:
            await backend.next_call()
        assert len(backend.sessions) == 1
        pid = user.daemon
        assert pid is not None
        assert len(servers_of(pid)) == 2
        family = below(pid)
        user.kill_daemon()
        for answer in await asyncio.gather(*under_way):
            assert "daemon ended while this request was in flight" in answer["error"]["message"]
        await until(lambda: not any(map(is_alive, family)), what="its servers have ended")

        await asyncio.gather(*(use_programs(caller) for caller in callers))
        new = user.daemon
        assert new not in (None, pid)
        assert new is not None
        assert len(servers_of(new)) == 2
        for caller, timer in zip(callers, timers, strict=True):
            assert (await caller.value("get_timer", timer_id=timer["timerId"]))["message"] == "still there"
        assert len(backend.calls) == CALLERS  # none was sent again


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the kernel does not say what was not read")
async def test_a_call_that_a_killed_daemon_did_not_read_is_made_by_the_next_one() -> None:
    """A death takes milliseconds, in which callers still write. A suspended daemon reads nothing."""
    async with home() as user, user.attached() as caller:
        await caller.initialize()
        await caller.value("list_timers")
        timer = {"name": "set_timer", "arguments": {"duration_ms": 3_600_000, "message": "still there"}}
        answers: list[dict[str, Any]] = []
        for _ in range(DEATHS):
            user.kill_daemon(signal.SIGSTOP)
            both = [asyncio.ensure_future(caller.request(*one)) for one in (("tools/list", {}), ("tools/call", timer))]
            assert not (await asyncio.wait(both, timeout=STOPPED_SECONDS))[0]
            user.kill_daemon()
            answers += await asyncio.gather(*both)
        failed = sum("error" in answer for answer in answers)
        record_figure(f"of {len(answers)} requests that a daemon did not read before its death, {failed} fail")
        assert failed == 0
        assert len((await caller.value("list_timers"))["timers"]) == DEATHS


async def test_a_caller_killed_during_a_call_leaves_neither_session_nor_call_behind(
    user: Home, backend: WebBackend
) -> None:
    async with user.attached() as killed, user.attached() as other:
        for caller in (killed, other):
            await caller.initialize()
            await use_programs(caller)
        assert await sessions_kept(user) == 2
        begin_wait(killed)
        call = await backend.next_call()
        going_on = begin_wait(other)
        others = await backend.next_call()
        pid = user.daemon
        assert pid is not None
        before = servers_of(pid)
        os.kill(killed.process.pid, signal.SIGKILL)
        await asyncio.wait_for(call.was_dropped.wait(), BOUND)

        async def is_forgotten() -> bool:
            return await sessions_kept(user) == 1

        await until_true(is_forgotten, "its session is not kept")
        assert not others.was_dropped.is_set()
        others.finish("for the other one")
        assert (await going_on)["result"]["content"][0]["text"] == "for the other one"
        assert (user.daemon, servers_of(pid)) == (pid, before)


async def test_an_unused_daemon_releases_every_shared_server(user: Home, backend: WebBackend) -> None:
    async with user.attached(idle=1) as one, user.attached(idle=1) as two:
        for caller in (one, two):
            await caller.initialize()
            await use_programs(caller)
            await caller.call("execute_tool", server="web", tool="echo", args={"text": "hello"})
        pid = user.daemon
        assert pid is not None
        family = [pid, *below(pid)]
        await one.end()
        await two.end()
    await until(lambda: not any(map(is_alive, family)), within=11, what="daemon and servers have ended")
    assert not backend.sessions  # the server at the url was notified
    assert not (user.place / "daemon.sock").exists()

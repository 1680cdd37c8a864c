"""`emceepee --state sqlite`: the data that a caller on standard input finds at its next start."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.callers.http_process import http_process
from support.server_programs.stdio_entries import stdio_server
from support.waiting import eventually

SERVER = stdio_server()


async def servers_of(caller: Any) -> list[str]:
    return [server["name"] for server in (await caller.value("list_servers"))["servers"]]


async def kill(running: EmceepeeProcess) -> None:
    running.process.kill()
    await running.process.wait()


@pytest.fixture
def state(tmp_path: Path) -> tuple[str, str]:
    return "--state", f"sqlite:{tmp_path / 'own' / 'state.db'}"


async def test_an_added_server_is_available_at_the_next_start(state: tuple[str, str]) -> None:
    async with emceepee(*state) as first:
        await first.initialize()
        await first.value("add_server", name="kept", **SERVER)
        assert await first.end() == 0
    async with emceepee(*state) as second:
        await second.initialize()
        assert await servers_of(second) == ["kept"]
        assert not (await second.call("list_tools", server="kept")).get("isError")
        await second.value("remove_server", name="kept")
    async with emceepee(*state) as third:
        await third.initialize()
        assert await servers_of(third) == []


async def test_without_the_state_flag_nothing_is_stored(tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path)}
    async with emceepee(env=env) as first:
        await first.initialize()
        await first.value("add_server", name="lost", **SERVER)
        assert await first.end() == 0
    async with emceepee(env=env) as second:
        await second.initialize()
        assert await servers_of(second) == []
    assert os.listdir(tmp_path) == []


async def test_servers_added_before_a_kill_are_available_at_the_next_start(state: tuple[str, str]) -> None:
    async with emceepee(*state) as first:
        await first.initialize()
        await first.value("add_server", name="kept", **SERVER)
        await kill(first)
    async with emceepee(*state) as second:
        await second.initialize()
        assert await servers_of(second) == ["kept"]


async def test_servers_are_shared_with_serve_in_both_directions(state: tuple[str, str]) -> None:
    async with emceepee(*state) as one, http_process(*state) as endpoint:
        await one.initialize()
        other = await endpoint.caller()
        await one.value("add_server", name="from-stdio", **SERVER)
        await other.value("add_server", name="from-http", **SERVER)

        async def both_have_both() -> bool:
            wanted = {"from-stdio", "from-http"}
            return set(await servers_of(one)) == set(await servers_of(other)) == wanted

        await eventually(both_have_both, what="each has the other's server")
        await other.value("remove_server", name="from-stdio")

        async def is_gone() -> bool:
            return await servers_of(one) == ["from-http"]

        await eventually(is_gone, what="it is removed here too")


async def test_a_named_session_is_resumed_after_a_kill(state: tuple[str, str]) -> None:
    named = (*state, "--session", "mine")
    async with emceepee(*named) as first:
        await first.initialize()
        timer = await first.value("set_timer", duration_ms=3_600_000, message="Tea.")
        await kill(first)
    async with emceepee(*named) as second:
        await second.initialize()
        [kept] = [each for each in (await second.value("list_timers"))["timers"] if each["timerId"] == timer["timerId"]]
        assert (kept["message"], kept["expiresAt"]) == ("Tea.", timer["expiresAt"])


async def test_a_timer_due_during_the_downtime_fires_once(state: tuple[str, str]) -> None:
    named = (*state, "--session", "mine")
    async with emceepee(*named) as first:
        await first.initialize()
        timer = await first.value("set_timer", duration_ms=1500, message="Late.")
        await kill(first)
    fired: list[str] = []
    for _ in range(2):
        async with emceepee(*named) as again:
            await again.initialize()
            timeout = 100 if fired else 20_000
            activity = await again.value("await_activity", timeout_ms=timeout)
            events = [event for group in activity["events"] for event in group["events"]]
            fired += [event["data"]["timerId"] for event in events if event["type"] == "timer_expired"]
            assert await again.end() == 0
    assert fired == [timer["timerId"]]


async def test_another_session_name_opens_another_session_and_no_name_a_new_one(state: tuple[str, str]) -> None:
    async with emceepee(*state, "--session", "mine") as first:
        await first.initialize()
        await first.value("set_timer", duration_ms=3_600_000, message="Tea.")
        assert await first.end() == 0
    for flags in (("--session", "other"), ()):
        async with emceepee(*state, *flags) as another:
            await another.initialize()
            assert (await another.value("list_timers"))["timers"] == []


async def test_a_session_name_opens_the_same_session_in_serve(state: tuple[str, str]) -> None:
    async with emceepee(*state, "--session", "mine") as first:
        await first.initialize()
        timer = await first.value("set_timer", duration_ms=3_600_000, message="Tea.")
        assert await first.end() == 0
    async with http_process(*state) as endpoint:
        [kept] = (await endpoint.modern(emceepee_session="mine").value("list_timers"))["timers"]
        assert kept["timerId"] == timer["timerId"]


async def test_concurrent_processes_of_a_client_take_turns_in_the_named_session(state: tuple[str, str]) -> None:
    """Some clients start emceepee per call, and make several calls at the same time."""

    async def set_a_timer(number: int) -> str:
        async with emceepee(*state, "--session", "mine") as caller:
            await caller.initialize()
            timer = await caller.value("set_timer", duration_ms=3_600_000, message=f"Tea {number}.")
            assert await caller.end() == 0
            return str(timer["timerId"])

    made = await asyncio.gather(*map(set_a_timer, range(3)))
    async with emceepee(*state, "--session", "mine") as last:
        await last.initialize()
        kept = [timer["timerId"] for timer in (await last.value("list_timers"))["timers"]]
    assert sorted(kept) == sorted(made)


async def test_a_named_session_that_another_process_holds_is_refused_in_one_line(state: tuple[str, str]) -> None:
    named = (*state, "--session", "mine")
    async with emceepee(*named) as first:
        await first.initialize()
        await first.value("set_timer", duration_ms=3_600_000, message="Tea.")
        async with emceepee(*named, stderr=asyncio.subprocess.PIPE) as second:
            assert second.process.stderr is not None
            said = (await second.process.stderr.read()).decode()
            assert await second.process.wait() == 2
        assert said.startswith("emceepee: Another emceepee process that uses ")
        assert "--attach auto --session NAME" in said
        assert said.count("\n") == 1
        assert len((await first.value("list_timers"))["timers"]) == 1

"""Two servers of one user share a state: added servers are common, and each session has one holder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller, ModernCaller
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.waiting import eventually


@pytest_asyncio.fixture
async def other(endpoint: RestartableProcess, tmp_path: Path) -> AsyncIterator[RestartableProcess]:
    async with restartable_process(tmp_path) as running:
        yield running


def elsewhere(caller: HttpCaller, endpoint: RestartableProcess) -> HttpCaller:
    """The caller's request to another server."""
    moved = ModernCaller(endpoint, {}) if isinstance(caller, ModernCaller) else HttpCaller(endpoint, {})
    moved.headers |= caller.headers
    return moved


async def names(caller: HttpCaller) -> list[str]:
    return [server["name"] for server in (await caller.value("list_servers"))["servers"]]


async def test_servers_added_or_removed_in_one_process_appear_or_disappear_in_the_other(
    endpoint: RestartableProcess, other: RestartableProcess, backend: CountingBackend
) -> None:
    here, there = await endpoint.caller(), await other.caller()
    assert await names(there) == []

    async def are(*wanted: str) -> bool:
        return await names(there) == list(wanted)

    await here.value("add_server", name="one", url=backend.url)
    await eventually(lambda: are("one"), what="the other has the server")
    result = await there.call("execute_tool", server="one", tool="echo", args={"id": "there", "text": "there"})
    assert result["content"][0]["text"] == "there"
    error = await there.error("add_server", name="one", url=backend.url + "?another")
    assert 'in use by a server with another configuration: "tests 1" added it at 20' in error["message"]
    assert here.headers["mcp-session-id"] not in error["message"]
    await here.value("remove_server", name="one")
    await eventually(are, what="the other has it no more")

    async def heard() -> list[str]:
        events = await there.value("await_activity", last_event_id="all")
        return [event["type"] for group in events["events"] for event in group["events"]]

    async def is_told() -> bool:  # once its connection is closed
        return await heard() == ["server_added", "server_connected", "server_removed"]

    await eventually(is_told, what="its caller has the answer")


async def test_the_session_of_one_process_is_served_by_the_other_even_after_a_kill(
    endpoint: RestartableProcess, other: RestartableProcess
) -> None:
    caller, modern = await endpoint.caller(), endpoint.modern()
    handle = {"session": (await modern.value("open_session"))["session"]}
    await caller.value("set_timer", duration_ms=60_000, message="by id")
    await modern.value("set_timer", duration_ms=60_000, message="by handle", **handle)
    moved, moved_modern = elsewhere(caller, other), elsewhere(modern, other)
    for is_killed in (False, True):
        if is_killed:
            await endpoint.kill()
        (timer,) = (await moved.value("list_timers"))["timers"]
        assert timer["message"] == "by id"
        (timer,) = (await moved_modern.value("list_timers", **handle))["timers"]
        assert timer["message"] == "by handle"


async def test_a_timer_of_a_killed_server_fires_in_the_other_process(
    endpoint: RestartableProcess, other: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    await caller.value("set_timer", duration_ms=100, message="soon")
    await endpoint.kill()
    activity = await elsewhere(caller, other).value("await_activity", timeout_ms=20_000)
    ((event,),) = [group["events"] for group in activity["events"]]
    assert (event["type"], event["data"]["message"]) == ("timer_expired", "soon")

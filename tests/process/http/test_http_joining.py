"""Callers of the handshake era that name a session at initialize: they join it, for any number of connections."""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from support.backends.web_backend import WebBackend
from support.callers.http_process import BOUND, HttpCaller, HttpProcess, http_process
from support.sessions.replies import said_in

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEMO: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-m", "emceepee.demo"],
    "env": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
}


async def once(endpoint: HttpProcess, name: str, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Acts like a client with a connection for each call: initialize, call, end."""
    caller = await endpoint.caller(emceepee_session=name)
    value = await caller.value(tool, **arguments)
    assert await caller.end() == 200
    return value


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def status_of(caller: HttpCaller) -> int:
    async with caller.post("ping") as response:
        return response.status


async def test_a_client_with_one_connection_per_call_keeps_its_servers_tasks_and_questions(
    endpoint: HttpProcess,
) -> None:
    await once(endpoint, "anew", "add_server", name="demo", **DEMO)
    status = await once(endpoint, "anew", "get_server_status", server="demo")
    asked = await once(endpoint, "anew", "execute_tool", server="demo", tool="book_table")
    task = asked["proxy_task"]["task_id"]
    (question,) = (await once(endpoint, "anew", "get_elicitations"))["requests"]
    answer = {"action": "accept", "content": {"guests": 7, "time": "19:30"}}
    await once(endpoint, "anew", "respond_to_elicitation", request_id=question["requestId"], **answer)
    caller = await endpoint.caller(emceepee_session="anew")
    result = await caller.call("get_task_result", task_id=task)
    assert result["structuredContent"]["guests"] == 7
    assert (await caller.value("get_server_status", server="demo"))["process"]["pid"] == status["process"]["pid"]
    await caller.value("remove_server", name="demo")
    await caller.value("close_session", session="anew")


async def test_the_python_sdk_joins_a_session_of_the_handshake_era_by_its_address(endpoint: HttpProcess) -> None:
    for found in (1, 2):
        async with asyncio.timeout(BOUND), Client(f"{endpoint.url}?session=sdk", mode="legacy") as client:
            await client.call_tool("set_timer", {"duration_ms": 60_000, "message": "x"})
            listed = await client.call_tool("list_timers", {})
        assert listed.structured_content is not None
        assert len(listed.structured_content["timers"]) == found


async def test_both_eras_share_a_session_under_one_name(endpoint: HttpProcess, backend: WebBackend) -> None:
    handshake, modern = await endpoint.caller(emceepee_session="met"), endpoint.modern(emceepee_session="met")
    await handshake.value("add_server", name="web", url=backend.url)
    started = await modern.value("execute_tool", server="web", tool="wait", timeout_ms=0)
    (await backend.next_call()).finish("found by the other")
    result = await handshake.call("get_task_result", task_id=started["proxy_task"]["task_id"])
    assert result["content"][0]["text"] == "found by the other"
    assert (await modern.value("close_session", session="met")) == {"closed": "met"}
    assert await status_of(handshake) == 404
    cleaner = await endpoint.caller()
    await cleaner.value("remove_server", name="web")


async def test_each_event_is_delivered_once_to_one_of_the_connections(endpoint: HttpProcess) -> None:
    callers = [await endpoint.caller(emceepee_session="race") for _ in range(3)]
    heard: Counter[str] = Counter()

    def hear(result: dict[str, Any]) -> None:
        """Events come with any reply, and with that of await_activity in its own key."""
        spoken = [said_in(block["text"]) for block in result["content"]]
        groups = [value.get("events_since_last_response", []) for value in spoken]
        groups += [group["events"] for value in spoken for group in value.get("events", []) if "triggers" in value]
        events = [event for group in groups for event in group]
        heard.update(event["data"]["message"] for event in events if event["type"] == "timer_expired")

    async def listen(caller: HttpCaller) -> None:
        while heard.total() < 30:
            hear(await caller.call("await_activity", timeout_ms=300))

    for number in range(30):
        hear(await callers[0].call("set_timer", duration_ms=20, message=str(number)))
    async with asyncio.timeout(BOUND):
        await asyncio.gather(*(listen(caller) for caller in callers))
    assert heard == {str(number): 1 for number in range(30)}


async def test_a_closed_connection_leaves_servers_and_timers_to_the_others(endpoint: HttpProcess) -> None:
    first, second = await endpoint.caller(emceepee_session="left"), await endpoint.caller(emceepee_session="left")
    assert first.headers["mcp-session-id"] != second.headers["mcp-session-id"]
    await first.value("add_server", name="demo", **DEMO)
    await first.value("set_timer", duration_ms=60_000, message="mine")
    before = await second.value("get_server_status", server="demo")
    assert (await first.end(), await first.end(), await status_of(first)) == (200, 404, 404)
    after = await second.value("get_server_status", server="demo")
    assert after["process"]["pid"] == before["process"]["pid"]
    assert len((await second.value("list_timers"))["timers"]) == 1
    await second.value("remove_server", name="demo")


async def test_closing_the_current_session_is_answered_after_its_processes_ended(endpoint: HttpProcess) -> None:
    asking, other = await endpoint.caller(emceepee_session="over"), await endpoint.caller(emceepee_session="over")
    await asking.value("add_server", name="demo", **DEMO)
    pid = (await asking.value("get_server_status", server="demo"))["process"]["pid"]
    async with other.get() as pushes:
        assert await asking.value("close_session", session="over") == {"closed": "over"}
        assert await pushes.rest() == []
    assert not is_alive(pid)
    assert [await status_of(caller) for caller in (asking, other)] == [404, 404]
    cleaner = await endpoint.caller(emceepee_session="over")
    assert (await cleaner.error("close_session", session="never"))["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
    await cleaner.value("remove_server", name="demo")


async def test_an_undelivered_answer_is_found_by_a_later_connection(endpoint: HttpProcess, backend: WebBackend) -> None:
    first = await endpoint.caller(emceepee_session="cut")
    await first.value("add_server", name="web", url=backend.url)
    backend.steps_at_once = 1
    async with first.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        await stream.some(2)
        stream.cut()
    second = await endpoint.caller(emceepee_session="cut")
    call.finish("kept")
    async with asyncio.timeout(BOUND):
        while not (tasks := (await second.value("list_tasks", include_completed=True))["tasks"]):
            await second.value("await_activity", timeout_ms=1000)
    result = await second.call("get_task_result", task_id=tasks[0]["taskId"])
    assert result["content"][0]["text"] == "kept"
    await second.value("remove_server", name="web")


async def test_a_call_continues_when_its_client_times_out_and_closes_the_connection(
    endpoint: HttpProcess, backend: WebBackend
) -> None:
    first = await endpoint.caller(emceepee_session="gave up")
    await first.value("add_server", name="web", url=backend.url)
    backend.steps_at_once = 1
    async with first.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        await stream.some(2)
        stream.cut()
    assert await first.end() == 200
    second = await endpoint.caller(emceepee_session="gave up")
    (task,) = (await second.value("list_tasks"))["tasks"]
    call.finish("kept")
    result = await second.call("get_task_result", task_id=task["taskId"])
    assert result["content"][0]["text"] == "kept"
    assert not call.was_cancelled.is_set()
    await second.value("remove_server", name="web")


async def test_another_principal_cannot_see_or_close_a_session_of_the_same_name() -> None:
    async with http_process("--token", "ada=one", "--token", "ben=two") as endpoint:
        ada = await endpoint.caller(emceepee_session="desk", authorization="Bearer one")
        ben = await endpoint.caller(emceepee_session="desk", authorization="Bearer two")
        await ada.value("set_timer", duration_ms=60_000, message="ada's")
        assert (await ben.value("list_timers"))["timers"] == []
        assert await ben.value("close_session", session="desk") == {"closed": "desk"}
        again = await endpoint.modern(authorization="Bearer two").error("close_session", session="desk")
        assert again["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
        assert len((await ada.value("list_timers"))["timers"]) == 1
        ben.headers["mcp-session-id"] = ada.headers["mcp-session-id"]
        assert (await status_of(ben), await ben.end(), await status_of(ada)) == (404, 404, 200)


async def test_many_abandoned_connections_in_one_session_do_not_pile_up() -> None:
    async with http_process(env={"EMCEEPEE_CONFIG": '{"limits": {"connections_per_session": 5}}'}) as endpoint:
        callers = [await endpoint.caller(emceepee_session="crowd") for _ in range(12)]
        await callers[-1].value("set_timer", duration_ms=60_000, message="mine")
        assert [await status_of(caller) for caller in callers] == [404] * 7 + [200] * 5
        again = await endpoint.caller(emceepee_session="crowd")
        assert len((await again.value("list_timers"))["timers"]) == 1

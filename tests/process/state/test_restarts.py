"""A real process ends, by a kill or in order, and the next one goes on with what it left."""

import asyncio
import sys
from typing import Any

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess
from support.server_programs.stdio_entries import stdio_server
from support.waiting import eventually

either_way = pytest.mark.parametrize("how", ["kill", "stop"])


async def hear(caller: HttpCaller, *types: str, **session: str) -> dict[str, Any]:
    """The data of the first event of each of these types, as soon as all are there."""
    heard: dict[str, Any] = {}
    async with asyncio.timeout(30):
        while not heard.keys() >= set(types):
            activity = await caller.value("await_activity", timeout_ms=5_000, **session)
            for event in (event for group in activity["events"] for event in group["events"]):
                heard.setdefault(event["type"], event["data"])
    return heard


async def hold(caller: HttpCaller, call_id: str) -> str:
    """The task of a call that ends when its backend is told to let it go."""
    arguments = {"server": "one", "tool": "hold", "args": {"id": call_id}, "timeout_ms": 0}
    return str((await caller.value("execute_tool", **arguments))["proxy_task"]["task_id"])


@either_way
async def test_id_handle_name_and_default_session_go_on_without_a_new_handshake(
    endpoint: RestartableProcess, how: str
) -> None:
    by_id, joined = await endpoint.caller("2025-06-18"), await endpoint.caller(emceepee_session="shared")
    named, default = endpoint.modern(emceepee_session="mine"), endpoint.modern(client="someone")
    handle = {"session": (await default.value("open_session", label="work"))["session"]}
    everyone: list[tuple[HttpCaller, dict[str, str]]] = [
        *((caller, {}) for caller in (by_id, joined, named, default)),
        (default, handle),
    ]
    for number, (caller, session) in enumerate(everyone):
        await caller.value("set_timer", duration_ms=60_000, message=str(number), **session)
    await endpoint.restart(how)
    for number, (caller, session) in enumerate(everyone):
        (timer,) = (await caller.value("list_timers", **session))["timers"]
        assert timer["message"] == str(number)
    by_name = endpoint.modern(emceepee_session="shared")  # the one that a handshake joined
    assert (await by_name.value("list_timers"))["timers"][0]["message"] == "1"


@either_way
async def test_finished_results_are_there_and_a_working_task_has_failed_with_the_reason(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    finished, working = await hold(caller, "finished"), await hold(caller, "working")
    backend.let_go("finished")
    assert (await hear(caller, "task_completed"))["task_completed"]["taskId"] == finished
    await endpoint.restart(how)
    failed = (await hear(caller, "task_failed"))["task_failed"]
    assert failed["taskId"] == working
    assert "emceepee was restarted" in failed["error"]
    assert (await caller.call("get_task_result", task_id=finished))["content"][0]["text"] == "finished"
    error = await caller.error("get_task_result", task_id=working)
    assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
    assert error["details"]["mayHaveRun"] is True
    assert backend.ran == {"finished": 1, "working": 1}


@either_way
async def test_a_timer_that_fell_due_meanwhile_fires_once_though_nobody_asks_for_its_session(
    endpoint: RestartableProcess, how: str
) -> None:
    caller = await endpoint.caller()
    late = (await caller.value("set_timer", duration_ms=1_000, message="late"))["timerId"]
    again = (await caller.value("set_timer", duration_ms=1_000, message="again", interval=True))["timerId"]
    await (endpoint.kill() if how == "kill" else endpoint.stop())
    await endpoint.start()
    heard: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while {event["timerId"] for event in heard} != {late, again}:
            activity = await caller.value("await_activity", timeout_ms=5_000)
            heard += [event["data"] for group in activity["events"] for event in group["events"]]
    await caller.value("delete_timer", timer_id=again)
    assert [event["timerId"] for event in heard].count(late) == 1
    assert (await caller.value("get_timer", timer_id=late))["fireCount"] == 1


@either_way
async def test_a_question_that_was_open_has_expired_because_its_server_was_lost(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    await caller.value("execute_tool", server="one", tool="ask", args={"id": "asked"})
    (question,) = (await caller.value("get_elicitations"))["requests"]
    await endpoint.restart(how)
    expired = (await hear(caller, "elicitation_expired"))["elicitation_expired"]
    assert (expired["requestId"], expired["reason"]) == (question["requestId"], "disconnected")
    assert (await caller.value("get_elicitations"))["requests"] == []
    gone = await caller.error("respond_to_elicitation", request_id=question["requestId"], action="decline")
    assert gone["code"] == "ERR_REQUEST_NOT_FOUND"


@either_way
async def test_the_server_knows_the_caller_by_the_same_id_and_is_asked_again_for_what_it_was_asked(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    await caller.value("subscribe_resource", server="one", uri="note://1")
    await caller.value("set_log_level", server="one", level="warning")
    before = {headers["emceepee-session-id"] for headers in backend.headers}
    backend.headers.clear()
    backend.subscribed.clear()
    await endpoint.restart(how)
    levels = backend.seen["logging/setLevel"]
    await caller.call("execute_tool", server="one", tool="echo", args={"id": "after"})
    await eventually(lambda: backend.subscribed == ["note://1"], what="the subscription is restored")
    await eventually(lambda: backend.seen["logging/setLevel"] == levels + 1, what="the level is restored")
    after = {headers["emceepee-session-id"] for headers in backend.headers}
    assert len(before) == 1
    assert after == before


@either_way
async def test_added_servers_are_there_in_order_with_their_secrets_and_a_removed_one_is_not(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    program = {"command": sys.executable, "args": stdio_server()["args"], "env": {"TOKEN": "hush-env"}}
    await caller.value("add_server", name="zebra", url=backend.url, headers={"x-token": "hush-header"})
    await caller.value("add_server", name="gone", url=backend.url)
    await caller.value("add_server", name="ape", **program)
    await caller.value("remove_server", name="gone")
    await endpoint.restart(how)
    assert b"hush" not in b"".join(
        file.read_bytes() for file in endpoint.database.parent.glob("state.db*") if file.is_file()
    )
    backend.headers.clear()
    servers = (await caller.value("list_servers"))["servers"]
    assert [server["name"] for server in servers] == ["zebra", "ape"]
    await caller.call("execute_tool", server="zebra", tool="echo", args={"id": "after"})
    assert {headers.get("x-token") for headers in backend.headers} == {"hush-header"}
    assert (await caller.error("execute_tool", server="gone", tool="echo"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


@either_way
async def test_what_was_ended_is_forgotten_for_good(endpoint: RestartableProcess, how: str) -> None:
    caller, modern = await endpoint.caller(), endpoint.modern()
    handle = (await modern.value("open_session"))["session"]
    named = endpoint.modern(emceepee_session="mine")
    for one, session in ((caller, {}), (modern, {"session": handle}), (named, {})):
        await one.value("set_timer", duration_ms=60_000, message="x", **session)
    assert await caller.end() == 200
    await modern.value("close_session", session=handle)
    await modern.value("close_session", session="mine")
    await endpoint.restart(how)
    async with caller.post("tools/list") as response:
        assert response.status == 404
    assert (await modern.error("list_timers", session=handle))["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
    assert (await named.value("list_timers"))["timers"] == []


# Streams.


@either_way
async def test_the_stream_of_a_request_that_ran_ends_with_an_error_that_says_so(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    async with caller.stream("execute_tool", key="k", server="one", tool="hold", args={"id": "held"}) as stream:
        *_, last = await stream.some(2)
        stream.cut()
    assert last.event_id is not None
    await endpoint.restart(how)
    async with caller.get(last.event_id) as resumed:
        end = (await resumed.rest())[-1].message
    assert end is not None
    assert end["id"] == "k"
    words = end["error"]["message"] if how == "kill" else end["result"]["structuredContent"]["error"]["message"]
    assert ("was restarted" if how == "kill" else "is stopping") in words
    assert backend.ran == {"held": 1}


@either_way
async def test_an_answer_that_was_not_read_is_replayed_by_the_last_event_id(
    endpoint: RestartableProcess, backend: CountingBackend, how: str
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    async with caller.stream("execute_tool", server="one", tool="hold", args={"id": "held"}) as stream:
        first, *_ = await stream.some(2)
        backend.let_go("held")
        whole = await stream.rest()
    await endpoint.restart(how)
    async with caller.get(first.event_id) as resumed:
        replayed = await resumed.rest()
    assert replayed[-1] == whole[-1]
    assert replayed[-1].message is not None
    assert replayed[-1].message["result"]["content"][0]["text"] == "held"
    assert backend.ran == {"held": 1}

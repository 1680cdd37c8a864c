"""A client timeout cancels the request. The call continues as a task, and the next reply reports it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked
from support.fakes.clock import settle
from support.in_process.asgi_caller import AsgiCaller, an_asgi_caller
from support.in_process.stdio_client import StdioClient, a_stdio_client
from support.sessions.asking import events_in

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}
TIMEOUT = "McpError: MCP error -32001: Request timed out"
SLOW: JsonObject = {"server": "demo", "tool": "slow", "timeout_ms": 10_000}


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[StdioClient]:
    async with a_stdio_client() as made:
        await made.open(request.param)
        await result_of(made, "list_timers")  # takes what happened so far
        yield made


async def result_of(client: StdioClient, tool: str, /, **arguments: Any) -> JsonObject:
    """Return the next reply's message, which must be that of this call."""
    await client.call(tool, "look", **arguments)
    answer = await client.next()
    assert answer["id"] == "look"
    return dict(answer["result"])


def task_events(result: JsonObject) -> list[tuple[str, str]]:
    return [(event["type"], event["data"]["taskId"]) for event in events_in(result)]


async def tasks_of(client: StdioClient) -> list[JsonObject]:
    return list((await result_of(client, "list_tasks", include_completed=True))["structuredContent"]["tasks"])


# On standard input and output.


async def test_a_call_whose_client_timed_out_is_a_task_that_the_next_replies_report(client: StdioClient) -> None:
    await client.call("execute_tool", 1, **SLOW)
    asked = await client.backend.next_asked()
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    await settle()
    assert (client.heard, client.backend.cancelled) == ([], [])
    listed = await result_of(client, "list_tasks")
    (task,) = listed["structuredContent"]["tasks"]
    assert (task["status"], task["toolName"]) == ("working", "slow")
    assert task_events(listed) == [("task_created", task["taskId"])]
    asked.reply(**DONE)
    await settle()
    assert task_events(await result_of(client, "list_timers")) == [("task_completed", task["taskId"])]
    result = await result_of(client, "get_task_result", task_id=task["taskId"])
    assert result["content"] == DONE["content"]
    assert [method for method, _ in client.backend.seen].count("tools/call") == 1


@pytest.mark.parametrize("reason", ["user said no", "", None, 5])
async def test_a_call_canceled_for_another_reason_ends_with_its_request(client: StdioClient, reason: Any) -> None:
    await client.call("execute_tool", 1, **SLOW)
    asked = await client.backend.next_asked()
    await client.tell("notifications/cancelled", requestId=1, reason=reason)
    await settle()
    assert (client.heard, client.backend.cancelled) == ([], [asked])
    assert await tasks_of(client) == []


UNCLEAR = "MCP request cancelled by caller"  # from Codex, whether a person stopped it or `tool_timeout_sec` passed


async def a_cancelled_call(
    client: StdioClient, *, name: str = "codex-mcp-client", after: float, reason: Any = UNCLEAR, meta: Any = None
) -> Asked:
    await client.open(name=name)
    await result_of(client, "list_timers")
    arguments = SLOW | {"timeout_ms": 900_000}
    await client.ask("tools/call", 1, name="execute_tool", arguments=arguments, _meta=meta or {})
    asked = await client.backend.next_asked()
    await client.scene.clock.advance(after)
    await client.tell("notifications/cancelled", requestId=1, reason=reason)
    await settle()
    assert client.heard == []
    return asked


def given_up(client: StdioClient) -> list[Asked]:
    """The calls that the server was asked to end; an unanswered health check is not one of them."""
    return [asked for asked in client.backend.cancelled if asked.method == "tools/call"]


@pytest.mark.parametrize("seconds", [5.05, 9.95, 10.0, 45.1, 60.1, 120.05, 180.2, 300.048])
async def test_a_cancellation_without_a_clear_reason_counts_as_a_timeout_if_one_is_due(seconds: float) -> None:
    """Measured: 300.05 s after a call with the default timeout."""
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, after=seconds)
        listed = await result_of(client, "list_tasks")
        (task,) = listed["structuredContent"]["tasks"]
        assert (task["status"], given_up(client)) == ("working", [])
        assert task_events(listed) == [("task_created", task["taskId"])]
        asked.reply(**DONE)
        await settle()
        assert (await result_of(client, "get_task_result", task_id=task["taskId"]))["content"] == DONE["content"]


@pytest.mark.parametrize("seconds", [0.0, 0.1, 3.1, 4.8, 5.4, 57.0, 61.0, 118.5, 298.0, 303.3])
async def test_a_cancellation_at_any_other_time_counts_as_a_decision_of_the_user_and_ends_the_call(
    seconds: float,
) -> None:
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, after=seconds)
        assert given_up(client) == [asked]
        assert await tasks_of(client) == []


def a_turn(trigger: Any) -> JsonObject:
    """The metadata that Codex 0.169 adds to a call."""
    return {"threadId": "t1", "x-codex-turn-metadata": {"turn_id": "u1", "turn_trigger": trigger}}


@pytest.mark.parametrize("seconds", [0.4, 3.004, 7.1])
async def test_in_a_noninteractive_run_a_cancellation_is_a_timeout_at_any_time(seconds: float) -> None:
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, after=seconds, meta=a_turn("exec"))
        (task,) = await tasks_of(client)
        assert (task["status"], given_up(client)) == ("working", [])
        asked.reply(**DONE)
        await settle()
        assert (await result_of(client, "get_task_result", task_id=task["taskId"]))["content"] == DONE["content"]


@pytest.mark.parametrize("meta", [a_turn("user"), a_turn(["exec"]), {"x-codex-turn-metadata": "exec"}])
async def test_in_an_interactive_run_the_time_of_a_cancellation_decides(meta: JsonObject) -> None:
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, after=3.004, meta=meta)
        assert given_up(client) == [asked]


async def test_a_noninteractive_client_can_give_a_reason_for_its_cancellation() -> None:
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, after=3.004, reason="user said no", meta=a_turn("exec"))
        assert given_up(client) == [asked]


@pytest.mark.parametrize(("name", "reason"), [("claude-code", UNCLEAR), ("codex-mcp-client", "user said no")])
async def test_a_clear_cancellation_reason_and_unknown_clients_are_taken_literally(name: str, reason: str) -> None:
    async with a_stdio_client() as client:
        asked = await a_cancelled_call(client, name=name, after=300.05, reason=reason)
        assert given_up(client) == [asked]


async def test_a_request_that_timed_out_consumes_no_event(client: StdioClient) -> None:
    await client.call("execute_tool", 1, **SLOW)
    await client.backend.next_asked()
    client.backend.link.listener.handle_notification("notifications/odd", {}, None)
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    await settle()
    kinds = [event["type"] for event in events_in(await result_of(client, "list_timers"))]
    assert kinds == ["notification", "task_created"]


async def test_a_wait_for_a_task_that_timed_out_leaves_the_task_alone(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow", timeout_ms=0)
    asked = await client.backend.next_asked()
    await client.scene.clock.advance(0)
    task_id = (await client.next())["result"]["structuredContent"]["proxy_task"]["task_id"]
    await client.call("get_task_result", 2, task_id=task_id)
    await settle()
    await client.tell("notifications/cancelled", requestId=2, reason=TIMEOUT)
    asked.reply(**DONE)
    await settle()
    assert client.heard == []
    assert (await result_of(client, "get_task_result", task_id=task_id))["content"][0] == DONE["content"][0]


@pytest.mark.parametrize("reason", [TIMEOUT, "enough"])
async def test_await_activity_that_is_canceled_as_an_event_arrives_consumes_no_event(
    client: StdioClient, reason: str
) -> None:
    await client.call("await_activity", 1)
    await settle()
    client.backend.link.listener.handle_notification("notifications/odd", {}, None)
    await client.tell("notifications/cancelled", requestId=1, reason=reason)
    await settle()
    assert client.heard == []
    activity = (await result_of(client, "await_activity"))["structuredContent"]
    assert [event["type"] for group in activity["events"] for event in group["events"]] == ["notification"]


# At the same moment.


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("ending", ["completes", "fails", "is promoted", "is no tool"])
async def test_a_timeout_that_races_with_the_end_of_the_call_has_one_outcome_and_loses_nothing(
    client: StdioClient, ending: str, turns: int
) -> None:
    """Either the answer was sent, or a task has it."""
    tool = "nobody" if ending == "is no tool" else "slow"
    await client.call("execute_tool", 1, **(SLOW | {"tool": tool}))
    asked = await client.backend.next_asked()
    if ending == "completes":
        asked.reply(**DONE)
    elif ending == "is promoted":
        client.scene.clock.jump(10)
    else:
        asked.refuse(-32602, "no")
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    await settle()
    answers = [message["id"] for message in client.heard]
    client.heard.clear()
    tasks = await tasks_of(client)
    if ending == "is promoted":
        assert [task["status"] for task in tasks] == ["working"]
    else:
        assert len(tasks) + len(answers) == 1
        assert {task["status"] for task in tasks} <= {"completed" if ending == "completes" else "failed"}
    assert client.backend.cancelled == []


@pytest.mark.parametrize("turns", range(-4, 12))
async def test_a_cancellation_that_races_with_the_promotion_leaves_a_reported_task_or_no_running_one(
    client: StdioClient, turns: int
) -> None:
    """Either the task was reported, or none is running. Turns below zero: the wait ends after the cancellation."""
    await client.call("execute_tool", 1, **SLOW)
    asked = await client.backend.next_asked()
    if turns < 0:
        await client.tell("notifications/cancelled", requestId=1, reason="enough")
        for _ in range(-turns - 1):
            await asyncio.sleep(0)
    client.scene.clock.jump(10)
    for _ in range(turns):
        await asyncio.sleep(0)
    if turns >= 0:
        await client.tell("notifications/cancelled", requestId=1, reason="enough")
    await settle()
    answers = [message["id"] for message in client.heard]
    client.heard.clear()
    statuses = [task["status"] for task in await tasks_of(client)]
    if answers:
        assert (statuses, client.backend.cancelled) == (["working"], [])
    else:
        assert set(statuses) <= {"cancelled"}
        assert client.backend.cancelled == [asked]


async def test_a_call_that_is_read_together_with_its_timeout_is_sent(client: StdioClient) -> None:
    """A client may write both messages before emceepee starts."""
    await client.call("execute_tool", 1, **SLOW)
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    assert [task["status"] for task in await tasks_of(client)] == ["working"]
    (await client.backend.next_asked()).reply(**DONE)
    await settle()
    assert [task["status"] for task in await tasks_of(client)] == ["completed"]


async def test_a_wait_that_is_read_together_with_its_timeout_ends(client: StdioClient) -> None:
    await client.call("await_activity", 1)
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    await settle()
    client.backend.link.listener.handle_notification("notifications/odd", {}, None)
    await settle()
    assert client.heard == []


async def test_a_timeout_after_the_answer_has_no_effect(client: StdioClient) -> None:
    await client.call("execute_tool", 1, **SLOW)
    (await client.backend.next_asked()).reply(**DONE)
    assert (await client.next())["id"] == 1
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    assert await tasks_of(client) == []


async def test_a_request_that_timed_out_twice_is_one_task(client: StdioClient) -> None:
    await client.call("execute_tool", 1, **SLOW)
    await client.backend.next_asked()
    for reason in (TIMEOUT, TIMEOUT, "user said no"):
        await client.tell("notifications/cancelled", requestId=1, reason=reason)
    await settle()
    assert [task["status"] for task in await tasks_of(client)] == ["working"]
    assert client.backend.cancelled == []


@pytest.mark.parametrize("turns", range(12))
async def test_in_the_waterfall_a_call_that_ends_as_its_client_times_out_is_done(
    client: StdioClient, turns: int
) -> None:
    await client.call("execute_tool", 1, **SLOW)
    asked = await client.backend.next_asked()
    (span,) = [span for span in client.scene.session.journal.since(0) if span.name == "slow"]
    asked.reply(**DONE)
    await settle(turns)
    await client.tell("notifications/cancelled", requestId=1, reason=TIMEOUT)
    await settle()
    assert str(span.status) == "success"


# Over HTTP.


@pytest.fixture
async def caller() -> AsyncIterator[AsgiCaller]:
    async with an_asgi_caller() as made:
        yield made


@pytest.mark.parametrize("seconds", [0.2, 5])
async def test_over_http_the_canceled_request_ends_in_order_and_its_call_continues(
    caller: AsgiCaller, seconds: float
) -> None:
    """The response is plain JSON or a stream."""
    line = caller.start("execute_tool", server="one", tool="slow", key=7)
    asked = await caller.backend.next_asked()
    await caller.clock.advance(seconds)
    await caller.tell("notifications/cancelled", requestId=7, reason=TIMEOUT)
    answer = (await line.served()).message
    assert answer == {"jsonrpc": "2.0", "id": 7, "error": {"code": -32800, "message": "Request cancelled"}}
    listed = await caller.call("list_tasks")
    (task,) = listed["structuredContent"]["tasks"]
    assert task_events(listed) == [("task_created", task["taskId"])]
    asked.reply(**DONE)
    result = await caller.call("get_task_result", task_id=task["taskId"])
    assert result["content"][0] == DONE["content"][0]
    assert caller.backend.cancelled == []


@pytest.mark.parametrize("turns", range(20))
async def test_over_http_the_report_of_a_call_canceled_at_its_timeout_is_correct(
    caller: AsgiCaller, turns: int
) -> None:
    line = caller.start("execute_tool", server="one", tool="slow", timeout_ms=10_000, key=7)
    asked = await caller.backend.next_asked()
    telling = asyncio.create_task(caller.tell("notifications/cancelled", requestId=7, reason="enough"))
    for _ in range(turns):
        await asyncio.sleep(0)
    caller.clock.jump(10)
    await telling
    answer = (await line.served()).message
    await settle()
    tasks = (await caller.call("list_tasks", include_completed=True))["structuredContent"]["tasks"]
    if "error" in answer:
        assert answer["error"]["message"] == "Request cancelled"
        assert {task["status"] for task in tasks} <= {"cancelled"}
        assert caller.backend.cancelled == [asked]
    else:
        assert [task["status"] for task in tasks] == ["working"]


async def test_over_http_any_other_reason_cancels_the_call(caller: AsgiCaller) -> None:
    line = caller.start("execute_tool", server="one", tool="slow", key=7)
    asked = await caller.backend.next_asked()
    await caller.tell("notifications/cancelled", requestId=7, reason="user said no")
    assert (await line.served()).message["error"]["code"] == -32800
    await settle()
    assert caller.backend.cancelled == [asked]
    assert (await caller.call("list_tasks", include_completed=True))["structuredContent"]["tasks"] == []


@pytest.mark.parametrize("turns", range(16))
@pytest.mark.parametrize("seconds", [0.2, 5])
@pytest.mark.parametrize("is_first", [True, False])
async def test_over_http_a_timeout_that_races_with_the_result_has_one_outcome(
    caller: AsgiCaller, is_first: bool, seconds: float, turns: int
) -> None:
    """In the same turn of the loop, either event may be first."""

    async def time_out() -> None:
        await settle(turns)
        await caller.tell("notifications/cancelled", requestId=7, reason=TIMEOUT)

    line = caller.start("execute_tool", server="one", tool="slow", key=7)
    asked = await caller.backend.next_asked()
    await caller.clock.advance(seconds)
    if not is_first:
        asked.reply(**DONE)
    timeout = asyncio.create_task(time_out())
    if is_first:
        await asyncio.sleep(0)
        asked.reply(**DONE)
    answer = (await line.served()).message
    await timeout
    await settle()
    tasks = (await caller.call("list_tasks", include_completed=True))["structuredContent"]["tasks"]
    if "result" in answer:
        assert (answer["result"], tasks) == (DONE, [])
    else:
        assert [task["status"] for task in tasks] == ["completed"]

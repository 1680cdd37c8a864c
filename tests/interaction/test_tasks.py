"""Slow calls become tasks."""

import asyncio
import json
import random
from itertools import permutations
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emceepee.sessions.call import Call
from emceepee.state.limits import Limits
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import a_call, a_task, event_types, events, events_in, hush, notices, task_id
from support.sessions.replies import own_part, without_help
from support.sessions.request_contexts import asking_for_progress
from support.sessions.scene import Scene, a_scene

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def sent(scene: Scene, method: str = "tools/call", server: str = "one") -> int:
    return [seen for seen, _ in scene.backends[server].seen].count(method)


# Becoming a task.


async def test_a_call_over_its_timeout_becomes_a_task_and_is_never_sent_twice() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        backend = scene.backends["one"]
        call = scene.start("execute_tool", server="one", tool="slow", args={"n": 1}, timeout_ms=10_000)
        asked = await backend.next_asked()
        await scene.clock.advance(10)
        task_id = (await call)["structuredContent"]["proxy_task"]["task_id"]
        asked.reply(content=[{"type": "text", "text": "done"}], odd=None)
        result = await scene.call("get_task_result", task_id=task_id)
        assert (result["content"][0], result["odd"]) == ({"type": "text", "text": "done"}, None)
        assert [method for method, _ in backend.seen].count("tools/call") == 1


async def test_a_call_that_ends_in_time_leaves_no_task() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        call, asked = await a_call(scene, timeout_ms=10_000)
        await scene.clock.advance(9.9)
        asked.reply(**DONE, odd=[1])
        assert await call == {**DONE, "odd": [1]}
        await scene.clock.advance(60)
        assert await event_types(scene) == []
        assert await scene.value("list_tasks", include_completed=True) == {"tasks": []}


async def test_the_promotion_reply_names_the_task_as_text_and_as_data() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        await a_task(scene, "two")
        earlier, _ = await a_task(scene)
        call, _ = await a_call(scene, timeout_ms=10_000, args={"deep": True})
        await scene.clock.advance(10)
        result = await call
        name = task_id(result)
        value = own_part(result["structuredContent"])
        steps = f'get_task_result(task_id="{name}") waits for the result; await_activity waits for the next event.'
        assert result["content"][0]["text"] == f"The call continues as task {name}.\n{steps}"
        assert value.pop("next") == steps
        assert json.loads(result["content"][1]["text"]) == value
        assert value == {
            "proxy_task": {
                "task_id": name,
                "status": "working",
                "created_at": "2026-01-01T00:00:10.000Z",
                "server": "one",
                "tool": "slow",
            },
            "pending_on_server": {
                "server": "one",
                "tasks": [
                    {"taskId": earlier, "toolName": "slow", "status": "working"},
                    {"taskId": name, "toolName": "slow", "status": "working"},
                ],
                "elicitations_for_server": [],
                "sampling_requests_for_server": [],
            },
        }
        assert result["content"][1]["text"].startswith('{"proxy_task":')
        created = events_in(result)[-1]
        assert (created["type"], created["server"], created["data"]) == (
            "task_created",
            "one",
            {"taskId": name, "toolName": "slow", "ttl": 600_000},
        )


async def test_a_timeout_of_zero_makes_a_task_of_every_call_without_an_immediate_answer() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        assert (await scene.value("get_task", task_id=name))["task"]["status"] == "working"
        asked.reply(**DONE)
        assert (await scene.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]
        assert sent(scene) == 1


@pytest.mark.parametrize("patience", [-1, 900_001, "soon", 1.5])
async def test_an_invalid_timeout_is_rejected_before_the_call_is_sent(patience: Any) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        error = await scene.error("execute_tool", server="one", tool="slow", timeout_ms=patience)
        assert (error["code"], "timeout_ms" in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)
        assert sent(scene) == 0


async def test_the_longest_timeout_is_the_limit_of_the_configuration() -> None:
    async with a_scene(limits=Limits(longest_call_seconds=60), one=ScriptedBackend()) as scene:
        error = await scene.error("execute_tool", server="one", tool="slow", timeout_ms=60_001)
        assert (error["code"], error["details"]) == ("ERR_INVALID_ARGUMENTS", {"most": 60_000})
        assert sent(scene) == 0
        _, asked = await a_call(scene, timeout_ms=60_000)
        asked.reply(**DONE)


@pytest.mark.parametrize(
    ("tool", "method", "arguments", "answer"),
    [
        ("read_resource", "resources/read", {"uri": "file:///a"}, {"contents": [{"uri": "file:///a", "blob": "AA=="}]}),
        ("get_prompt", "prompts/get", {"name": "p"}, {"messages": [], "description": "d", "odd": 1}),
    ],
)
async def test_slow_resource_reads_and_prompt_requests_become_tasks(
    tool: str, method: str, arguments: JsonObject, answer: JsonObject
) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start(tool, server="one", timeout_ms=1000, **arguments)
        asked = await scene.backends["one"].next_asked(method)
        await scene.clock.advance(1)
        name = task_id(await call)
        task = (await scene.value("get_task", task_id=name))["task"]
        assert (task["toolName"], task["toolArgs"]) == (tool, arguments)
        asked.reply(**answer)
        assert await scene.value("get_task_result", task_id=name) == answer
        assert sent(scene, method) == 1


# While it works.


async def test_progress_is_stored_on_the_task_and_forwarded_while_the_caller_waits() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        told: list[JsonObject] = []
        call, asked = await a_call(scene, caller=asking_for_progress(told.append), timeout_ms=10_000)
        listener = scene.backends["one"].link.listener
        listener.handle_notification(
            "notifications/progress", {"progressToken": 7, "progress": 1, "total": 4}, asked.origin
        )
        await scene.clock.advance(10)
        name = task_id(await call)
        assert (await scene.value("get_task", task_id=name))["task"]["progress"] == {"progress": 1, "total": 4}
        await scene.clock.advance(5)
        later = {"progressToken": 7, "progress": 2, "total": 4, "message": "digging"}
        listener.handle_notification("notifications/progress", later, asked.origin)
        task = (await scene.value("list_tasks"))["tasks"][0]
        assert (task["progress"], task["statusMessage"]) == (
            {"progress": 2, "total": 4, "message": "digging"},
            "digging",
        )
        assert task["lastUpdatedAt"] == "2026-01-01T00:00:15.000Z"
        assert told == [{"progress": 1, "total": 4}]
        asked.reply(**DONE)
        await settle()
        listener.handle_notification("notifications/progress", {"progress": 3}, asked.origin)
        assert (await scene.value("get_task", task_id=name))["task"]["progress"]["progress"] == 2


async def test_the_completion_of_a_task_wakes_every_waiter() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        waiters = [scene.start("get_task_result", task_id=name) for _ in range(5)]
        await settle()
        assert not any(waiter.done() for waiter in waiters)
        asked.reply(**DONE)
        await settle()
        assert all(waiter.done() for waiter in waiters)
        assert [waiter.result()["content"][0] for waiter in waiters] == DONE["content"] * 5


async def test_a_wait_for_a_task_that_ends_first_reports_a_timeout_and_the_task_continues() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        wait = scene.start("get_task_result", task_id=name, timeout_ms=5000)
        await scene.clock.advance(5)
        error = without_help((await wait)["structuredContent"]["error"])
        assert (error["code"], error["details"]) == ("TOOL_ERR_TIMEOUT", {"taskId": name})
        assert (await scene.value("list_tasks"))["tasks"][0]["status"] == "working"
        asked.reply(**DONE, structuredContent={"n": 1}, _meta={"k": None})
        for _ in range(3):
            result = await scene.call("get_task_result", task_id=name, timeout_ms=0)
            assert (result["content"][0], result["structuredContent"], result["_meta"]) == (
                DONE["content"][0],
                {"n": 1},
                {"k": None},
            )


async def test_canceling_the_wait_for_a_result_does_not_cancel_the_task() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        wait, other = (scene.start("get_task_result", task_id=name) for _ in range(2))
        await settle()
        wait.cancel()
        await settle()
        asked.reply(**DONE)
        assert (await other)["content"][0] == DONE["content"][0]
        assert scene.backends["one"].cancelled == []


async def test_a_caller_that_waits_long_for_a_result_receives_heartbeats() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        told: list[JsonObject] = []
        wait = scene.start("get_task_result", task_id=name, caller=asking_for_progress(told.append))
        await scene.clock.advance(25)
        asked.reply(**DONE)
        await wait
        await scene.clock.advance(60)
        assert told == [{"progress": 10, "message": "waiting"}, {"progress": 20, "message": "waiting"}]


# How it ends.


async def test_a_completed_task_is_reported_once_with_its_tool_error_flag() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        first, asked = await a_task(scene)
        second, other = await a_task(scene)
        await hush(scene)
        asked.reply(**DONE)
        other.reply(content=[], isError=True)
        told = [(event["type"], event["data"]) for event in await events(scene)]
        assert told == [
            ("task_completed", {"taskId": first, "toolName": "slow", "isError": False}),
            ("task_completed", {"taskId": second, "toolName": "slow", "isError": True}),
        ]
        assert (await scene.call("get_task_result", task_id=second))["isError"] is True


async def test_a_failed_task_reports_the_message_of_the_server() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        wait = scene.start("get_task_result", task_id=name)
        await settle()
        asked.refuse(-32000, "the disk is full")
        error = (await wait)["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "the disk is full" in error["message"]
        assert error["details"]["error"] == {"code": -32000, "message": "the disk is full"}
        task = (await scene.value("get_task", task_id=name))["task"]
        assert (task["status"], task["hasResult"], "disk is full" in task["error"]) == ("failed", False, True)


async def test_heartbeats_of_a_silent_call_do_not_overtake_the_progress_of_the_server() -> None:
    heard: list[JsonObject] = []
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", caller=asking_for_progress(heard.append), server="one", tool="slow")
        asked = await scene.backends["one"].next_asked()
        await scene.clock.advance(20)
        scene.backends["one"].link.listener.handle_notification(
            "notifications/progress", {"progress": 1, "total": 2}, asked.origin
        )
        await scene.clock.advance(10)
        scene.backends["one"].link.listener.handle_notification(
            "notifications/progress", {"progress": 2, "total": 2}, asked.origin
        )
        asked.reply(**DONE)
        await call
        await scene.clock.advance(60)
        values = [item["progress"] for item in heard]
        assert [round(value) for value in values] == [0, 0, 1, 1, 2]
        assert values == sorted(set(values)), "progress grows with every message"


async def test_a_task_past_its_time_to_live_expires_and_its_call_is_canceled() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        wait = scene.start("get_task_result", task_id=name, timeout_ms=601_000)
        await hush(scene)
        await scene.clock.advance(599.9)
        assert not wait.done()
        await scene.clock.advance(0.2)
        error = without_help((await wait)["structuredContent"]["error"])
        assert (error["code"], error["details"]) == ("TOOL_ERR_TIMEOUT", {"taskId": name, "status": "expired"})
        assert [item for item in scene.backends["one"].cancelled if item.method == "tools/call"] == [asked]
        assert len(scene.session.calls) == 0
        assert (await scene.value("get_task", task_id=name))["task"]["status"] == "expired"


async def test_a_caller_may_choose_a_time_to_live_up_to_half_an_hour() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        error = await scene.error("execute_tool", server="one", tool="slow", task_ttl_ms=1_800_001)
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert "task_ttl_ms: may be at most 1800000" in error["message"]
        assert sent(scene) == 0
        name, _ = await a_task(scene, task_ttl_ms=1_800_000)
        brief, _ = await a_task(scene, task_ttl_ms=1)
        await hush(scene)
        await scene.clock.advance(0.1)
        assert [(event["type"], event["data"]) for event in await events(scene)] == [
            ("task_expired", {"taskId": brief, "toolName": "slow", "ttl": 1})
        ]
        await scene.clock.advance(1799)
        assert (await scene.value("get_task", task_id=name))["task"]["status"] == "working"
        await scene.clock.advance(1)
        assert (await scene.value("get_task", task_id=name))["task"]["status"] == "expired"


async def test_a_finished_task_is_kept_for_five_minutes_and_then_deleted() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        asked.reply(**DONE)
        await settle()
        await scene.clock.advance(299.9)
        assert (await scene.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]
        await scene.clock.advance(0.2)
        for tool in ("get_task_result", "get_task", "cancel_task"):
            assert (await scene.error(tool, task_id=name))["code"] == "ERR_TASK_NOT_FOUND"
        assert await scene.value("list_tasks", include_completed=True) == {"tasks": []}


async def test_canceling_a_task_notifies_the_backend_and_a_second_cancellation_has_no_effect() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        wait = scene.start("get_task_result", task_id=name)
        await hush(scene)
        first = await scene.value("cancel_task", task_id=name)
        assert (first["success"], name in first["message"]) == (True, True)
        error = (await wait)["structuredContent"]["error"]
        assert (error["code"], "was cancelled" in error["message"]) == ("TOOL_ERR_EXECUTION_FAILED", True)
        assert scene.backends["one"].cancelled == [asked]
        second = await scene.value("cancel_task", task_id=name)
        assert (second["success"], "cancelled already" in second["message"]) == (False, True)
        asked.answer.cancel()
        assert await event_types(scene) == []


async def test_canceling_a_finished_task_leaves_its_result() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        asked.reply(**DONE)
        await settle()
        assert (await scene.value("cancel_task", task_id=name))["success"] is False
        assert (await scene.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]


async def test_a_canceled_request_cancels_the_backend_call() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        call, asked = await a_call(scene)
        call.cancel()
        await settle()
        assert call.cancelled()
        assert scene.backends["one"].cancelled == [asked]
        assert len(scene.session.calls) == 0
        assert await event_types(scene) == []
        await scene.clock.advance(200)
        assert await scene.value("list_tasks", include_completed=True) == {"tasks": []}


async def test_a_disconnected_backend_fails_its_working_tasks_and_keeps_finished_ones() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        finished, asked = await a_task(scene)
        asked.reply(**DONE)
        lost, _ = await a_task(scene)
        elsewhere, _ = await a_task(scene, "two")
        direct, _ = await a_call(scene)
        await hush(scene)
        scene.backends["one"].link.break_off("the process exited with code 1")
        error = (await direct)["structuredContent"]["error"]
        assert (error["code"], "exited with code 1" in error["message"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
        error = await scene.error("get_task_result", task_id=lost)
        assert (error["code"], "exited with code 1" in error["message"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
        assert (await scene.call("get_task_result", task_id=finished))["content"][0] == DONE["content"][0]
        assert (await scene.value("get_task", task_id=elsewhere))["task"]["status"] == "working"


async def test_removing_a_server_fails_its_tasks() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, _ = await a_task(scene)
        await hush(scene)
        removal = await scene.call("remove_server", name="one")
        told = [event["type"] for event in notices(removal)["events_since_last_response"]]
        assert told == ["task_failed", "server_removed"]
        assert (await scene.error("get_task_result", task_id=name))["code"] == "TOOL_ERR_SERVER_DISCONNECTED"


async def test_a_call_that_ends_with_an_internal_error_fails_at_once() -> None:
    def defect(params: JsonObject) -> JsonObject:
        raise ValueError("a defect with a secret in it")

    async with a_scene(one=ScriptedBackend()) as scene:
        scene.backends["one"].answers["tools/call"] = defect
        error = await scene.error("execute_tool", server="one", tool="slow")
        assert (error["code"], "secret" in error["message"]) == ("TOOL_ERR_EXECUTION_FAILED", False)
        assert len(scene.session.calls) == 0


# Looking.


async def test_tasks_are_listed_by_server_and_status() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        done, asked = await a_task(scene)
        working, _ = await a_task(scene)
        cancelled, _ = await a_task(scene, "two")
        asked.reply(**DONE)
        await settle()
        await scene.call("cancel_task", task_id=cancelled)

        async def listed(**filters: Any) -> list[str]:
            return [task["taskId"] for task in (await scene.value("list_tasks", **filters))["tasks"]]

        assert await listed() == [working]
        assert await listed(include_completed=True) == [done, working, cancelled]
        assert await listed(include_completed=True, server="one") == [done, working]
        assert await listed(status="completed") == [done]
        assert await listed(status="cancelled", server="one") == []
        assert (await scene.error("list_tasks", status="lost"))["code"] == "ERR_INVALID_ARGUMENTS"


async def test_a_task_is_shown_with_its_arguments() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, _ = await a_task(scene, args={"n": 1}, task_ttl_ms=60_000)
        assert await scene.value("get_task", task_id=name) == {
            "task": {
                "taskId": name,
                "server": "one",
                "toolName": "slow",
                "toolArgs": {"n": 1},
                "status": "working",
                "createdAt": "2026-01-01T00:00:00.000Z",
                "lastUpdatedAt": "2026-01-01T00:00:00.000Z",
                "ttl": 60_000,
                "hasResult": False,
            },
            "pending_elicitations": [],
        }


async def test_an_unknown_task_is_an_error_that_names_the_tool_that_lists_tasks() -> None:
    async with a_scene() as scene:
        for tool in ("get_task", "get_task_result", "cancel_task"):
            error = await scene.error(tool, task_id="nobody")
            assert (error["code"], "list_tasks" in error["message"]) == ("ERR_TASK_NOT_FOUND", True)


async def test_the_hundred_and_first_running_call_is_rejected_before_it_is_sent() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        calls = [scene.start("execute_tool", server="one", tool="slow", timeout_ms=0) for _ in range(100)]
        await scene.clock.advance(0)
        await asyncio.gather(*calls)
        error = await scene.error("execute_tool", server="one", tool="slow")
        assert (error["code"], "cancel_task" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        assert sent(scene) == 100
        await scene.call("cancel_task", task_id=task_id(calls[0].result()))
        name, _ = await a_task(scene)
        assert name
        assert sent(scene) == 101


# Everything at once.

HAPPENINGS = [
    "complete",
    "fail",
    "cancel_task",
    "pass_time",
    "disconnect",
    "cancel_request",
    "client_timeout",
    "ask",
    "stop",
]
TERMINAL = {"task_completed", "task_failed", "task_cancelled", "task_expired"}


async def play(script: list[tuple[int, str]], *, starts_as_task: bool) -> None:
    """Run each turn's events in that turn, and check that there was exactly one outcome."""
    limits = Limits(task_ttl_seconds=1)
    async with a_scene(limits=limits, one=ScriptedBackend()) as scene:
        backend, session = scene.backends["one"], scene.session
        await hush(scene)
        started = RequestContext()
        call, asked = await a_call(scene, timeout_ms=0 if starts_as_task else 1000, caller=started)
        started.task = call
        told: list[JsonObject] = []
        if starts_as_task:
            scene.clock.jump(0)
            await settle()
        waiters = [scene.start("get_task_result", task_id=task.task_id) for task in session.tasks.all()]
        await settle(3)

        def happen(what: str) -> None:
            match what:
                case "complete":
                    if not asked.answer.done():
                        asked.reply(**DONE)
                case "fail":
                    if not asked.answer.done():
                        asked.refuse(-1, "no")
                        asked.answer.exception()  # perhaps nobody waits for it any more
                case "cancel_task":
                    for task in session.tasks.all():
                        session.calls.cancel_task(task.task_id)
                case "pass_time":
                    scene.clock.jump(1.01)
                case "disconnect":
                    backend.link.break_off("lost")
                case "cancel_request":
                    started.cancel()
                case "client_timeout":
                    started.abandon()
                case "ask":
                    session.calls.promote_for_question([cast(Call, asked.origin)])
                case "stop":
                    session.calls.stop()

        for turn in range(max(turn for turn, _ in script) + 1):
            for when, what in script:
                if when == turn:
                    happen(what)
            await asyncio.sleep(0)
        await settle()
        happen("complete")  # if nothing else ended it, this does, and no time need pass
        await settle()
        tasks = session.tasks.all()
        for waiter in waiters:
            waiter.cancel()
        carried = {id(reply): reply for reply in [call, *waiters] if reply.done() and not reply.cancelled()}
        for reply in carried.values():
            told += events_in(reply.result())
        told += await events(scene)
        for what in HAPPENINGS:  # later events change nothing
            if what != "pass_time":
                happen(what)
            await settle(3)
        told += await events(scene)
        kinds = [event["type"] for event in told if event["type"].startswith("task_")]
        assert len(tasks) <= 1
        assert len({event["id"] for event in told}) == len(told)
        assert kinds.count("task_created") == len(tasks)
        ends = [kind for kind in kinds if kind in TERMINAL]
        was_told = any(waiter.done() and not waiter.cancelled() for waiter in waiters)  # by get_task_result itself
        assert len(ends) <= len(tasks) <= len(ends) + was_told
        assert sent(scene) == 1
        assert len(session.calls) == 0
        if tasks:
            assert kinds == ["task_created", f"task_{tasks[0].status}"][: len(kinds)]
            assert session.tasks.all() == tasks
            assert (tasks[0].result is not None) is (tasks[0].status == "completed")
        if call.cancelled():
            return
        result = call.result()
        is_promotion = "proxy_task" in result.get("structuredContent", {})
        assert is_promotion is bool(tasks)


@settings(deadline=None, database=None, max_examples=200)
@given(
    script=st.lists(st.tuples(st.integers(0, 8), st.sampled_from(HAPPENINGS)), min_size=1, max_size=6),
    starts_as_task=st.booleans(),
)
def test_a_call_has_exactly_one_outcome_for_any_concurrent_events(
    script: list[tuple[int, str]], starts_as_task: bool
) -> None:
    asyncio.run(play(script, starts_as_task=starts_as_task))


@pytest.mark.parametrize("starts_as_task", [False, True])
@pytest.mark.parametrize("first", HAPPENINGS)
async def test_two_events_any_few_turns_of_the_loop_apart_have_exactly_one_outcome(
    first: str, starts_as_task: bool
) -> None:
    for second in HAPPENINGS:
        for turns in range(8):
            await play([(0, first), (turns, second)], starts_as_task=starts_as_task)


async def test_every_order_of_four_events_in_one_turn_of_the_loop_has_exactly_one_outcome() -> None:
    chance = random.Random(1)
    for happenings in chance.sample(list(permutations(HAPPENINGS, 4)), 100):
        await play([(0, what) for what in happenings], starts_as_task=chance.random() < 0.5)


async def test_an_evicted_task_result_is_reported_clearly_and_newer_results_stay() -> None:
    async with a_scene(limits=Limits(task_bytes_per_session=5000), one=ScriptedBackend()) as scene:
        ids = []
        for size in (3000, 3000, 1000):
            task, asked = await a_task(scene)
            asked.reply(content=[{"type": "text", "text": "x" * size}])
            await settle()
            ids.append(task)
        error = await scene.error("get_task_result", task_id=ids[0])
        assert error["code"] == "ERR_LIMIT_EXCEEDED"
        assert "completed, but its result was dropped" in error["message"]
        for task in ids[1:]:
            assert not (await scene.call("get_task_result", task_id=task)).get("isError")
        listed = (await scene.value("list_tasks", include_completed=True))["tasks"]
        assert [(item["status"], item["hasResult"]) for item in listed] == [
            ("completed", False),
            ("completed", True),
            ("completed", True),
        ]
        await scene.clock.advance(301)
        assert scene.session.tasks.all() == []


async def test_long_progress_messages_and_errors_are_truncated_in_the_task_list() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        task, asked = await a_task(scene)
        listener = scene.backends["one"].link.listener
        told = {"progress": 1, "total": 2, "message": "m" * 1_000_000, "more": "x" * 1_000_000}
        listener.handle_notification("notifications/progress", told, asked.origin)
        shown = (await scene.value("get_task", task_id=task))["task"]
        assert (shown["progress"]["progress"], shown["progress"]["total"]) == (1, 2)
        assert len(str(shown)) < 100_000
        asked.refuse(-1, "e" * 1_000_000)
        await settle()
        assert len(str(await scene.call("list_tasks", include_completed=True))) < 20_000
        assert len((await scene.error("get_task_result", task_id=task))["message"]) > 1_000_000

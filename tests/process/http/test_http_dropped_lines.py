"""A caller's connection drops during a call: a refreshed page, a closed laptop. The call continues."""

import asyncio
from typing import Any

import pytest

from support.backends.web_backend import WebBackend, WebCall
from support.callers.http_process import EventReader, HttpCaller, HttpProcess, until

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def drop_a_call(caller: HttpCaller, backend: WebBackend, **arguments: Any) -> tuple[WebCall, str | None]:
    """Begin a call that reports one step, and drop the line; returns the call and the last event id heard, if any."""
    backend.steps_at_once = 1
    async with caller.stream("execute_tool", server="web", tool="wait", **arguments) as stream:
        call = await backend.next_call()
        heard = await stream.some(2 if "mcp-session-id" in caller.headers else 1)
        stream.cut()
    return call, heard[-1].event_id


async def told(stream: EventReader) -> dict[str, Any]:
    event = await stream.next()
    assert event is not None
    assert event.message is not None
    return event.message


async def types_of_events(caller: HttpCaller, *wanted: str, **arguments: Any) -> list[str]:
    """The types of what happened, until all that are wanted have."""
    heard: list[str] = []
    while not set(wanted) <= set(heard):
        activity = await caller.value("await_activity", timeout_ms=20_000, **arguments)
        heard += [event["type"] for group in activity["events"] for event in group["events"]]
    return heard


async def test_after_a_page_refresh_progress_reaches_the_new_page_and_the_result_is_kept(
    caller: HttpCaller, backend: WebBackend
) -> None:
    backend.steps_at_once = 1
    async with caller.get() as page:
        async with caller.stream("execute_tool", server="web", tool="wait") as stream:
            call = await backend.next_call()
            heard = await stream.some(2)
            stream.cut()
        step = 2
        call.progress(step, step)
        pushed = asyncio.create_task(told(page))
        while not pushed.done():  # until the server has noticed the cut, steps still wait on the cut stream
            step += 1
            call.progress(step, step)
            await asyncio.wait({pushed}, timeout=0.05)
        message = await pushed
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "t"
        first_pushed = message["params"]["progress"]
        rest = [await told(page) for _ in range(first_pushed, step)]
        assert [item["params"]["progress"] for item in rest] == list(range(first_pushed + 1, step + 1))
    call.finish("kept")
    async with caller.get(heard[-1].event_id) as resumed:
        (*steps, last) = [event.message for event in await resumed.rest()]
    assert [item["params"]["progress"] for item in steps if item] == list(range(2, first_pushed))
    assert last is not None
    assert last["result"]["content"][0]["text"] == "kept"


async def test_an_undelivered_answer_is_a_finished_task_and_waits_on_its_stream(
    caller: HttpCaller, backend: WebBackend
) -> None:
    call, event_id = await drop_a_call(caller, backend)
    await until(lambda: _is_unread(caller, call), "the server notices that the caller is gone")
    call.finish("kept")
    assert await types_of_events(caller, "task_created", "task_completed") == ["task_created", "task_completed"]
    (task,) = (await caller.value("list_tasks", include_completed=True))["tasks"]
    assert (task["status"], task["hasResult"], task["toolName"]) == ("completed", True, "wait")
    result = await caller.call("get_task_result", task_id=task["taskId"])
    assert result["content"][0] == {"type": "text", "text": "kept"}
    async with caller.get(event_id) as resumed:
        answers = [event.message for event in await resumed.rest() if event.message and "result" in event.message]
    assert answers[0]["result"]["content"][0]["text"] == "kept"
    assert not call.was_cancelled.is_set()


async def _is_unread(caller: HttpCaller, call: WebCall) -> bool:
    """Whether a step that is reported now goes to a fresh reader of pushes: then the old line is known to be gone."""
    async with caller.get() as page:
        call.progress(99, 99)
        try:
            return bool(await asyncio.wait_for(told(page), 0.3))
        except TimeoutError:
            return False


async def test_a_call_whose_caller_reconnected_is_no_task(caller: HttpCaller, backend: WebBackend) -> None:
    call, event_id = await drop_a_call(caller, backend)
    async with caller.get(event_id) as resumed:
        call.progress(2, 2)
        assert (await told(resumed))["params"]["progress"] == 2
        call.finish()
        await resumed.rest()
    assert (await caller.value("list_tasks", include_completed=True))["tasks"] == []


async def test_a_dropped_call_of_2026_07_28_becomes_a_task_without_a_cancellation_at_its_backend(
    endpoint: HttpProcess, caller: HttpCaller, backend: WebBackend
) -> None:
    modern = endpoint.modern(emceepee_session="dropped")
    call, _ = await drop_a_call(modern, backend)
    assert "task_created" in await types_of_events(modern, "task_created")
    (task,) = (await modern.value("list_tasks"))["tasks"]
    assert task["status"] == "working"
    call.finish("kept")
    result = await modern.call("get_task_result", task_id=task["taskId"])
    assert result["content"][0] == {"type": "text", "text": "kept"}
    assert not call.was_cancelled.is_set()
    assert not call.was_dropped.is_set()


async def test_disconnecting_any_other_request_of_2026_07_28_cancels_it(endpoint: HttpProcess) -> None:
    modern = endpoint.modern(emceepee_session="listener")
    listen = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
    async with modern.post("subscriptions/listen", listen) as response:
        assert (await told(EventReader(response)))["method"] == "notifications/subscriptions/acknowledged"
        response.close()
    call = {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}
    async with modern.post("tools/call", call) as response:
        assert response.content_type == "text/event-stream"
        response.close()
    assert (await modern.value("list_servers"))["servers"] is not None


@pytest.mark.parametrize("key", [7, "7"])
async def test_a_canceled_request_cancels_the_backend_call(caller: HttpCaller, backend: WebBackend, key: Any) -> None:
    backend.steps_at_once = 1
    async with caller.stream("execute_tool", server="web", tool="wait", key=key) as stream:
        call = await backend.next_call()
        await stream.some(2)
        await caller.notify("notifications/cancelled", {"requestId": str(key) if isinstance(key, int) else int(key)})
        await caller.notify("notifications/cancelled", {"requestId": True})
        assert not call.was_cancelled.is_set()
        await caller.notify("notifications/cancelled", {"requestId": key})
        last = (await stream.rest())[-1].message
    assert last is not None
    assert last["error"] == {"code": -32800, "message": "Request cancelled"}
    async with asyncio.timeout(20):
        await call.was_cancelled.wait()
    assert (await caller.value("list_tasks", include_completed=True))["tasks"] == []


async def test_numeric_and_text_request_ids_are_distinct_over_http(caller: HttpCaller, backend: WebBackend) -> None:
    async with asyncio.timeout(20):
        answers = await asyncio.gather(
            *(
                caller.request(
                    "tools/call",
                    {"name": "execute_tool", "arguments": {"server": "web", "tool": "echo", "args": {"n": number}}},
                    key=key,
                )
                for number, key in enumerate([1, "1", 1, "1"])
            )
        )
    assert [answer["id"] for answer in answers] == [1, "1", 1, "1"]
    assert [answer["result"]["content"][0]["text"] for answer in answers] == [f'{{"n": {n}}}' for n in range(4)]

"""A caller's stream is cut and resumed: each message arrives exactly once, and the stream ends."""

import asyncio

import pytest

from support.backends.web_backend import WebBackend
from support.callers.http_process import HttpCaller, HttpProcess, SentEvent

STEPS = 100


pytestmark = pytest.mark.asyncio(loop_scope="module")


def steps(events: list[SentEvent]) -> list[int]:
    return [
        event.message["params"]["progress"]
        for event in events
        if event.message is not None and event.message.get("method") == "notifications/progress"
    ]


def results(events: list[SentEvent]) -> list[str]:
    return [
        event.message["result"]["content"][0]["text"]
        for event in events
        if event.message is not None and "result" in event.message
    ]


async def cut_and_resume(caller: HttpCaller, backend: WebBackend, boundary: int) -> list[SentEvent]:
    """All that a caller hears which loses its line behind the event number `boundary`, and comes back."""
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        if boundary > STEPS + 1:
            call.finish()
        heard = await stream.some(boundary)
        stream.cut()
    if boundary <= STEPS + 1:
        call.finish()
    assert heard[-1].event_id is not None
    async with caller.get(heard[-1].event_id) as resumed:
        return heard + await resumed.rest()


async def test_a_stream_cut_after_any_event_is_resumed_without_loss(caller: HttpCaller, backend: WebBackend) -> None:
    backend.steps_at_once = STEPS
    for boundary in range(1, STEPS + 3):
        heard = await cut_and_resume(caller, backend, boundary)
        assert steps(heard) == list(range(1, STEPS + 1)), boundary
        assert results(heard) == ["done"], boundary


async def test_eight_concurrently_cut_callers_resume_their_own_streams(
    endpoint: HttpProcess, caller: HttpCaller, backend: WebBackend
) -> None:
    backend.steps_at_once = STEPS
    callers = [caller, *[await endpoint.caller() for _ in range(7)]]

    async def cut_often(number: int, caller: HttpCaller) -> None:
        for boundary in range(number + 1, STEPS + 3, 13):
            heard = await cut_and_resume(caller, backend, boundary)
            assert steps(heard) == list(range(1, STEPS + 1)), (number, boundary)
            assert results(heard) == ["done"], (number, boundary)

    await asyncio.gather(*(cut_often(number, caller) for number, caller in enumerate(callers)))


async def test_messages_without_a_reader_wait_on_the_stream(caller: HttpCaller, backend: WebBackend) -> None:
    backend.steps_at_once = 3
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        heard = await stream.some(4)
        stream.cut()
    call.progress(4, 50)
    async with caller.get(heard[-1].event_id) as resumed:
        heard += await resumed.some(47)
        call.progress(51, STEPS)
        call.finish()
        heard += await resumed.rest()
    assert steps(heard) == list(range(1, STEPS + 1))
    assert results(heard) == ["done"]


async def test_a_stream_may_be_cut_repeatedly(caller: HttpCaller, backend: WebBackend) -> None:
    backend.steps_at_once = STEPS
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        call.finish()
        heard = await stream.some(7)
        stream.cut()
    while not results(heard):
        async with caller.get(heard[-1].event_id) as resumed:
            heard += await resumed.some(min(7, STEPS + 2 - len(heard)))
            resumed.cut()
    assert steps(heard) == list(range(1, STEPS + 1))


async def test_a_finished_stream_can_be_read_again_and_ends(caller: HttpCaller, backend: WebBackend) -> None:
    backend.steps_at_once = 2
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        call.finish()
        heard = await stream.rest()
    assert heard[0].message is None
    async with caller.get(heard[0].event_id) as again:
        assert await again.rest() == heard[1:]
    async with caller.get(heard[-1].event_id) as over:
        assert await over.rest() == []


async def test_a_resumed_stream_replaces_the_old_connection(caller: HttpCaller, backend: WebBackend) -> None:
    """The old connection may be dead without notice: it ends, and only the newest one receives the rest."""
    backend.steps_at_once = 1
    async with caller.stream("execute_tool", server="web", tool="wait") as first:
        call = await backend.next_call()
        (_, step) = await first.some(2)
        async with caller.get(step.event_id) as second:
            assert await first.rest() == []
            async with caller.get(step.event_id) as third:
                assert await second.rest() == []
                call.finish()
                assert results(await third.rest()) == ["done"]


async def test_an_unknown_event_id_is_rejected_and_a_new_stream_opens(caller: HttpCaller) -> None:
    headers = caller.headers | {"last-event-id": "01UNKNOWN0000000000000000"}
    async with caller.endpoint.http.get(caller.endpoint.url, headers=headers) as response:
        assert response.status == 400
        assert "Open a new stream" in (await response.json())["error"]["message"]
    async with caller.get():
        pass


async def test_event_ids_of_another_session_are_unknown(
    endpoint: HttpProcess, caller: HttpCaller, backend: WebBackend
) -> None:
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        (await backend.next_call()).finish()
        heard = await stream.rest()
    stranger = await endpoint.caller()
    headers = stranger.headers | {"last-event-id": heard[0].event_id or ""}
    async with endpoint.http.get(endpoint.url, headers=headers) as response:
        assert response.status == 400


async def test_the_newest_push_stream_receives_the_messages(caller: HttpCaller) -> None:
    await caller.request("resources/subscribe", {"uri": "emceepee://events"})
    async with caller.get() as older, caller.get() as newer:
        assert await older.rest() == []
        await caller.value("set_timer", duration_ms=1, message="tea")
        event = await newer.next()
        assert event is not None
        assert event.message is not None
        assert event.message["method"] == "notifications/resources/updated"


async def test_a_caller_that_only_supports_tools_can_subscribe_to_events(caller: HttpCaller) -> None:
    subscription = {"server": "emceepee", "uri": "emceepee://events"}
    assert await caller.value("subscribe_resource", **subscription) == {"subscribed": "emceepee://events"}
    async with caller.get() as stream:
        await caller.value("set_timer", duration_ms=1, message="tea")
        event = await stream.next()
        assert event is not None
        assert event.message is not None
        assert event.message["params"] == {"uri": "emceepee://events"}


async def test_unread_pushed_messages_wait_for_the_next_stream(caller: HttpCaller) -> None:
    await caller.request("resources/subscribe", {"uri": "emceepee://events"})
    await caller.value("set_timer", duration_ms=1, message="tea")
    await caller.value("await_activity")
    async with caller.get() as stream:
        first = await stream.next()
        assert first is not None
        assert first.message is not None
        assert first.message["params"] == {"uri": "emceepee://events"}


async def test_a_quick_answer_is_plain_json_and_a_slow_one_a_stream(caller: HttpCaller) -> None:
    async with caller.post("ping") as response:
        assert response.content_type == "application/json"
    call = {"name": "await_activity", "arguments": {"timeout_ms": 1500}}
    async with caller.post("tools/call", call) as response:
        assert response.content_type == "text/event-stream"
        assert response.headers["cache-control"] == "no-cache, no-transform"


async def test_a_caller_that_accepts_no_streams_gets_one_plain_json_answer(
    caller: HttpCaller, backend: WebBackend
) -> None:
    caller.headers["accept"] = "application/json"
    call = {"name": "execute_tool", "arguments": {"server": "web", "tool": "wait"}, "_meta": {"progressToken": 1}}
    asking = asyncio.create_task(caller.request("tools/call", call))
    at_backend = await backend.next_call()
    at_backend.progress(1, 5)
    at_backend.finish("plain")
    assert (await asking)["result"]["content"][0]["text"] == "plain"


@pytest.mark.usefixtures("caller")
async def test_a_caller_of_2025_06_18_gets_no_empty_first_event(endpoint: HttpProcess, backend: WebBackend) -> None:
    caller = await endpoint.caller("2025-06-18")
    backend.steps_at_once = STEPS
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        heard = await stream.some(10)
        assert steps(heard) == list(range(1, 11))
        stream.cut()
    call.finish()
    async with caller.get(heard[-1].event_id) as resumed:
        heard += await resumed.rest()
    assert steps(heard) == list(range(1, STEPS + 1))
    assert results(heard) == ["done"]

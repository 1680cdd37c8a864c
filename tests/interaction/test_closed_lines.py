"""A caller disconnects during a call, or before it has read the answer. No answer and no event is lost."""

from collections.abc import AsyncIterator

import pytest

from emceepee.server.http.exchange import RETURN_SECONDS
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked
from support.fakes.clock import settle
from support.figures import record_figure
from support.in_process.asgi_caller import AsgiCaller, AsgiRequest, an_asgi_caller
from support.sessions.asking import events_in

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
async def modern() -> AsyncIterator[AsgiCaller]:
    async with an_asgi_caller(is_modern=True) as made:
        yield made


@pytest.fixture
async def caller() -> AsyncIterator[AsgiCaller]:
    async with an_asgi_caller() as made:
        yield made


async def a_call(caller: AsgiCaller, seconds: float) -> tuple[AsgiRequest, Asked]:
    """A call that has been waited for that long."""
    line = caller.start("execute_tool", server="one", tool="slow")
    asked = await caller.backend.next_asked()
    await caller.clock.advance(seconds)
    return line, asked


def tasks(caller: AsgiCaller) -> list[str]:
    """How the tasks stand."""
    return [str(task.status) for task in caller.session.tasks.all()]


async def told(caller: AsgiCaller) -> list[str]:
    """The types of events in the next reply."""
    return [str(event["type"]) for event in events_in(await caller.call("list_timers"))]


async def result_of_the_task(caller: AsgiCaller) -> JsonObject:
    (task,) = caller.session.tasks.all()
    return await caller.call("get_task_result", task_id=task.task_id)


@pytest.fixture(params=["handshake", "2026-07-28"])
async def either(request: pytest.FixtureRequest) -> AsyncIterator[AsgiCaller]:
    async with an_asgi_caller(is_modern=request.param == "2026-07-28") as made:
        yield made


def happens(caller: AsgiCaller, *numbers: int) -> None:
    """So many events, of which nobody has heard yet."""
    for number in numbers:
        caller.backend.link.listener.handle_notification("notifications/odd", {"n": number}, None)


def numbers(events: list[JsonObject]) -> list[int]:
    return [event["data"]["params"]["n"] for event in events if event["type"] == "notification"]


# Both eras, however quick the answer.


@pytest.mark.parametrize("seconds", [0, 0.04, 0.08])
async def test_the_answer_for_a_disconnected_caller_becomes_a_finished_task(either: AsgiCaller, seconds: float) -> None:
    line, asked = await a_call(either, seconds)
    line.hang_up()
    asked.reply(**DONE)
    await line.served()
    assert tasks(either) == ["completed"]
    assert await told(either) == ["task_created", "task_completed"]
    assert (await result_of_the_task(either))["content"] == DONE["content"]


@pytest.mark.parametrize("seconds", [0, 0.08, 3])
async def test_an_answer_that_was_written_but_not_read_becomes_a_finished_task(
    either: AsgiCaller, seconds: float
) -> None:
    line, asked = await a_call(either, seconds)
    asked.reply(**DONE)
    await line.served()
    assert tasks(either) == []
    line.lose()
    assert await told(either) == ["task_created", "task_completed"]
    assert (await result_of_the_task(either))["content"] == DONE["content"]


async def test_an_answer_that_was_read_creates_no_task(either: AsgiCaller) -> None:
    line, asked = await a_call(either, 0)
    asked.reply(**DONE)
    await line.served()
    line.hang_up()
    await settle()
    assert (tasks(either), await told(either)) == ([], [])


@pytest.mark.parametrize("tool", ["list_timers", "await_activity", "execute_tool", "get_task"])
async def test_events_of_an_unread_reply_are_repeated_in_order(either: AsgiCaller, tool: str) -> None:
    happens(either, 1, 2)
    arguments = {"server": "one", "tool": "slow"} if tool == "execute_tool" else {}
    line = either.start(tool, **arguments)  # an error of get_task, which is not told which
    if tool == "execute_tool":
        (await either.backend.next_asked()).reply(**DONE)
    assert b'"n":1' in (await line.served()).answered.body.replace(b"\\", b"")
    happens(either, 3)
    line.lose()
    assert numbers(events_in(await either.call("list_timers"))) == [1, 2, 3]
    assert numbers(events_in(await either.call("list_timers"))) == []


async def test_events_wait_for_the_next_reply_if_the_caller_disconnects_before_this_one(either: AsgiCaller) -> None:
    happens(either, 1)
    line = either.start("list_timers")
    line.hang_up()
    await line.served()
    assert numbers(events_in(await either.call("list_timers"))) == [1]


async def test_repeated_events_wake_waiting_callers(either: AsgiCaller) -> None:
    happens(either, 1)
    lost = await either.start("list_timers").served()
    waiting = either.start("await_activity")
    await settle()
    lost.lose()
    activity = (await waiting.served()).message["result"]["structuredContent"]
    assert activity["triggers"] == [{"type": "event", "server": "one", "eventType": "notification"}]
    assert [event["data"]["params"]["n"] for group in activity["events"] for event in group["events"]] == [1]


async def test_of_two_concurrent_replies_only_one_carries_an_event_and_only_the_lost_one_is_repeated(
    either: AsgiCaller,
) -> None:
    happens(either, 1)
    first = either.start("list_timers")
    happens(either, 2)
    second = either.start("list_timers")
    replies = [numbers(events_in((await line.served()).message["result"])) for line in (first, second)]
    assert sorted(number for found in replies for number in found) == [1, 2]
    second.lose()
    first.hang_up()
    assert numbers(events_in(await either.call("list_timers"))) == replies[1]


# 2026-07-28.


@pytest.mark.parametrize("seconds", [0.5, 0.9, 1.0, 20])
async def test_a_disconnect_of_a_2026_07_28_caller_makes_its_call_a_task_at_once(
    modern: AsgiCaller, seconds: float
) -> None:
    """This holds even before the answer has become a stream."""
    line, asked = await a_call(modern, seconds)
    line.hang_up()
    await settle()
    assert tasks(modern) == ["working"]
    await line.served()
    assert await told(modern) == ["task_created"]
    asked.reply(**DONE)
    assert (await result_of_the_task(modern))["content"][0] == DONE["content"][0]
    assert modern.backend.cancelled == []


@pytest.mark.parametrize("seconds", [0, 0.3])
async def test_a_very_early_disconnect_of_a_2026_07_28_caller_is_noticed_after_half_a_second(
    modern: AsgiCaller, seconds: float
) -> None:
    line, _ = await a_call(modern, seconds)
    line.hang_up()
    await settle()
    assert tasks(modern) == []
    await modern.clock.advance(0.5 - seconds)
    assert tasks(modern) == ["working"]
    await line.served()
    assert await told(modern) == ["task_created"]


async def test_a_quick_answer_to_a_2026_07_28_caller_starts_no_disconnect_watcher_and_a_slow_one_leaves_none(
    modern: AsgiCaller,
) -> None:
    for seconds in (0.4, 0.7, 3):
        line, asked = await a_call(modern, seconds)
        assert line.reads == (seconds >= 0.5)
        asked.reply(**DONE)
        assert (await line.served()).message["result"]["content"] == DONE["content"]
        await settle()
        assert line.reads == 0
        line.hang_up()
        await settle()
    assert tasks(modern) == []


@pytest.mark.parametrize("turns", range(10))
@pytest.mark.parametrize("seconds", [0.7, 3])
async def test_a_disconnect_of_a_2026_07_28_caller_that_races_with_the_result_loses_nothing(
    modern: AsgiCaller, seconds: float, turns: int
) -> None:
    line, asked = await a_call(modern, seconds)
    asked.reply(**DONE)
    await settle(turns)
    was_written, was_whole = b'"done"' in line.answered.body, line.answered.is_whole
    line.hang_up()
    await settle()
    kept = tasks(modern)
    assert kept in ([], ["completed"])
    assert bool(kept) or was_written
    assert not (kept and was_whole)
    assert await told(modern) == (["task_created", "task_completed"] if kept else [])


# The handshake era.


async def test_a_cut_stream_that_is_not_resumed_makes_its_call_a_task(caller: AsgiCaller) -> None:
    line, asked = await a_call(caller, 2)
    line.hang_up()
    await caller.clock.advance(RETURN_SECONDS - 0.1)
    assert tasks(caller) == []
    await caller.clock.advance(0.1)
    assert tasks(caller) == ["working"]
    await line.served()
    assert await told(caller) == ["task_created"]
    asked.reply(**DONE)
    assert (await result_of_the_task(caller))["content"][0] == DONE["content"][0]
    assert caller.backend.cancelled == []


async def test_a_late_resume_finds_the_task_on_the_stream_and_consumes_no_event(caller: AsgiCaller) -> None:
    line, _ = await a_call(caller, 2)
    line.hang_up()
    await caller.clock.advance(60)
    late = await caller.come_back(line.events[-1].event_id).served()
    (task,) = caller.session.tasks.all()
    result = late.message["result"]
    assert result["structuredContent"]["proxy_task"]["task_id"] == task.task_id
    assert events_in(result) == []
    assert await told(caller) == ["task_created"]


async def test_a_disconnect_before_the_stream_started_makes_the_call_a_task(caller: AsgiCaller) -> None:
    line, _ = await a_call(caller, 0.2)
    line.hang_up()
    await caller.clock.advance(1 + RETURN_SECONDS)
    assert tasks(caller) == ["working"]
    assert await told(caller) == ["task_created"]


async def test_a_resumed_stream_creates_no_task(caller: AsgiCaller) -> None:
    line, asked = await a_call(caller, 2)
    line.hang_up()
    await caller.clock.advance(RETURN_SECONDS - 1)
    back = caller.come_back(line.events[-1].event_id)
    await caller.clock.advance(30)
    assert tasks(caller) == []
    asked.reply(**DONE)
    assert (await back.served()).message["result"]["content"][0] == DONE["content"][0]
    await caller.clock.advance(60)
    assert (tasks(caller), await told(caller)) == ([], [])


async def test_a_stream_that_is_cut_again_can_be_resumed_for_the_full_time_again(caller: AsgiCaller) -> None:
    line, _ = await a_call(caller, 2)
    line.hang_up()
    await caller.clock.advance(RETURN_SECONDS - 1)
    back = caller.come_back(line.events[-1].event_id)
    await settle()
    back.hang_up()
    await caller.clock.advance(RETURN_SECONDS - 0.1)
    assert tasks(caller) == []
    await caller.clock.advance(0.1)
    assert tasks(caller) == ["working"]


async def test_an_answer_before_the_resume_waits_on_the_stream(caller: AsgiCaller) -> None:
    line, asked = await a_call(caller, 2)
    line.hang_up()
    await caller.clock.advance(1)
    asked.reply(**DONE)
    await line.served()
    assert tasks(caller) == ["completed"]
    await caller.clock.advance(RETURN_SECONDS)
    back = await caller.come_back(line.events[-1].event_id).served()
    assert back.message["result"]["content"] == DONE["content"]
    assert await told(caller) == ["task_created", "task_completed"]


async def test_a_closed_session_has_no_streams_to_resume(caller: AsgiCaller) -> None:
    line, asked = await a_call(caller, 2)
    line.hang_up()
    await settle()
    await caller.installation.directory.close_all()
    await line.served()
    await caller.clock.advance(60)
    assert caller.backend.cancelled == [asked]


# Beside a flood.


def progresses(caller: AsgiCaller, asked: Asked, count: int) -> None:
    """The server reports so many steps of the call, at once."""
    listener = caller.backend.link.listener
    for step in range(1, count + 1):
        listener.handle_notification("notifications/progress", {"progressToken": 1, "progress": step}, asked.origin)


async def answers_after(caller: AsgiCaller, flood: int, rounds: int) -> int:
    """How many answers a caller finds when it comes back behind a neighbor's flood."""
    found = 0
    for _ in range(rounds):
        line, asked = await a_call(caller, 2)
        asked.reply(**DONE)
        first = (await line.served()).events[0]
        neighbor = caller.start("execute_tool", server="one", tool="slow", token="t")
        flooding = await caller.backend.next_asked()
        progresses(caller, flooding, flood)
        await settle()
        back = await caller.come_back(first.event_id).served()
        found += back.answered.status == 200 and back.message.get("result", {}).get("content") == DONE["content"]
        flooding.reply(**DONE)
        await neighbor.served()
    return found


@pytest.mark.parametrize("flood", [900, 1100, 3000])
async def test_a_written_answer_stays_available_during_a_progress_flood_of_another_call(
    caller: AsgiCaller, flood: int
) -> None:
    found = await answers_after(caller, flood, rounds=20)
    record_figure(f"{flood} messages of a neighbor: {found} of 20 callers that come back find their answer")
    assert found == 20


async def test_a_stream_cut_early_in_its_own_progress_flood_resumes_up_to_the_answer(caller: AsgiCaller) -> None:
    line = caller.start("execute_tool", server="one", tool="slow", token="t")
    asked = await caller.backend.next_asked()
    progresses(caller, asked, 10)
    await settle()
    early = line.events[-1]
    progresses(caller, asked, 3000)
    asked.reply(**DONE)
    await line.served()
    back = await caller.come_back(early.event_id).served()
    assert back.answered.status == 200
    assert back.message["result"]["content"] == DONE["content"]

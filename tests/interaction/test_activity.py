"""Events are delivered once, on the next reply or to a waiting caller; open questions are always listed."""

import asyncio
import json
import logging
import random
from typing import Any

import pytest

from emceepee.server.dispatch import BadCall
from emceepee.sessions.events import activity
from emceepee.state.limits import Limits
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import a_task, elicit, event_types, events, events_in, hush, notices, open_ids, sample
from support.sessions.request_contexts import asking_for_progress
from support.sessions.scene import Scene, a_scene


def tell(scene: Scene, number: int, server: str = "one") -> None:
    """The backend notifies of something."""
    scene.backends[server].link.listener.handle_notification("notifications/tick", {"n": number}, None)


def numbers(report: JsonObject) -> list[int]:
    """Which notifications a report of await_activity delivers."""
    found = [event for group in report["events"] for event in group["events"]]
    return [event["data"]["params"]["n"] for event in found if event["type"] == "notification"]


# On every reply.


async def test_every_reply_delivers_new_events_once_after_its_own_content() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        tell(scene, 2)
        first, second = await scene.call("list_timers"), await scene.call("list_timers")
        assert [json.loads(block["text"]) for block in second["content"]] == [{"timers": []}]
        [told, also] = events_in(first)
        assert len(first["content"]) == 2
        assert told == {
            "id": told["id"],
            "type": "notification",
            "server": "one",
            "createdAt": "2026-01-01T00:00:00.000Z",
            "data": {
                "method": "notifications/tick",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "params": {"n": 1},
            },
        }
        assert told["id"] < also["id"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_task", {"task_id": "nobody"}),
        ("get_task", {}),
        ("execute_tool", {"server": "nobody", "tool": "x"}),
        ("set_timer", {"duration_ms": -1, "message": "x"}),
        ("await_activity", {"timeout_ms": 1}),
    ],
)
async def test_error_replies_deliver_new_events(tool: str, arguments: JsonObject) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        sample(scene.backends["one"])
        await settle()
        result = await scene.call(tool, **arguments)
        assert result["isError"] is True
        assert [event["type"] for event in events_in(result)] == ["notification", "sampling_request"]
        assert len(notices(result)["pending_client_action"]["sampling_requests"]) == 1
        assert await event_types(scene) == []


async def test_the_result_of_a_backend_keeps_its_content_and_new_events_follow_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        blocks = [{"type": "text", "text": "a"}, {"type": "novel", "x": None}]
        scene.backends["one"].answers["tools/call"] = lambda _: {"content": blocks, "structuredContent": {"n": 1}}
        tell(scene, 1)
        result = await scene.call("execute_tool", server="one", tool="echo")
        assert result["content"][:2] == blocks
        told = {"events_since_last_response": events_in(result)}
        assert result["structuredContent"] == {"n": 1, "emceepee": told}
        assert len(events_in(result)) == 1
        again = await scene.call("execute_tool", server="one", tool="echo")
        assert again == {"content": blocks, "structuredContent": {"n": 1}}


async def test_a_request_without_a_tool_consumes_no_events() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        with pytest.raises(BadCall):
            await scene.call("no_such_tool")
        assert await event_types(scene) == ["notification"]


async def test_open_questions_are_in_every_reply_until_they_are_answered() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"], "x" * 500)
        long, wish = elicit(scene.backends["one"], "y" * 501), sample(scene.backends["one"])
        [first, second], [third] = await open_ids(scene), await open_ids(scene, "sampling_requests")
        pending = {
            "elicitations": [
                {"requestId": first, "server": "one", "message": "x" * 500},
                {"requestId": second, "server": "one", "message": "y" * 499 + "…"},
            ],
            "sampling_requests": [{"requestId": third, "server": "one"}],
        }
        for reply in (
            await scene.call("list_timers"),
            await scene.call("get_task", task_id="nobody"),
            await scene.call("list_servers"),
        ):
            assert notices(reply)["pending_client_action"] == pending
        wait = scene.start("await_activity", timeout_ms=100)
        await scene.clock.advance(0.1)
        assert (await wait)["structuredContent"]["pending_client"] == pending
        await scene.call("respond_to_elicitation", request_id=first, action="decline")
        await scene.call("respond_to_elicitation", request_id=second, action="decline")
        last = await scene.call("cancel_sampling_request", request_id=third)
        assert "pending_client_action" not in notices(last)
        assert list(await asyncio.gather(asking, long)) == [{"action": "decline"}] * 2
        await asyncio.wait({wish}, timeout=5)
        assert wish.exception() is not None


# Waiting.


async def test_await_activity_returns_at_once_if_an_event_is_undelivered() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1, "two")
        tell(scene, 2, "one")
        tell(scene, 3, "two")
        result = await scene.call("await_activity")
        report = result["structuredContent"]
        assert [json.loads(block["text"]) for block in result["content"]] == [report]
        assert (report["triggers"], report["pending_server"]) == ([{"type": "immediate"}], [])
        grouped = [(group["server"], [event["id"] for event in group["events"]]) for group in report["events"]]
        assert [(server, len(ids)) for server, ids in grouped] == [("two", 2), ("one", 1)]
        assert numbers(report) == [1, 3, 2]
        assert report["lastEventId"] == grouped[0][1][1]
        assert (set(report["events"][0]["events"][0]), "cursorLost" in report, "events_dropped" in report) == (
            {"id", "type", "server", "createdAt", "data"},
            False,
            False,
        )


async def test_await_activity_ends_with_the_first_event_and_names_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        wait = scene.start("await_activity")
        await scene.clock.advance(29)
        assert not wait.done()
        tell(scene, 1)
        tell(scene, 2)
        await settle()
        report = (await wait)["structuredContent"]
        trigger = {"type": "event", "server": "one", "eventType": "notification"}
        assert (report["triggers"], numbers(report)) == ([trigger], [1, 2])
        assert await event_types(scene) == []


async def test_await_activity_without_events_ends_with_a_timeout_and_lists_pending_work() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        name, _ = await a_task(scene, "two")
        elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        wait = scene.start("await_activity", timeout_ms=100)
        await scene.clock.advance(0.1)
        report = (await wait)["structuredContent"]
        last = report.pop("lastEventId")
        assert report == {
            "triggers": [{"type": "timeout"}],
            "events": [],
            "pending_server": [
                {"server": "two", "working_tasks": [{"taskId": name, "toolName": "slow", "status": "working"}]}
            ],
            "pending_client": {
                "elicitations": [{"requestId": request_id, "server": "one", "message": "Your name?"}],
                "sampling_requests": [],
            },
        }
        assert last == scene.session.activity.last_event_id


async def test_a_disconnected_server_is_a_trigger_of_its_own_in_await_activity() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, _ = await a_task(scene)
        await hush(scene)
        wait = scene.start("await_activity")
        await settle()
        scene.backends["one"].link.break_off("it fell over")
        report = (await wait)["structuredContent"]
        assert report["triggers"] == [{"type": "server_disconnected", "server": "one"}]
        lost = report["events"][0]["events"][0]
        assert lost["data"] == {"name": "one", "reason": "it fell over"}
        await settle()
        assert (await scene.value("get_task", task_id=name))["task"]["status"] == "failed"


async def test_a_session_without_events_has_no_last_event_id() -> None:
    async with a_scene() as scene:
        wait = scene.start("await_activity")
        await scene.clock.advance(30)
        assert (await wait)["structuredContent"]["lastEventId"] is None


@pytest.mark.parametrize("timeout", [0, 99, 900_001, -5, "soon", 150.5, None])
async def test_await_activity_rejects_an_invalid_duration(timeout: Any) -> None:
    async with a_scene() as scene:
        error = await scene.error("await_activity", timeout_ms=timeout)
        assert (error["code"], "timeout_ms" in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)


async def test_a_caller_with_a_progress_token_receives_a_heartbeat_every_ten_seconds_during_await_activity() -> None:
    async with a_scene() as scene:
        told: list[JsonObject] = []
        wait = scene.start("await_activity", caller=asking_for_progress(told.append), timeout_ms=25_000)
        await scene.clock.advance(10)
        assert told == [{"progress": 10, "total": 25, "message": "waiting"}]
        await scene.clock.advance(15)
        await wait
        await scene.clock.advance(60)
        assert [beat["progress"] for beat in told] == [10, 20]


# Lost replies, lost places, lost events.


async def test_events_after_a_given_id_are_delivered_again_to_a_caller_that_lost_a_reply() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        seen = (await scene.value("await_activity"))["lastEventId"]
        tell(scene, 2)
        tell(scene, 3)
        await hush(scene)  # the reply that was lost
        tell(scene, 4)
        report = await scene.value("await_activity", last_event_id=seen)
        assert (report["triggers"], numbers(report)) == ([{"type": "immediate"}], [2, 3, 4])
        assert "cursorLost" not in report
        assert await event_types(scene) == []


@pytest.mark.parametrize("pages_on", ["by itself", "with last_event_id"])
async def test_repeated_events_over_the_size_limit_follow_in_the_next_calls(pages_on: str) -> None:
    """600 events of 250 bytes: each reply respects its limit, and every event is delivered once."""
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 0)
        seen = (await scene.value("await_activity"))["lastEventId"]
        for number in range(1, 601):
            tell(scene, number)
        while (await scene.value("await_activity")).get("more"):
            pass  # what these replies carried is what the caller lost
        report = await scene.value("await_activity", last_event_id=seen)
        found, replies = numbers(report), 1
        while more := report.get("more"):
            assert len(encode(report)) <= 65_536
            assert len(found) + more == 600
            again = {} if pages_on == "by itself" else {"last_event_id": report["lastEventId"]}
            report = await scene.value("await_activity", **again)
            found, replies = found + numbers(report), replies + 1
        assert found == [*range(1, 601)]
        assert replies > 2
        assert await event_types(scene) == []


async def test_a_caller_that_has_received_all_events_waits_for_more() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        tell(scene, 1)
        seen = (await scene.value("await_activity"))["lastEventId"]
        wait = scene.start("await_activity", last_event_id=seen)
        await settle()
        assert not wait.done()
        tell(scene, 2)
        assert numbers((await wait)["structuredContent"]) == [2]


async def test_an_unknown_event_id_returns_all_stored_events_and_reports_the_gap() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        await hush(scene)
        report = await scene.value("await_activity", last_event_id="01NEVERTHERE")
        assert (report["triggers"], report["cursorLost"], numbers(report)) == ([{"type": "immediate"}], True, [1])


async def test_undelivered_events_are_kept_indefinitely_and_delivered_ones_for_half_an_hour() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        tell(scene, 1)
        await scene.clock.advance(24 * 3600)
        tell(scene, 2)
        assert numbers(await scene.value("await_activity")) == [1, 2]
        await scene.clock.advance(1801)
        tell(scene, 3)
        assert numbers(await scene.value("await_activity", last_event_id="gone")) == [3]


@pytest.mark.parametrize("through_await", [False, True])
async def test_events_dropped_before_delivery_are_counted_once(
    through_await: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with a_scene(limits=Limits(events_per_session=10), one=ScriptedBackend()) as scene:
        await hush(scene)
        for number in range(13):
            tell(scene, number)
        if through_await:
            report = await scene.value("await_activity")
            assert (numbers(report), report["events_dropped"]) == (list(range(3, 13)), 3)
        else:
            news = notices(await scene.call("list_timers"))
            assert (len(news["events_since_last_response"]), news["events_dropped"]) == (10, 3)
        tell(scene, 13)
        assert "events_dropped" not in await scene.value("await_activity")
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("event_store_approaching_limit") == 1
    assert messages.count("event_store_eviction") == 1  # a second


async def test_events_over_the_total_size_limit_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "EVENT_BYTES_PER_SESSION", 3000)
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        for number in range(5):
            told = {"n": number, "text": "x" * 900}
            scene.backends["one"].link.listener.handle_notification("notifications/tick", told, None)
        report = await scene.value("await_activity")
        assert numbers(report)[-1] == 4
        assert report["events_dropped"] == 5 - len(numbers(report)) > 0


# Several waiters.


async def test_an_event_wakes_all_waiters_with_the_same_trigger_and_only_one_delivers_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        name, _ = await a_task(scene)
        await hush(scene)
        waits = [scene.start("await_activity") for _ in range(5)]
        await settle()
        tell(scene, 1)
        reports = [(await wait)["structuredContent"] for wait in waits]
        trigger = {"type": "event", "server": "one", "eventType": "notification"}
        assert [report["triggers"] for report in reports] == [[trigger]] * 5
        assert sorted(numbers(report) for report in reports) == [[], [], [], [], [1]]
        assert len({report["lastEventId"] for report in reports}) == 1
        assert [report["pending_server"][0]["working_tasks"][0]["taskId"] for report in reports] == [name] * 5


async def test_a_wait_that_begins_while_others_wake_waits_for_the_next_event() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        first = scene.start("await_activity")
        await settle()
        second = scene.start("await_activity")
        tell(scene, 1)
        assert len(events_in(await scene.call("list_timers"))) == 1  # taken before either of them runs
        await settle()
        assert (first.done(), second.done()) == (True, False)
        tell(scene, 2)
        assert numbers((await second)["structuredContent"]) == [2]


async def test_a_canceled_waiter_consumes_no_event() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        for turns in range(6):
            wait = scene.start("await_activity")
            await settle()
            tell(scene, turns)
            await settle(turns)
            wait.cancel()
            await settle()
            taken = [] if wait.cancelled() else numbers(wait.result()["structuredContent"])
            left = [event["data"]["params"]["n"] for event in await events(scene)]
            assert taken + left == [turns]


async def test_ten_thousand_events_are_delivered_once_each_while_callers_wait_and_disconnect() -> None:
    chance = random.Random(3)
    received: list[int] = []
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)

        async def consume() -> None:
            while len(received) <= 10_000:  # more would be a repetition, and the reason to stop
                report = await scene.value("await_activity")
                received.extend(numbers(report))
                assert "events_dropped" not in report
                await asyncio.sleep(0)

        waiters = [asyncio.create_task(consume()) for _ in range(8)]
        told = 0
        while told < 10_000:
            for _ in range(min(chance.randint(1, 30), 10_000 - told)):
                tell(scene, told)
                told += 1
            await settle(chance.randint(0, 4))
            if chance.random() < 0.5:
                index = chance.randrange(8)
                waiters[index].cancel()
                waiters[index] = asyncio.create_task(consume())
            if chance.random() < 0.2:
                received.extend(event["data"]["params"]["n"] for event in events_in(await scene.call("list_timers")))
        await settle()
        assert not any(waiter.done() for waiter in waiters)
        for waiter in waiters:
            waiter.cancel()
        await asyncio.wait(waiters, timeout=10)
        assert received == list(range(10_000))
        assert await event_types(scene) == []


# Changes without an event.


async def test_log_and_progress_messages_raise_no_events_and_wake_no_waiters() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        _, asked = await a_task(scene)
        await hush(scene)
        wait = scene.start("await_activity")
        await settle()
        listener = scene.backends["one"].link.listener
        listener.handle_notification("notifications/message", {"level": "error", "data": "broken"}, None)
        listener.handle_notification("notifications/progress", {"progressToken": 1, "progress": 1}, asked.origin)
        listener.handle_notification("notifications/progress", {"progressToken": 99, "progress": 1}, None)
        listener.handle_output("to stderr", "stderr")
        await settle()
        assert not wait.done()
        await scene.clock.advance(30)
        assert (await wait)["structuredContent"]["triggers"] == [{"type": "timeout"}]
        assert await event_types(scene) == []
        assert len((await scene.value("get_logs"))["logs"]) == 2


async def test_events_and_replies_do_not_contain_the_session_id() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        elicit(scene.backends["one"], origin=asked.origin)
        await settle()
        said = [
            await scene.call("await_activity"),
            await scene.call("get_task", task_id=name),
            await scene.call("get_server_status", server="one"),
            scene.backends["one"].seen,
        ]
        assert scene.session.session_id not in json.dumps(said)


async def test_a_bounded_number_of_requests_waits_concurrently_and_each_is_woken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity, "WAITING_PER_SESSION", 3)
    async with a_scene(one=ScriptedBackend()) as scene:
        scene.quiet()
        waiting = [scene.start("await_activity") for _ in range(3)]
        await settle()
        error = await scene.error("await_activity")
        assert (error["code"], "3 requests wait" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        scene.backends["one"].link.listener.handle_notification("notifications/custom", {}, None)
        assert [not (await call).get("isError") for call in waiting] == [True] * 3
        assert not (await scene.call("await_activity", timeout_ms=100, last_event_id="0")).get("isError")

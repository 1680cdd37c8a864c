"""Notices in a reply appear once, in few words, and where every client shows them to its model."""

import asyncio
import json
from typing import Any

import pytest

from emceepee.state.events import EventType
from emceepee.state.limits import Limits
from emceepee.state.notice_options import NoticeOptions
from emceepee.tools.replies.notices import EVENTS
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.figures import record_figure
from support.in_process.stdio_client import StdioClient, a_stdio_client
from support.sessions.asking import (
    NAME_FORM,
    a_call,
    a_task,
    elicit,
    events_in,
    hush,
    notices,
    open_ids,
    sample,
    task_id,
)
from support.sessions.scene import Scene, a_scene

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def notify(scene: Scene, *numbers: int, text: str = "") -> None:
    for number in numbers:
        scene.backends["one"].link.listener.handle_notification("notifications/tick", {"n": number, "text": text}, None)


def words_of(result: JsonObject) -> str:
    return "".join(block.get("text", "") for block in result["content"])


def answering(structured: Any) -> ScriptedBackend:
    """A backend whose tool returns this as structured content."""
    backend = ScriptedBackend()
    result = DONE if structured is None else DONE | {"structuredContent": structured}
    backend.answers["tools/call"] = lambda _: result
    return backend


# Where they stand.


async def test_results_and_errors_of_emceepee_tools_carry_notices_beside_their_own_keys() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        for tool, own in (("list_timers", "timers"), ("get_timer", "error")):  # the second lacks an argument
            notify(scene, 1)
            result = await scene.call(tool)
            assert set(result["structuredContent"]) == {own, "events_since_last_response"}
            assert result["structuredContent"]["events_since_last_response"] == events_in(result)
        assert set((await scene.call("list_timers"))["structuredContent"]) == {"timers"}


async def test_a_structured_backend_result_gets_one_key_more_only_if_there_are_notices() -> None:
    async with a_scene(one=answering({"n": 1})) as scene:
        await hush(scene)
        notify(scene, 1)
        elicit(scene.backends["one"])
        await settle()
        result = await scene.call("execute_tool", server="one", tool="echo")
        assert result["structuredContent"] == {"n": 1, "emceepee": notices(result)}
        assert set(result["structuredContent"]["emceepee"]) == {"events_since_last_response", "pending_client_action"}
        [request_id] = await open_ids(scene)
        await scene.call("respond_to_elicitation", request_id=request_id, action="decline")
        assert await scene.call("execute_tool", server="one", tool="echo") == DONE | {"structuredContent": {"n": 1}}


@pytest.mark.parametrize("structured", [None, [1], {"emceepee": "its own"}])
async def test_structured_backend_content_other_than_an_object_is_left_unchanged(structured: Any) -> None:
    async with a_scene(one=answering(structured)) as scene:
        await hush(scene)
        notify(scene, 1)
        result = await scene.call("execute_tool", server="one", tool="echo")
        assert result.get("structuredContent") == structured
        assert len(events_in(result)) == 1


async def test_the_stored_result_of_a_task_contains_no_notices() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        asked.reply(**DONE, structuredContent={"n": 1})
        await settle()
        for number in (1, 2):
            notify(scene, number)
            result = await scene.call("get_task_result", task_id=name)
            assert set(result["structuredContent"]) == {"n", "emceepee"}
        assert scene.session.tasks.get(name).result == DONE | {"structuredContent": {"n": 1}}


async def test_with_notices_in_blocks_only_structured_content_is_left_unchanged() -> None:
    async with a_scene(one=answering({"n": 1})) as scene:
        scene.session.notice_options = NoticeOptions(structured=False)
        await hush(scene)
        notify(scene, 1)
        result = await scene.call("execute_tool", server="one", tool="echo")
        assert (result["structuredContent"], len(events_in(result))) == ({"n": 1}, 1)
        notify(scene, 2)
        assert (await scene.call("list_timers"))["structuredContent"] == {"timers": []}


@pytest.mark.parametrize("name", ["qwen-cli-mcp-client-emceepee", "@cline/core", "Cline"])
@pytest.mark.parametrize("is_modern", [False, True])
async def test_a_client_that_shows_both_copies_to_the_model_gets_notices_in_blocks_only(
    name: str, is_modern: bool
) -> None:
    async with a_stdio_client() as client:
        await introduce(client, name, is_modern=is_modern)
        await client.call("list_timers")
        result = (await client.next())["result"]
        assert (result["structuredContent"], len(events_in(result))) == ({"timers": []}, 1)
        client.scene.session.notice_options = NoticeOptions(structured=True)
        client.scene.backends["demo"].link.listener.handle_notification("notifications/odd", {}, None)
        await client.call("list_timers")
        assert EVENTS in (await client.next())["result"]["structuredContent"]


@pytest.mark.parametrize("name", ["claude-code", "codex-mcp-client", "decline", ""])
@pytest.mark.parametrize("is_modern", [False, True])
async def test_other_clients_get_notices_in_structured_content_as_well(name: str, is_modern: bool) -> None:
    async with a_stdio_client() as client:
        await introduce(client, name, is_modern=is_modern)
        await client.call("list_timers")
        assert EVENTS in (await client.next())["result"]["structuredContent"]


async def introduce(client: StdioClient, name: str, *, is_modern: bool) -> None:
    """Start a client of that name; then an event happens."""
    if is_modern:
        await client.open("2026-07-28")
        assert client.meta is not None
        client.meta |= {"io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
    else:
        await client.open(name=name)
    await client.call("list_timers")
    await client.next()
    client.scene.backends["demo"].link.listener.handle_notification("notifications/odd", {}, None)


async def test_a_notice_block_is_never_json_alone() -> None:
    """Some clients print the JSON of a reply and drop the rest: a notice would hide the answer."""
    async with a_scene(one=answering(None)) as scene:
        await hush(scene)
        notify(scene, 1)
        elicit(scene.backends["one"])
        await settle()
        result = await scene.call("execute_tool", server="one", tool="echo")
        [answer, *added] = [block["text"] for block in result["content"]]
        lines = [text.split("\n") for text in added]
        assert [words for words, _ in lines] == ["Since the last reply:", "Waiting for an answer:"]
        assert [list(json.loads(data)) for _, data in lines] == [
            ["events_since_last_response"],
            ["pending_client_action"],
        ]
        assert answer == DONE["content"][0]["text"]


# How much they say.


async def test_equal_notifications_are_merged_into_one_entry_with_a_count_and_a_time_range() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        notify(scene, 7, 8, 7, 7)
        ids = [event.event_id for event in scene.session.activity.undelivered().events]
        eight, seven = events_in(await scene.call("list_timers"))
        assert (eight["id"], eight["data"]["params"]["n"], "count" in eight) == (ids[1], 8, False)
        assert (seven["id"], seven["firstId"], seven["count"]) == (ids[3], ids[0], 3)
        assert not scene.session.activity.has_news


async def test_a_thousand_notifications_make_a_small_reply_and_none_is_lost() -> None:
    async with a_scene(limits=Limits(events_per_session=2000), one=ScriptedBackend()) as scene:
        await hush(scene)
        notify(scene, *range(1000))
        result = await scene.call("list_timers")
        size = len(words_of(result))
        record_figure(f"a reply during which a backend sent 1,000 different notifications: {size} characters")
        assert size < 10_000
        seen, replies = [], 0
        while told := events_in(result):
            seen += [event["data"]["params"]["n"] for event in told]
            assert notices(result).get("more", 0) == 1000 - len(seen)
            result, replies = await scene.call("list_timers"), replies + 1
        assert seen == list(range(1000))
        notify(scene, *[5] * 1000)
        equal = await scene.call("list_timers")
        record_figure(f"with 1,000 equal ones: {len(words_of(equal))} characters")
        assert [(event["count"], "more" in notices(equal)) for event in events_in(equal)] == [(1000, False)]


async def test_await_activity_returns_at_most_64_kb_and_its_last_event_id_skips_nothing() -> None:
    async with a_scene(limits=Limits(events_per_session=2000), one=ScriptedBackend()) as scene:
        await hush(scene)
        notify(scene, *range(1000))
        seen: list[int] = []
        cursor: dict[str, Any] = {}
        while len(seen) < 1000:
            report = await scene.value("await_activity", timeout_ms=100, **cursor)
            assert len(json.dumps(report, separators=(",", ":"))) <= 64 << 10
            seen += [event["data"]["params"]["n"] for group in report["events"] for event in group["events"]]
            assert report.get("more", 0) == 1000 - len(seen)
            cursor = {"last_event_id": report["lastEventId"]}
        assert seen == list(range(1000))


async def test_a_burst_of_events_that_ends_a_wait_is_named_once() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        wait = scene.start("await_activity")
        await settle()
        notify(scene, *range(500))
        triggers = (await wait)["structuredContent"]["triggers"]
        assert triggers == [{"type": "event", "server": "one", "eventType": "notification"}]


async def test_a_large_event_is_truncated_with_a_mark_and_complete_on_request() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        long = "long " * 10_000
        notify(scene, 1)
        notify(scene, 2, text=long)
        small, large = events_in(await scene.call("list_timers"))
        assert (large["data"]["method"], "cut" in small) == ("notifications/tick", False)
        assert len(json.dumps(large)) < 3000
        assert f"last_event_id={small['id']} " in large["cut"]
        report = await scene.value("await_activity", timeout_ms=100, last_event_id=small["id"])
        [[event]] = [group["events"] for group in report["events"]]
        assert event["data"]["params"] == {"n": 2, "text": long}


# Questions.


async def test_a_new_question_is_shown_once_with_its_form_and_then_by_its_message() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        elicit(scene.backends["one"])
        sample(scene.backends["one"])
        await settle()
        first, second = await scene.call("list_timers"), await scene.call("list_timers")
        [question], [request] = notices(first)["pending_client_action"].values()
        bare = {"requestId": question["requestId"], "server": "one", "message": "Your name?"}
        assert question == bare | {"requestedSchema": NAME_FORM}
        assert request["messages"][0]["content"]["text"] == "Hello?"
        assert (words_of(first).count("Your name?"), words_of(first).count("Hello?")) == (1, 1)
        assert json.dumps(first["structuredContent"]).count("Your name?") == 1
        assert [set(event["data"]) for event in events_in(first)] == [{"requestId"}, {"requestId"}]
        assert notices(second)["pending_client_action"] == {
            "elicitations": [bare],
            "sampling_requests": [{"requestId": request["requestId"], "server": "one"}],
        }


async def test_await_activity_shows_the_form_of_a_new_question_once() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        wait = scene.start("await_activity")
        await settle()
        elicit(scene.backends["one"])
        report = (await wait)["structuredContent"]
        assert report["pending_client"]["elicitations"][0]["requestedSchema"] == NAME_FORM
        assert json.dumps(report).count("Your name?") == 1


@pytest.mark.parametrize("ask", [elicit, sample])
async def test_a_promotion_by_a_question_shows_the_question_in_full_once_as_text_and_once_as_data(ask: Any) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        call, asked = await a_call(scene)
        ask(scene.backends["one"], "What then?", origin=asked.origin)
        result = await call
        kind = "elicitations" if ask is elicit else "sampling_requests"
        [waiting] = notices(result)["pending_client_action"][kind]
        respond = "respond_to_elicitation" if ask is elicit else "respond_to_sampling"
        asked_event = "elicitation_request" if ask is elicit else "sampling_request"
        told = [event["type"] for event in result["structuredContent"]["events_since_last_response"]]
        assert (told, "events_since_last_response" in notices(result)) == ([asked_event, "task_created"], False)
        assert "What then?" in result["content"][0]["text"]
        if ask is elicit:
            assert waiting == {"requestId": waiting["requestId"], "server": "one", "message": "What then?"}
        else:
            assert set(waiting) == {"requestId", "server"}
        for text in (result["content"][0]["text"], result["structuredContent"]["next"]):
            assert f'{respond}(request_id="{waiting["requestId"]}"' in text
            assert f'get_task_result(task_id="{task_id(result)}")' in text
        [shown] = result["structuredContent"]["pending_on_server"][f"{kind}_for_server"]
        assert shown["requestId"] == waiting["requestId"]
        whole = "requestedSchema" if ask is elicit else "messages"
        assert json.dumps(result["structuredContent"]).count(whole) == 1


async def test_a_promotion_includes_the_url_to_open() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        url = "https://example.test/consent"
        elicit(scene.backends["one"], origin=asked.origin, mode="url", url=url, requestedSchema=None)
        text = (await call)["content"][0]["text"]
        assert (url in text, 'action="accept")' in text) == (True, True)


async def test_questions_beyond_five_are_a_count_with_the_tool_that_lists_them() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        for number in range(8):
            elicit(scene.backends["one"], f"Question {number}?")
        await settle()
        pending = notices(await scene.call("list_timers"))["pending_client_action"]
        assert [item["message"] for item in pending["elicitations"]] == [f"Question {number}?" for number in range(5)]
        assert pending["more"] == {"elicitations": "3 more: get_elicitations lists them"}


async def test_forms_that_are_too_large_to_show_are_named() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        form = NAME_FORM | {"description": "x" * 5000}
        elicit(scene.backends["one"], requestedSchema=form)
        await settle()
        [entry] = notices(await scene.call("list_timers"))["pending_client_action"]["elicitations"]
        assert (entry["message"], "get_elicitations" in entry["whole"]) == ("Your name?", True)
        assert "requestedSchema" not in entry


async def test_a_reply_that_lists_a_question_does_not_repeat_it_as_a_notice() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        elicit(scene.backends["one"])
        await settle()
        result = await scene.call("get_elicitations")
        assert json.dumps(result["structuredContent"]).count("requestedSchema") == 1
        [waiting] = notices(result)["pending_client_action"]["elicitations"]
        assert waiting == {"requestId": waiting["requestId"], "server": "one", "message": "Your name?"}


async def test_a_reply_that_shows_a_server_does_not_report_its_connection_in_a_notice() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        for tool, is_told in (("reconnect_server", False), ("get_server_status", True)):
            await hush(scene)
            scene.session.activity.emit(EventType.SERVER_CONNECTED, "one", capabilities={"tools": {}})
            result = await scene.call(tool, server="one")
            in_words = [event["type"] for event in notices(result).get("events_since_last_response", [])]
            assert ("server_connected" in in_words, events_in(result)[0]["type"]) == (is_told, "server_connected")


# Tasks.


async def test_the_reply_that_returns_the_result_of_a_task_does_not_report_the_end_of_that_task() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        other, other_asked = await a_task(scene)
        await hush(scene)
        asked.reply(**DONE)
        other_asked.refuse(-1, "no")
        await settle()
        result = await scene.call("get_task_result", task_id=name)
        assert [(event["type"], event["data"]["taskId"]) for event in events_in(result)] == [("task_failed", other)]
        assert events_in(await scene.call("get_task_result", task_id=other)) == []
        assert events_in(await scene.call("get_task_result", task_id=name)) == []


async def test_the_end_of_a_task_is_reported_by_any_other_reply() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        await hush(scene)
        asked.reply(**DONE)
        await settle()
        assert [event["type"] for event in events_in(await scene.call("get_task", task_id=name))] == ["task_completed"]
        waiting = asyncio.create_task(scene.call("get_task_result", task_id=name))
        assert events_in(await waiting) == []

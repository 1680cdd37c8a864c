"""Backends' questions reach the caller, and each answer reaches its backend."""

import asyncio
import json
import logging
import random
from typing import Any

import pytest

from emceepee.backends import input_rounds
from emceepee.backends.link import RpcError
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.sessions.questions import questions
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import (
    NAME_FORM,
    a_call,
    a_task,
    elicit,
    event_types,
    events,
    events_in,
    hush,
    notices,
    open_ids,
    sample,
    task_id,
)
from support.sessions.event_delivery import take
from support.sessions.replies import own_part
from support.sessions.scene import Scene, a_scene

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}
JO: JsonObject = {"name": "Jo"}


def gone(told: list[JsonObject]) -> list[tuple[str, str]]:
    """Which questions went, and why."""
    kinds = ("elicitation_expired", "sampling_expired")
    return [(event["type"], event["data"]["reason"]) for event in told if event["type"] in kinds]


async def refusal(asking: "asyncio.Task[JsonObject]") -> JsonObject:
    """The error that the backend got instead of an answer."""
    with pytest.raises(RpcError) as caught:
        await asyncio.wait_for(asking, 5)
    return caught.value.error


# Who is promoted.


async def test_a_question_promotes_its_call_and_the_reply_carries_the_question() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        other, _ = await a_call(scene)
        asking = elicit(scene.backends["one"], origin=asked.origin)
        result = await call
        [request_id] = await open_ids(scene)
        told = {"requestId": request_id, "server": "one", "message": "Your name?"}
        line = told | {"requestedSchema": NAME_FORM}
        assert result["structuredContent"]["pending_on_server"]["elicitations_for_server"] == [line]
        assert notices(result)["pending_client_action"] == {"elicitations": [told], "sampling_requests": []}
        assert [event["type"] for event in events_in(result)][-2:] == ["elicitation_request", "task_created"]
        text = result["content"][0]["text"]
        assert f'respond_to_elicitation(request_id="{request_id}", action="accept"' in text
        assert f'get_task_result(task_id="{task_id(result)}")' in text
        assert '"Your name?" Fields:\n- name: text, required\n' in text
        assert not other.done()
        shown = (await scene.value("get_elicitations"))["requests"][0]
        assert (shown["taskId"], shown["callId"]) == (task_id(result), task_id(result))
        await scene.call("respond_to_elicitation", request_id=request_id, action="accept", content=JO)
        assert await asking == {"action": "accept", "content": JO}
        asked.reply(**DONE)
        assert (await scene.call("get_task_result", task_id=task_id(result)))["content"][0] == DONE["content"][0]


async def test_a_large_form_is_shown_in_the_reply_as_readable_lines() -> None:
    """JSON inside of JSON would consist mostly of backslashes."""
    fields = {f"field{number}": {"type": "string", "description": 'Say "yes" ' * 5} for number in range(40)}
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        asking = elicit(
            scene.backends["one"],
            origin=asked.origin,
            requestedSchema={"type": "object", "properties": fields, "required": ["field0"]},
        )
        text = (await call)["content"][0]["text"]
        assert '\n- field0: text, required. "Say' in text
        assert " more: get_elicitations shows the whole form\n" in text
        assert '"cut"' not in text
        asking.cancel()


async def test_a_large_sampling_request_is_truncated_without_reformatting() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        asking = sample(scene.backends["one"], 'Say "hi". ' * 1000, origin=asked.origin)
        text = (await call)["content"][0]["text"]
        assert 'asks for a completion: {"messages":[{"role":"user"' in text
        assert "get_sampling_requests shows it whole" in text
        assert '"cut"' not in text
        asking.cancel()


async def test_a_question_without_a_known_call_promotes_every_call_of_its_backend_and_no_other() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        first, _ = await a_call(scene)
        second, _ = await a_call(scene)
        patient, _ = await a_call(scene, on_question="wait")
        elsewhere, _ = await a_call(scene, "two")
        sample(scene.backends["one"])
        await settle()
        assert (first.done(), second.done(), patient.done(), elsewhere.done()) == (True, True, False, False)
        assert task_id(first.result()) != task_id(second.result())
        request = (await scene.value("get_sampling_requests"))["requests"][0]
        assert "callId" not in request
        assert "taskId" not in request


async def test_a_caller_that_chooses_to_wait_receives_the_result_itself() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene, on_question="wait")
        asking = elicit(scene.backends["one"], origin=asked.origin)
        [request_id] = await open_ids(scene)
        assert not call.done()
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content=JO)
        assert (await asking)["content"] == JO
        asked.reply(**DONE)
        assert (await call)["content"][0] == DONE["content"][0]
        assert await scene.value("list_tasks", include_completed=True) == {"tasks": []}


async def test_a_question_is_recorded_even_if_no_call_is_waiting() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content=JO)
        assert await asking == {"action": "accept", "content": JO}


# Looking at them.


async def test_an_elicitation_is_listed_with_everything_needed_to_answer_it() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        elicit(scene.backends["one"], "Who?", _meta={"k": 1}, hint={"odd": None})
        elicit(scene.backends["two"], "Go there", mode="url", url="https://example.org/x", elicitationId="e1")
        [first, second] = await open_ids(scene)
        listed = (await scene.value("get_elicitations"))["requests"]
        assert listed[0] == {
            "requestId": first,
            "server": "one",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "expiresAt": "2026-01-01T00:10:00.000Z",
            "mode": "form",
            "message": "Who?",
            "requestedSchema": NAME_FORM,
            "hint": {"odd": None},
        }
        assert (listed[1]["requestId"], listed[1]["mode"], listed[1]["url"], listed[1]["elicitationId"]) == (
            second,
            "url",
            "https://example.org/x",
            "e1",
        )
        only = (await scene.value("get_elicitations", server="two"))["requests"]
        assert [item["requestId"] for item in only] == [second]
        assert (await scene.value("get_sampling_requests"))["requests"] == []
        assert (await scene.error("get_elicitations", server="tow"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_a_backend_cannot_pose_as_another_one_in_its_question() -> None:
    forged = dict.fromkeys(("requestId", "server", "timestamp", "expiresAt", "callId", "taskId"), "forged")
    async with a_scene(one=ScriptedBackend()) as scene:
        elicit(scene.backends["one"], **forged)
        [request_id] = await open_ids(scene)
        [item] = (await scene.value("get_elicitations"))["requests"]
        assert (item["requestId"], item["server"]) == (request_id, "one")
        assert "forged" not in item.values()


async def test_a_task_shows_the_elicitations_of_its_server() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        elicit(scene.backends["one"], origin=asked.origin)
        elicit(scene.backends["two"])
        sample(scene.backends["one"])
        await settle()
        [item] = (await scene.value("get_task", task_id=name))["pending_elicitations"]
        assert (item["server"], item["taskId"], item["requestedSchema"]) == ("one", name, NAME_FORM)


# Answering elicitations.


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_decline_reaches_the_backend_unchanged(action: str) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        told = await scene.value("respond_to_elicitation", request_id=request_id, action=action)
        assert told == {"responded": request_id, "action": action}
        assert await asking == {"action": action}
        await hush(scene)
        assert await event_types(scene) == []


async def test_an_answer_is_completed_with_defaults_before_it_is_sent() -> None:
    form = {"type": "object", "properties": {"n": {"type": "integer", "default": 42}, "s": {"type": "string"}}}
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"], requestedSchema=form)
        [request_id] = await open_ids(scene)
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept")
        assert await asking == {"action": "accept", "content": {"n": 42}}


async def test_invalid_content_is_reported_by_field_and_the_question_stays_open() -> None:
    form = {"properties": {"age": {"type": "integer", "minimum": 18}, "mail": {"type": "string", "format": "email"}}}
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"], requestedSchema=form)
        [request_id] = await open_ids(scene)
        error = await scene.error(
            "respond_to_elicitation", request_id=request_id, action="accept", content={"age": 7, "mail": "x", "z": 1}
        )
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert error["message"].startswith(
            "The content does not fit the form: age: must be at least 18; mail: must be of the format email; "
            "one entry of the content is not a field of the form; it has age, mail. The question stays open"
        )
        assert error["details"]["problems"] == [
            {"field": "age", "code": "minimum", "message": "must be at least 18"},
            {"field": "mail", "code": "format", "message": "must be of the format email"},
            {
                "field": None,
                "code": "additionalProperties",
                "message": "one entry of the content is not a field of the form; it has age, mail",
            },
        ]
        assert await open_ids(scene) == [request_id]
        assert not asking.done()
        good = {"age": 18, "mail": "a@b.org"}
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content=good)
        assert (await asking)["content"] == good


async def test_content_is_allowed_only_with_accept() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        error = await scene.error("respond_to_elicitation", request_id=request_id, action="decline", content=JO)
        assert (error["code"], await open_ids(scene)) == ("ERR_INVALID_ARGUMENTS", [request_id])


async def test_a_url_question_is_accepted_without_content() -> None:
    link: JsonObject = {"mode": "url", "url": "https://example.org", "elicitationId": "e1", "requestedSchema": None}
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"], **link)
        [request_id] = await open_ids(scene)
        error = await scene.error("respond_to_elicitation", request_id=request_id, action="accept", content=JO)
        assert (error["code"], await open_ids(scene)) == ("ERR_INVALID_ARGUMENTS", [request_id])
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept")
        assert await asking == {"action": "accept"}


# Answering sampling requests.

IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
USE = {"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1}}
TEXT = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    ("content", "stop_reason", "answered"),
    [
        ("Hi", None, {"role": "assistant", "content": TEXT, "model": "m"}),
        (IMAGE, "endTurn", {"role": "assistant", "content": IMAGE, "model": "m", "stopReason": "endTurn"}),
        ([TEXT], None, {"role": "assistant", "content": TEXT, "model": "m"}),
        ([TEXT, USE], "toolUse", {"role": "assistant", "content": [TEXT, USE], "model": "m", "stopReason": "toolUse"}),
        ({"type": "novel", "x": 1}, None, {"role": "assistant", "content": {"type": "novel", "x": 1}, "model": "m"}),
    ],
)
async def test_a_completion_is_passed_on_in_the_format_of_the_protocol(
    content: Any, stop_reason: str | None, answered: JsonObject
) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        tools = [{"name": "add", "inputSchema": {"type": "object"}}]
        asking = sample(scene.backends["one"], "2+2?", tools=tools, toolChoice={"mode": "auto"})
        [request_id] = await open_ids(scene, "sampling_requests")
        shown = (await scene.value("get_sampling_requests"))["requests"][0]
        assert (shown["tools"], shown["maxTokens"], shown["messages"][0]["content"]["text"]) == (tools, 10, "2+2?")
        assert "mode" not in shown
        extra = {} if stop_reason is None else {"stop_reason": stop_reason}
        reply = await scene.value(
            "respond_to_sampling", request_id=request_id, role="assistant", content=content, model="m", **extra
        )
        assert reply == {"responded": request_id}
        assert await asking == answered


@pytest.mark.parametrize(
    "content", [[], {}, {"text": "no type"}, {"type": "text"}, [TEXT, {"type": "image", "data": "AA=="}], 5]
)
async def test_an_invalid_completion_is_rejected_and_the_request_stays_open(content: Any) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = sample(scene.backends["one"])
        [request_id] = await open_ids(scene, "sampling_requests")
        error = await scene.error(
            "respond_to_sampling", request_id=request_id, role="assistant", content=content, model="m"
        )
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert await open_ids(scene, "sampling_requests") == [request_id]
        assert not asking.done()


# No answer.


async def test_canceling_an_elicitation_dismisses_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        reply = await scene.call("cancel_elicitation_request", request_id=request_id, reason="not now")
        assert own_part(reply["structuredContent"]) == {"cancelled": request_id}
        [told] = notices(reply)["events_since_last_response"]
        assert (told["type"], told["data"]) == (
            "elicitation_expired",
            {"requestId": request_id, "reason": "cancelled", "message": "not now"},
        )
        assert "pending_client_action" not in notices(reply)
        assert await asking == {"action": "cancel"}


async def test_canceling_a_sampling_request_returns_an_error_with_the_reason() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = sample(scene.backends["one"])
        [request_id] = await open_ids(scene, "sampling_requests")
        await scene.value("cancel_sampling_request", request_id=request_id, reason="no model here")
        error = await refusal(asking)
        assert (error["code"], "no model here" in error["message"]) == (-1, True)


async def test_an_unanswered_question_expires_after_ten_minutes_and_its_backend_is_notified() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        first = elicit(scene.backends["one"], origin=asked.origin)
        second = sample(scene.backends["one"])
        await call
        await hush(scene)
        await scene.clock.advance(599.9)
        assert len(scene.session.questions.open()) == 2
        await scene.clock.advance(0.2)
        assert await first == {"action": "cancel"}
        assert "in time" in (await refusal(second))["message"]
        told = await events(scene)
        assert gone(told) == [("elicitation_expired", "timeout"), ("sampling_expired", "timeout")]
        assert await open_ids(scene) == []


async def test_a_question_that_its_backend_withdrew_is_not_answered() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = [elicit(scene.backends["one"]), sample(scene.backends["one"])]
        [request_id] = await open_ids(scene)
        await hush(scene)
        for question in asking:
            question.cancel()
        assert gone(await events(scene)) == [("elicitation_expired", "withdrawn"), ("sampling_expired", "withdrawn")]
        error = await scene.error("respond_to_elicitation", request_id=request_id, action="decline")
        assert error["code"] == "ERR_REQUEST_NOT_FOUND"


async def test_a_disconnected_backend_withdraws_its_questions_and_fails_its_tasks() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        asking = elicit(scene.backends["one"], origin=asked.origin)
        elicit(scene.backends["two"])
        await hush(scene)
        scene.backends["one"].link.break_off("it fell over")
        told = await events(scene)
        assert gone(told) == [("elicitation_expired", "disconnected")]
        assert [event["type"] for event in told if event["type"] != "server_reconnecting"] == [
            "server_disconnected",
            "elicitation_expired",
            "task_failed",
        ]
        assert "it fell over" in (await refusal(asking))["message"]
        assert (await scene.error("get_task_result", task_id=name))["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert len(await open_ids(scene)) == 1


@pytest.mark.parametrize("ending", ["cancel", "expire", "complete", "cancel the request"])
async def test_the_questions_of_a_call_close_when_the_call_ends(ending: str) -> None:
    async with a_scene(limits=Limits(task_ttl_seconds=60), one=ScriptedBackend()) as scene:
        waits = ending == "cancel the request"
        call, asked = await a_call(scene, on_question="wait" if waits else "promote")
        mine, other = elicit(scene.backends["one"], origin=asked.origin), elicit(scene.backends["one"])
        await settle()
        match ending:
            case "cancel":
                await scene.value("cancel_task", task_id=task_id(await call))
            case "expire":
                await scene.clock.advance(61)
            case "complete":
                asked.reply(**DONE)
            case "cancel the request":
                call.cancel()
        await settle()
        told = take(scene.session.activity, after="the beginning").events
        assert [event.data["reason"] for event in told if event.type == "elicitation_expired"] == ["withdrawn"]
        assert len(await open_ids(scene)) == 1
        assert await mine == {"action": "cancel"}
        assert not other.done()


# Answers that come to nothing.


async def test_a_second_answer_is_rejected_and_the_first_one_holds() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        both = await asyncio.gather(
            scene.call("respond_to_elicitation", request_id=request_id, action="accept", content=JO),
            scene.call("respond_to_elicitation", request_id=request_id, action="decline"),
        )
        assert [bool(reply.get("isError")) for reply in both] == [False, True]
        assert both[1]["structuredContent"]["error"]["code"] == "ERR_REQUEST_NOT_FOUND"
        assert await asking == {"action": "accept", "content": JO}
        for tool in ("cancel_elicitation_request", "cancel_sampling_request"):
            assert (await scene.error(tool, request_id=request_id))["code"] == "ERR_REQUEST_NOT_FOUND"


async def test_an_answer_of_the_wrong_kind_or_to_an_unknown_question_is_rejected_and_nothing_is_lost() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking, sampling = elicit(scene.backends["one"]), sample(scene.backends["one"])
        [question], [wish] = await open_ids(scene), await open_ids(scene, "sampling_requests")
        completion = {"role": "assistant", "content": "Hi", "model": "m"}
        for request_id in (question, "01NOSUCHREQUEST", ""):
            error = await scene.error("respond_to_sampling", request_id=request_id, **completion)
            assert (error["code"], "get_sampling_requests" in error["message"]) == ("ERR_REQUEST_NOT_FOUND", True)
        for request_id in (wish, "01NOSUCHREQUEST"):
            error = await scene.error("respond_to_elicitation", request_id=request_id, action="decline")
            assert (error["code"], "get_elicitations" in error["message"]) == ("ERR_REQUEST_NOT_FOUND", True)
            await scene.error("cancel_elicitation_request", request_id=request_id)
        await scene.error("cancel_sampling_request", request_id=question)
        assert (await open_ids(scene), await open_ids(scene, "sampling_requests")) == ([question], [wish])
        await scene.value("respond_to_elicitation", request_id=question, action="decline")
        await scene.value("respond_to_sampling", request_id=wish, **completion)
        assert (await asking, (await sampling)["model"]) == ({"action": "decline"}, "m")


async def test_an_answer_after_the_expiry_is_rejected() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        elicit(scene.backends["one"])
        [request_id] = await open_ids(scene)
        await scene.clock.advance(601)
        error = await scene.error("respond_to_elicitation", request_id=request_id, action="accept", content=JO)
        assert (error["code"], "expired" in error["message"]) == ("ERR_REQUEST_NOT_FOUND", True)


async def test_a_question_beyond_the_limit_is_rejected_and_not_shown() -> None:
    limits = Limits(questions_per_server=2, questions_per_session=3)
    async with a_scene(limits=limits, one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        one, two = scene.backends["one"], scene.backends["two"]
        first = elicit(one)
        elicit(one)
        await hush(scene)
        call, _ = await a_call(scene)
        assert "2 questions from this server are open already" in (await refusal(elicit(one)))["message"]
        assert await event_types(scene) == []
        assert not call.done()  # it was not promoted for a question that nobody sees
        sample(two)
        error = await refusal(sample(two))
        assert error["code"] == -32000
        assert "3 questions from all servers are open already" in error["message"]
        await scene.value("respond_to_elicitation", request_id=(await open_ids(scene))[0], action="decline")
        assert (await first)["action"] == "decline"
        elicit(one)
        assert len(await open_ids(scene)) == 2


async def test_questions_over_the_total_size_limit_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "QUESTION_BYTES_PER_SESSION", 1000)
    async with a_scene(one=ScriptedBackend()) as scene:
        one = scene.backends["one"]
        sample(one, "x" * 600)
        assert "too large" in (await refusal(sample(one, "x" * 600)))["message"]
        sample(one, "x")
        assert len(await open_ids(scene, "sampling_requests")) == 2


async def test_a_question_that_fails_to_raise_its_event_does_not_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:

        def fail(*_: object, **__: object) -> None:
            raise RecursionError

        with monkeypatch.context() as patch:
            patch.setattr(scene.session.activity, "emit", fail)
            asking = elicit(scene.backends["one"])
            with pytest.raises(RecursionError):
                await asking
        assert await open_ids(scene) == []


async def test_a_call_that_asks_too_many_questions_in_one_round_fails() -> None:
    async with a_scene(limits=Limits(questions_per_server=2), one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(a=form("A?"), b=form("B?"), c=form("C?")))
        result = await call
        if "proxy_task" in result["structuredContent"]:
            result = await scene.call("get_task_result", task_id=task_id(result))
        assert "2 questions from this server are open already" in result["structuredContent"]["error"]["message"]
        assert await open_ids(scene) == []


async def test_an_unsupported_request_of_a_backend_is_rejected_at_once() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        listener = scene.backends["one"].link.listener
        with pytest.raises(RpcError) as caught:
            await listener.handle_request("tasks/invent", {}, None)
        assert caught.value.code == -32601
        assert await event_types(scene) == []


async def test_roots_are_returned_without_asking_the_caller() -> None:
    spec = BackendSpec(name="one", target=HttpTarget(url="http://one.test/mcp"), roots=("file:///home/jo",))
    async with a_scene(specs=[spec], one=ScriptedBackend()) as scene:
        await hush(scene)
        answer = await scene.backends["one"].link.listener.handle_request("roots/list", {}, None)
        assert answer == {"roots": [{"uri": "file:///home/jo"}]}
        assert await event_types(scene) == []


async def test_a_server_receives_its_roots_while_it_is_being_added(monkeypatch: pytest.MonkeyPatch) -> None:
    backend, answers = ScriptedBackend(), list[JsonObject]()

    async def ask_for_roots(*_: object) -> None:
        answers.append(await backend.link.listener.handle_request("roots/list", {}, None))

    monkeypatch.setattr(ServerRegistry, "save", ask_for_roots)
    async with a_scene(specs=[], one=backend) as scene:
        await scene.value("add_server", name="one", url="http://one.test/mcp", roots=["file:///home/jo"])
        assert answers == [{"roots": [{"uri": "file:///home/jo"}]}]


async def test_a_server_without_configured_roots_gets_method_not_found() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        with pytest.raises(RpcError) as caught:
            await scene.backends["one"].link.listener.handle_request("roots/list", {}, None)
        assert caught.value.code == -32601


# Rounds: a 2026-07-28 backend asks inside the result of the call.


def ask_for(**questions: JsonObject) -> JsonObject:
    return {"resultType": "input_required", "inputRequests": questions}


def form(message: str) -> JsonObject:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": NAME_FORM}}


SAMPLE: JsonObject = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}


async def answer(scene: Scene, message: str, name: str) -> None:
    """Answer the open question with that message."""
    await settle()
    waiting = (await scene.value("get_elicitations"))["requests"]
    [request_id] = [item["requestId"] for item in waiting if item["message"] == message]
    await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content={"name": name})


async def test_a_call_is_resent_with_the_answer_and_the_state_of_the_server() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        backend = scene.backends["one"]
        call, asked = await a_call(scene, args={"n": 1})
        asked.reply(**ask_for(q1=form("Who?")), requestState={"sealed": [1, None]})
        name = task_id(await call)
        await answer(scene, "Who?", "Jo")
        again = await backend.next_asked()
        assert again.params == {
            "name": "slow",
            "arguments": {"n": 1},
            "inputResponses": {"q1": {"action": "accept", "content": {"name": "Jo"}}},
            "requestState": {"sealed": [1, None]},
        }
        again.reply(resultType="complete", **DONE)
        result = await scene.call("get_task_result", task_id=name)
        assert (result["content"][0], result["resultType"]) == (DONE["content"][0], "complete")


async def test_a_call_may_ask_in_several_rounds_and_only_the_newest_state_is_returned() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        backend = scene.backends["one"]
        call, asked = await a_call(scene)
        asked.reply(**ask_for(a=form("First?")), requestState="s1")
        name = task_id(await call)
        await answer(scene, "First?", "Jo")
        second = await backend.next_asked()
        assert second.params["requestState"] == "s1"
        second.reply(**ask_for(b=form("Second?")))
        await answer(scene, "Second?", "Mo")
        third = await backend.next_asked()
        assert third.params["inputResponses"] == {"b": {"action": "accept", "content": {"name": "Mo"}}}
        assert "requestState" not in third.params
        third.reply(**DONE)
        assert (await scene.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]


async def test_all_questions_of_a_round_are_open_at_once_and_answered_in_any_order() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(a=form("A?"), s=SAMPLE, b=form("B?"), r={"method": "roots/list"}))
        name = task_id(await call)
        assert (len(await open_ids(scene)), len(await open_ids(scene, "sampling_requests"))) == (2, 1)
        await answer(scene, "B?", "Bo")
        [wish] = await open_ids(scene, "sampling_requests")
        await scene.value("respond_to_sampling", request_id=wish, role="assistant", content="Hi", model="m")
        assert scene.backends["one"].asked == []
        await answer(scene, "A?", "Al")
        again = await scene.backends["one"].next_asked()
        assert again.params["inputResponses"] == {
            "a": {"action": "accept", "content": {"name": "Al"}},
            "s": {"role": "assistant", "content": {"type": "text", "text": "Hi"}, "model": "m"},
            "b": {"action": "accept", "content": {"name": "Bo"}},
            "r": {"roots": []},
        }
        again.reply(**DONE)
        assert (await scene.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]


async def test_a_round_without_questions_is_retried_after_a_delay() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        backend = scene.backends["one"]
        call, asked = await a_call(scene)
        asked.reply(resultType="input_required", requestState="s1")
        await scene.clock.advance(0.04)
        assert backend.asked == []
        await scene.clock.advance(0.02)
        again = await backend.next_asked()
        assert (again.params["requestState"], "inputResponses" in again.params) == ("s1", False)
        again.reply(resultType="input_required", requestState="s2", inputRequests={})
        await scene.clock.advance(0.06)
        assert backend.asked == []
        await scene.clock.advance(0.05)
        last = await backend.next_asked()
        assert last.params["requestState"] == "s2"
        last.reply(**DONE)
        assert (await call)["content"][0] == DONE["content"][0]
        assert await scene.value("list_tasks", include_completed=True) == {"tasks": []}


async def test_a_round_that_asks_only_for_roots_is_answered_without_creating_a_task() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(r={"method": "roots/list"}))
        again = await scene.backends["one"].next_asked()
        again.reply(**DONE)
        assert (await call)["content"][0] == DONE["content"][0]


async def test_a_call_with_endless_rounds_of_questions_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_rounds, "QUESTION_ROUNDS", 3)
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        for _ in range(3):
            asked.reply(resultType="input_required", requestState="again")
            await scene.clock.advance(1)
            asked = await scene.backends["one"].next_asked()
        asked.reply(resultType="input_required", requestState="again")
        error = (await call)["structuredContent"]["error"]
        assert (error["code"], "3 rounds" in error["message"]) == ("TOOL_ERR_EXECUTION_FAILED", True)


async def test_a_question_of_2026_07_28_expires_after_nine_minutes_and_its_round_continues_without_it() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(q=form("Who?")), requestState="s")
        await call
        await scene.clock.advance(539.9)
        assert len(await open_ids(scene)) == 1
        await hush(scene)
        await scene.clock.advance(0.2)
        again = await scene.backends["one"].next_asked()
        assert again.params["inputResponses"] == {"q": {"action": "cancel"}}
        assert gone(await events(scene)) == [("elicitation_expired", "timeout")]


@pytest.mark.parametrize("odd", [{"method": "tasks/invent"}, {}, "what?", None])
async def test_an_unanswerable_question_in_a_round_fails_the_call_and_withdraws_the_others(odd: Any) -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene, on_question="wait")
        await hush(scene)
        asked.reply(**ask_for(a=form("Who?"), b=odd))
        result = await call
        error = result["structuredContent"]["error"]
        assert (error["code"], "no answer" in error["message"]) == ("TOOL_ERR_EXECUTION_FAILED", True)
        assert gone(notices(result)["events_since_last_response"]) == [("elicitation_expired", "withdrawn")]
        assert await open_ids(scene) == []


async def test_a_declined_sampling_request_fails_its_round() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(s=SAMPLE))
        name = task_id(await call)
        [wish] = await open_ids(scene, "sampling_requests")
        await scene.value("cancel_sampling_request", request_id=wish, reason="no model here")
        assert "no model here" in (await scene.error("get_task_result", task_id=name))["message"]


async def test_canceling_a_task_withdraws_the_questions_of_its_round() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(a=form("A?"), b=form("B?")))
        name = task_id(await call)
        await hush(scene)
        reply = await scene.call("cancel_task", task_id=name)
        told = [*notices(reply)["events_since_last_response"], *await events(scene)]
        assert sorted(gone(told)) == [("elicitation_expired", "withdrawn")] * 2
        assert await open_ids(scene) == []
        assert scene.backends["one"].asked == []


async def test_a_disconnected_2026_07_28_backend_withdraws_the_questions_of_its_round() -> None:
    async with a_scene(one=ScriptedBackend(modern=True)) as scene:
        call, asked = await a_call(scene)
        asked.reply(**ask_for(a=form("A?")))
        name = task_id(await call)
        await hush(scene)
        scene.backends["one"].link.break_off("it fell over")
        assert gone(await events(scene)) == [("elicitation_expired", "disconnected")]
        assert (await scene.error("get_task_result", task_id=name))["code"] == "TOOL_ERR_SERVER_DISCONNECTED"


# Many at once, and secrets.


@pytest.mark.parametrize("modern", [False, True])
async def test_of_ten_concurrent_calls_each_gets_its_own_questions_answers_and_result(modern: bool) -> None:
    async with a_scene(one=ScriptedBackend(modern=modern)) as scene:
        backend = scene.backends["one"]
        calls: list[asyncio.Task[JsonObject]] = []
        sides: list[Asked] = []
        for number in range(10):
            call, side = await a_call(scene, args={"n": number})
            calls.append(call)
            sides.append(side)
        asking: dict[int, asyncio.Task[JsonObject]] = {}
        for number in (7, 2, 5):
            if modern:
                sides[number].reply(**ask_for(q=form(f"Who is {number}?")), requestState=number)
            else:
                asking[number] = elicit(backend, f"Who is {number}?", origin=sides[number].origin)
        await settle()
        assert [number for number, call in enumerate(calls) if call.done()] == [2, 5, 7]
        chance = random.Random(2)
        for number in chance.sample([2, 5, 7], 3):
            await answer(scene, f"Who is {number}?", f"Number {number}")
        if modern:
            for _ in range(3):
                again = await backend.next_asked()
                number = again.params["requestState"]
                given = again.params["inputResponses"]["q"]["content"]["name"]
                assert (again.params["arguments"], given) == ({"n": number}, f"Number {number}")
                sides[number] = again
        for number, question in asking.items():
            assert (await question)["content"]["name"] == f"Number {number}"
        for number in chance.sample(range(10), 10):
            sides[number].reply(content=[{"type": "text", "text": f"result {number}"}])
        for number, call in enumerate(calls):
            result = await call
            if number in (2, 5, 7):
                result = await scene.call("get_task_result", task_id=task_id(result))
            assert result["content"][0]["text"] == f"result {number}"


async def test_answers_are_passed_on_and_never_shown_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret, wrong = "s3cret-answer", "s3cret-that-does-not-fit"
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend(modern=True)) as scene:
        said: list[Any] = []
        call, asked = await a_call(scene)
        modern, inside = await a_call(scene, "two")
        asking, wish = elicit(scene.backends["one"], origin=asked.origin), sample(scene.backends["one"])
        inside.reply(**ask_for(q=form("And?")))
        said += [await call, await modern]
        for request_id in await open_ids(scene):
            bad: JsonObject = {"request_id": request_id, "action": "accept"}
            said.append(await scene.call("respond_to_elicitation", **bad, content={"name": [wrong]}))
            said.append(await scene.call("respond_to_elicitation", **bad, content=wrong))
            said.append(await scene.call("respond_to_elicitation", **bad, content={"name": secret}))
            said.append(await scene.call("respond_to_elicitation", **bad, content={"name": secret}))
        for request_id in await open_ids(scene, "sampling_requests"):
            completion: JsonObject = {"request_id": request_id, "role": "assistant", "model": "m"}
            said.append(await scene.call("respond_to_sampling", **completion, content=[{"type": "image", "x": wrong}]))
            said.append(await scene.call("respond_to_sampling", **completion, content=secret))
        assert (await asking)["content"] == {"name": secret}
        assert (await wish)["content"]["text"] == secret
        await scene.backends["two"].next_asked()
        for tool in ("get_elicitations", "get_sampling_requests", "list_tasks", "get_logs", "get_notifications"):
            said.append(await scene.call(tool))
        said.append(await scene.call("await_activity", last_event_id="everything"))
        assert len(said[-1]["structuredContent"]["events"]) == 2
    logged = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "elicitation_responded" in logged
    for words in (secret, wrong):
        assert words not in json.dumps(said)
        assert words not in logged


# Links that a server wants opened before it runs a call.


def links_required(*links: JsonObject) -> RpcError:
    return RpcError({"code": -32042, "message": "open a link", "data": {"elicitations": list(links)}})


LINK = {"mode": "url", "elicitationId": "e1", "url": "https://bank.example/ok?a=1", "message": "Agree\nthere."}


async def test_a_url_that_is_needed_before_a_call_is_in_the_error_and_becomes_a_question() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        asked.fail(links_required(LINK, {"url": "javascript:alert(1)"}, {"mode": "form"}))
        error = (await call)["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert error["message"].endswith("as a question. Agree there. https://bank.example/ok?a=1")
        assert error["details"]["error"]["code"] == -32042
        [question] = (await scene.value("get_elicitations"))["requests"]
        assert {key: question[key] for key in ("mode", "url", "message", "elicitationId")} == LINK | {
            "message": "Agree there."
        }
        again, asked = await a_call(scene)
        asked.fail(links_required(LINK))
        await again
        assert len(await open_ids(scene)) == 1
        await scene.value("respond_to_elicitation", request_id=question["requestId"], action="accept")
        assert await open_ids(scene) == []


async def test_a_url_question_before_a_call_closes_when_the_server_reports_completion() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        asked.fail(links_required(LINK, LINK | {"elicitationId": "e2", "url": "https://bank.example/two"}))
        await call
        listener = scene.backends["one"].link.listener
        listener.handle_notification("notifications/elicitation/complete", {"elicitationId": "e1"}, None)
        [left] = (await scene.value("get_elicitations"))["requests"]
        assert left["elicitationId"] == "e2"


@pytest.mark.parametrize("data", [None, [], {"elicitations": None}, {"elicitations": [1, {}, {"url": 5}]}])
async def test_a_url_error_without_a_url_is_reported_like_any_other_error(data: object) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call, asked = await a_call(scene)
        asked.fail(RpcError({"code": -32042, "message": "open a link", "data": data}))
        error = (await call)["structuredContent"]["error"]
        assert "answered tools/call with error -32042: open a link" in error["message"]
        assert await open_ids(scene) == []

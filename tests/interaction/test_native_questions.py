"""Handshake era callers with elicitation support receive questions as requests."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.link import RpcError
from emceepee.state.attendance import READING_SECONDS
from emceepee.state.notice_options import NoticeOptions
from emceepee.state.question import QuestionKind
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.in_process.asgi_caller import AsgiCaller, AsgiRequest, an_asgi_caller, an_asgi_endpoint
from support.in_process.stdio_client import StdioClient, a_stdio_client
from support.sessions.asking import NAME_FORM, elicit, sample, task_id

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}
JO: JsonObject = {"name": "Jo"}
BOTH: JsonObject = {"form": {}, "url": {}}
NO_FIELDS: JsonObject = {"type": "object", "properties": {}}
LINK: JsonObject = {"mode": "url", "url": "https://example.org/x", "elicitationId": "e1", "requestedSchema": None}


@pytest.fixture
async def client() -> AsyncIterator[StdioClient]:
    async with a_stdio_client() as made:
        yield made


async def a_call(client: StdioClient, key: Any = "call", **arguments: Any) -> Asked:
    await client.call("execute_tool", key, server="demo", tool="slow", **arguments)
    return await client.backend.next_asked()


async def a_question(client: StdioClient, **asked: Any) -> tuple[Asked, "asyncio.Task[JsonObject]", JsonObject]:
    """A call whose server asks: its end at the server, what the server waits for, and what the caller is asked."""
    call = await a_call(client)
    waiting = elicit(client.backend, origin=call.origin, **asked)
    return call, waiting, await client.next()


def open_questions(client: StdioClient) -> list[str]:
    return [question.request_id for question in client.scene.session.questions.open()]


# Questions.


async def test_a_form_reaches_the_caller_natively_and_its_call_waits_for_the_answer(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    call, waiting, request = await a_question(client, _meta={"k": 1}, hint="odd")
    [question_id] = open_questions(client)
    assert request == {
        "jsonrpc": "2.0",
        "id": question_id,
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "[demo] Your name?", "requestedSchema": NAME_FORM},
    }
    await client.answer(question_id, action="accept", content=JO)
    assert await waiting == {"action": "accept", "content": JO}
    call.reply(**DONE)
    reply = await client.next()
    assert (reply["id"], reply["result"]["content"][0]) == ("call", DONE["content"][0])
    assert (client.heard, client.scene.session.tasks.all()) == ([], [])


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_native_decline_reaches_the_backend_unchanged(client: StdioClient, action: str) -> None:
    await client.open(elicitation={})
    call, waiting, request = await a_question(client)
    await client.scene.clock.advance(READING_SECONDS)
    await client.answer(request["id"], action=action, content={})
    assert await waiting == {"action": action}
    call.reply(**DONE)
    assert (await client.next())["id"] == "call"


async def test_native_answers_are_completed_with_defaults(client: StdioClient) -> None:
    form = {"type": "object", "properties": {"n": {"type": "integer", "default": 42}}}
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client, requestedSchema=form)
    await client.answer(request["id"], action="accept", content={})
    assert await waiting == {"action": "accept", "content": {"n": 42}}


async def test_a_url_question_has_an_id_of_emceepee_and_its_end_is_reported_by_that_id(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client, **LINK)
    assert request["params"] == {
        "mode": "url",
        "message": "[demo] Your name?",
        "url": "https://example.org/x",
        "elicitationId": request["id"],
    }
    await client.answer(request["id"], action="accept", content={"odd": 1})
    assert await waiting == {"action": "accept"}
    for _ in range(2):  # the second time, it is over already
        client.scene.backends["demo"].link.listener.handle_notification(
            "notifications/elicitation/complete", {"elicitationId": "e1"}, None
        )
    await settle()
    assert client.heard == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/elicitation/complete",
            "params": {"elicitationId": request["id"]},
        }
    ]


async def test_a_url_that_a_call_needs_reaches_the_caller_natively(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    call = await a_call(client)
    needed = {"mode": "url", "message": "Agree.", "url": "https://example.org/x", "elicitationId": "e1"}
    call.fail(RpcError({"code": -32042, "message": "open it", "data": {"elicitations": [needed]}}))
    request, reply = await client.next(), await client.next()
    assert (request["method"], request["params"]["url"]) == ("elicitation/create", "https://example.org/x")
    assert (reply["id"], reply["result"]["isError"]) == ("call", True)
    await client.answer(request["id"], action="accept")
    await settle()
    assert open_questions(client) == []
    client.scene.backends["demo"].link.listener.handle_notification(
        "notifications/elicitation/complete", {"elicitationId": "e1"}, None
    )
    assert (await client.next())["params"] == {"elicitationId": request["id"]}


async def test_the_completion_of_a_declined_url_question_is_not_reported(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client, **LINK)
    await client.scene.clock.advance(READING_SECONDS)
    await client.answer(request["id"], action="decline")
    await waiting
    client.scene.backends["demo"].link.listener.handle_notification(
        "notifications/elicitation/complete", {"elicitationId": "e1"}, None
    )
    await settle()
    assert client.heard == []


async def test_a_caller_of_2025_06_18_is_asked_without_a_mode_field_and_receives_no_urls(client: StdioClient) -> None:
    await client.open("2025-06-18", elicitation=BOTH)
    _, _, request = await a_question(client)
    assert request["params"] == {"message": "[demo] Your name?", "requestedSchema": NAME_FORM}
    elicit(client.backend, **LINK)
    reply = await client.next()
    assert "proxy_task" in reply["result"]["structuredContent"]


# Who is not asked: as if there were nothing but tools.


@pytest.mark.parametrize(
    ("version", "capabilities", "asked"),
    [
        ("2025-11-25", {}, {}),
        ("2025-11-25", {"elicitation": {}}, LINK),
        ("2025-11-25", {"elicitation": {"url": {}}}, {}),
        ("2025-11-25", {"elicitation": BOTH}, LINK | {"url": "javascript:alert(1)"}),
        ("2025-11-25", {"elicitation": BOTH}, LINK | {"url": 5}),
        ("2025-11-25", {"elicitation": BOTH}, {"requestedSchema": "none"}),
        ("2025-03-26", {"elicitation": BOTH}, {}),
    ],
)
async def test_a_question_type_that_the_caller_does_not_support_makes_the_call_a_task(
    client: StdioClient, version: str, capabilities: JsonObject, asked: JsonObject
) -> None:
    await client.open(version, **capabilities)
    _, _, reply = await a_question(client, **asked)
    assert (reply["id"], "proxy_task" in reply["result"]["structuredContent"]) == ("call", True)
    assert "Ask the user, then answer" in reply["result"]["content"][0]["text"]
    assert (client.heard, len(open_questions(client))) == ([], 1)


async def test_an_operator_can_disable_native_questions(client: StdioClient) -> None:
    client.scene.session.notice_options = NoticeOptions(asks_natively=False)
    await client.open(elicitation=BOTH)
    _, _, reply = await a_question(client)
    assert "proxy_task" in reply["result"]["structuredContent"]


async def test_sampling_requests_reach_callers_only_through_tools(client: StdioClient) -> None:
    await client.open(elicitation=BOTH, sampling={})
    call = await a_call(client)
    sample(client.backend, origin=call.origin)
    assert "proxy_task" in (await client.next())["result"]["structuredContent"]


# Whose question it is.


async def test_a_question_without_a_known_call_is_asked_once_and_all_calls_of_the_caller_wait(
    client: StdioClient,
) -> None:
    await client.open(elicitation=BOTH)
    calls = [await a_call(client, key) for key in (1, 2)]
    waiting = elicit(client.backend)
    request = await client.next()
    await settle()
    assert client.heard == []
    await client.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    for call in calls:
        call.reply(**DONE)
    assert {(await client.next())["id"], (await client.next())["id"]} == {1, 2}


async def test_a_question_outside_of_any_call_goes_to_any_connected_caller(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    waiting = elicit(client.backend)
    request = await client.next()
    await client.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO


async def test_a_question_with_an_unreadable_answer_waits_for_a_tool(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, _, request = await a_question(client)
    answer = '{"jsonrpc":"2.0","id":"%s","result":{"action":"accept","content":{"n":%s}}}'
    await client.conversation.receive((answer % (request["id"], "1" * 5000)).encode())
    reply = await client.next()
    assert "proxy_task" in reply["result"]["structuredContent"]
    assert (client.heard, open_questions(client)) == ([], [request["id"]])


# Races: the first answer counts, from any source.


def cancelled(request: JsonObject) -> JsonObject:
    told = {"requestId": request["id"], "reason": "The question was answered elsewhere or withdrawn."}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told}


async def test_an_answer_by_a_tool_withdraws_the_native_question_and_a_late_response_is_ignored(
    client: StdioClient,
) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client)
    await client.call("respond_to_elicitation", 9, request_id=request["id"], action="accept", content=JO)
    assert await client.next() == cancelled(request)
    assert (await client.next())["id"] == 9
    await client.answer(request["id"], action="decline")
    assert await waiting == {"action": "accept", "content": JO}
    assert client.heard == []


async def test_an_answer_in_the_console_withdraws_the_native_question(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client)
    client.scene.session.questions.answer_elicitation(request["id"], "accept", JO, by_another=True)
    assert await client.next() == cancelled(request)
    assert await waiting == {"action": "accept", "content": JO}


async def test_a_tool_answer_after_the_native_response_learns_that_the_question_is_closed(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client)
    await client.answer(request["id"], action="accept", content=JO)
    await client.call("respond_to_elicitation", 9, request_id=request["id"], action="decline")
    error = (await client.next())["result"]["structuredContent"]["error"]
    assert error["code"] == "ERR_REQUEST_NOT_FOUND"
    assert (await waiting)["action"] == "accept"


async def test_an_expired_question_is_withdrawn_from_the_caller(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    waiting = elicit(client.backend)
    request = await client.next()
    await client.scene.clock.advance(601)
    assert await waiting == {"action": "cancel"}
    assert cancelled(request) in client.heard


async def test_canceling_a_call_withdraws_its_native_question(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, _, request = await a_question(client)
    await client.tell("notifications/cancelled", requestId="call")
    assert await client.next() == cancelled(request)
    assert open_questions(client) == []


async def test_a_disconnected_server_withdraws_its_native_question(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, _, request = await a_question(client)
    client.backend.link.break_off("gone")
    assert await client.next() == cancelled(request)
    assert (await client.next())["result"]["isError"]


# No answer, or none that can be used.


@pytest.mark.parametrize(
    "message",
    [
        {"error": {"code": -32601, "message": "Method not found"}},
        {"result": {"action": "accept", "content": {"name": 5}}},
        {"result": {"action": "accept", "content": ["Jo"]}},
        {"result": {"action": "perhaps"}},
        {"result": {}},
        {"result": "Jo"},
    ],
)
async def test_after_an_invalid_native_response_the_call_is_a_task_and_its_question_waits(
    client: StdioClient, message: JsonObject
) -> None:
    await client.open(elicitation=BOTH)
    _, waiting, request = await a_question(client)
    await client.say({"jsonrpc": "2.0", "id": request["id"]} | message)
    reply = await client.next()
    assert (reply["id"], "proxy_task" in reply["result"]["structuredContent"]) == ("call", True)
    assert "Ask the user, then answer" in reply["result"]["content"][0]["text"]
    await client.call("respond_to_elicitation", 9, request_id=request["id"], action="accept", content=JO)
    assert (await client.next())["id"] == 9
    assert (await waiting)["content"] == JO


# Nobody is there: headless agents declare elicitation and dismiss every question at once.


async def dismiss(client: StdioClient, request: JsonObject, *, after: float, action: str = "decline") -> None:
    await client.scene.clock.advance(after)
    await client.answer(request["id"], action=action)


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("seconds", [0.0, 0.006, 0.9])
async def test_a_dismissal_faster_than_a_person_reads_leaves_the_question_to_the_tools(
    client: StdioClient, action: str, seconds: float
) -> None:
    await client.open(elicitation=BOTH)
    call, waiting, request = await a_question(client)
    await dismiss(client, request, after=seconds, action=action)
    reply = await client.next()
    assert (reply["id"], "proxy_task" in reply["result"]["structuredContent"]) == ("call", True)
    words = f"The client dismissed this after {seconds * 1000:.0f} ms, before anyone can have read it"
    assert words in reply["result"]["content"][0]["text"]
    assert words in reply["result"]["structuredContent"]["next"]
    assert open_questions(client) == [request["id"]]
    await client.call("respond_to_elicitation", 9, request_id=request["id"], action="accept", content=JO)
    assert (await client.next())["id"] == 9
    assert await waiting == {"action": "accept", "content": JO}
    call.reply(**DONE)
    await client.call("get_task_result", 10, task_id=task_id(reply["result"]))
    assert (await client.next())["result"]["content"][0] == DONE["content"][0]


async def test_a_client_without_a_person_is_not_asked_again_and_receives_the_reason_once(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    _, _, request = await a_question(client)
    await dismiss(client, request, after=0.006)
    await client.next()
    await client.call("respond_to_elicitation", 9, request_id=request["id"], action="accept", content=JO)
    await client.next()
    _, waiting, reply = await a_question(client)
    assert (reply["id"], "proxy_task" in reply["result"]["structuredContent"]) == ("call", True)
    assert "The client dismissed" not in reply["result"]["content"][0]["text"]
    assert (client.heard, len(open_questions(client)), waiting.done()) == ([], 1, False)


@pytest.mark.parametrize("tool", ["list_timers", "await_activity"])
async def test_without_a_waiting_call_the_next_reply_reports_once_that_a_question_was_dismissed_unread(
    client: StdioClient, tool: str
) -> None:
    await client.open(elicitation=BOTH)
    elicit(client.backend)
    request = await client.next()
    await dismiss(client, request, after=0.006)
    notes = []
    for key in (9, 10):
        await client.call(tool, key)
        await settle()
        await client.scene.clock.advance(30)
        said = (await client.next())["result"]["structuredContent"]
        [entry] = said.get("pending_client", said.get("pending_client_action"))["elicitations"]
        assert entry["requestId"] == request["id"]
        notes.append(entry.get("note", ""))
    assert "before anyone can have read it" in notes[0]
    assert notes[1] == ""


async def test_a_person_who_declines_two_questions_at_human_speed_is_respected_twice(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    for _ in range(2):
        call, waiting, request = await a_question(client)
        await dismiss(client, request, after=1.2)
        assert await waiting == {"action": "decline"}
        call.reply(**DONE)
        assert (await client.next())["id"] == "call"


async def test_a_person_who_has_accepted_a_question_may_dismiss_the_next_at_once(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    call, waiting, request = await a_question(client)
    await client.answer(request["id"], action="accept", content=JO)
    await waiting
    call.reply(**DONE)
    await client.next()
    _, waiting, request = await a_question(client)
    await dismiss(client, request, after=0.3)
    assert await waiting == {"action": "decline"}


async def test_a_client_that_automatically_accepts_a_form_without_fields_does_not_count_as_a_person(
    client: StdioClient,
) -> None:
    """Codex with full access does so. The next form has fields, and Codex declines it at once."""
    await client.open(elicitation=BOTH)
    call, waiting, request = await a_question(client, message="Go on?", requestedSchema=NO_FIELDS)
    await client.answer(request["id"], action="accept", content={})
    assert await waiting == {"action": "accept", "content": {}}
    call.reply(**DONE)
    await client.next()
    _, waiting, request = await a_question(client)
    await dismiss(client, request, after=0.001)
    assert "before anyone can have read it" in (await client.next())["result"]["content"][0]["text"]
    assert (open_questions(client), waiting.done()) == ([request["id"]], False)


async def test_a_second_question_that_an_absent_client_dismisses_late_stays_open(client: StdioClient) -> None:
    """Both questions were sent before the client was known to be absent."""
    await client.open(elicitation=BOTH)
    first, second = await a_call(client, 1), await a_call(client, 2)
    waiting = [elicit(client.backend, origin=call.origin) for call in (first, second)]
    requests = [await client.next(), await client.next()]
    await dismiss(client, requests[0], after=0.006)
    await dismiss(client, requests[1], after=3)
    assert {(await client.next())["id"], (await client.next())["id"]} == {1, 2}
    assert open_questions(client) == [request["id"] for request in requests]
    assert not any(task.done() for task in waiting)


async def test_an_accepted_question_proves_that_a_person_is_present(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    calls = [await a_call(client, key) for key in (1, 2)]
    waiting = [elicit(client.backend, origin=call.origin) for call in calls]
    requests = [await client.next(), await client.next()]
    await dismiss(client, requests[0], after=0.006)
    await client.answer(requests[1]["id"], action="accept", content=JO)
    assert (await waiting[1])["content"] == JO
    assert (await client.next())["id"] == 1
    call = await a_call(client, 3)
    elicit(client.backend, origin=call.origin)
    assert (await client.next())["method"] == "elicitation/create"


async def test_an_operator_can_make_every_dismissal_count(client: StdioClient) -> None:
    """This is for clients whose program decides instead of a person."""
    client.scene.session.notice_options = NoticeOptions(trusts_dismissals=True)
    await client.open(elicitation=BOTH)
    for _ in range(2):
        call, waiting, request = await a_question(client)
        await client.answer(request["id"], action="decline")
        assert await waiting == {"action": "decline"}
        call.reply(**DONE)
        assert (await client.next())["id"] == "call"


async def test_a_user_may_take_longer_than_the_promotion_time_of_the_call(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    call, waiting, request = await a_question(client)
    await client.scene.clock.advance(51)
    reply = await client.next()
    text = reply["result"]["content"][0]["text"]
    assert "The client is already asking the user" in text
    assert f'respond_to_elicitation(request_id="{request["id"]}"' in text
    await client.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    call.reply(**DONE)
    await client.call("get_task_result", 9, task_id=task_id(reply["result"]))
    assert (await client.next())["result"]["content"][0] == DONE["content"][0]


async def test_a_response_to_an_unknown_native_question_is_ignored(client: StdioClient) -> None:
    await client.open(elicitation=BOTH)
    for key in ("stranger", 5, None):
        await client.answer(key, action="accept")
    await client.ask("ping")
    assert (await client.next())["result"] == {}


# Over HTTP.


@pytest.fixture
async def caller() -> AsyncIterator[AsgiCaller]:
    async with an_asgi_caller(elicitation=BOTH) as made:
        yield made


async def an_asked_caller(
    caller: AsgiCaller, backend: ScriptedBackend
) -> tuple[AsgiRequest, Asked, "asyncio.Task[JsonObject]"]:
    line = caller.start("execute_tool", server="one", tool="slow")
    call = await backend.next_asked()
    waiting = elicit(backend, origin=call.origin)
    await settle()
    return line, call, waiting


def requests_in(line: AsgiRequest) -> list[JsonObject]:
    return [event.message for event in line.events if event.message is not None and "method" in event.message]


async def test_over_http_a_native_question_is_on_the_stream_of_its_call(caller: AsgiCaller) -> None:
    listening = caller.listen()
    await settle()
    line, call, waiting = await an_asked_caller(caller, caller.backend)
    [request] = requests_in(line)
    assert (request["method"], requests_in(listening)) == ("elicitation/create", [])
    await caller.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    call.reply(**DONE)
    assert (await line.served()).message["result"]["content"][0] == DONE["content"][0]
    assert caller.session.tasks.all() == []
    listening.hang_up()
    await listening.served()


async def test_over_http_a_question_outside_of_any_call_is_on_the_general_push_stream(caller: AsgiCaller) -> None:
    listening = caller.listen()
    await settle()
    waiting = elicit(caller.backend)
    await settle()
    [request] = requests_in(listening)
    await caller.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    listening.hang_up()
    await listening.served()


async def test_over_http_a_caller_without_a_stream_is_not_asked(caller: AsgiCaller) -> None:
    unasked = elicit(caller.backend)
    plain = caller.post(
        "tools/call",
        {"name": "execute_tool", "arguments": {"server": "one", "tool": "slow"}},
        accept="application/json",
    )
    call = await caller.backend.next_asked()
    elicit(caller.backend, origin=call.origin)
    reply = (await plain.served()).message
    assert "proxy_task" in reply["result"]["structuredContent"]
    assert not unasked.done()


async def test_over_http_resuming_a_cut_stream_repeats_the_question(caller: AsgiCaller) -> None:
    line, call, waiting = await an_asked_caller(caller, caller.backend)
    first = line.events[0].event_id
    line.hang_up()
    await settle()
    again = caller.come_back(first)
    await settle()
    [request] = requests_in(again)
    await caller.answer(request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    call.reply(**DONE)
    assert (await again.served()).message["result"]["content"][0] == DONE["content"][0]
    await line.served()


async def test_over_http_a_caller_that_does_not_resume_finds_the_task_and_its_question(caller: AsgiCaller) -> None:
    line, call, waiting = await an_asked_caller(caller, caller.backend)
    [request] = requests_in(line)
    line.hang_up()
    await settle()
    await caller.clock.advance(6)
    await line.served()
    [task] = caller.session.tasks.working()
    shown = (await caller.call("get_elicitations"))["structuredContent"]["requests"]
    assert [(item["requestId"], item["taskId"]) for item in shown] == [(request["id"], task.task_id)]
    await caller.call("respond_to_elicitation", request_id=request["id"], action="accept", content=JO)
    assert (await waiting)["content"] == JO
    call.reply(**DONE)
    assert (await caller.call("get_task_result", task_id=task.task_id))["content"][0] == DONE["content"][0]


async def test_over_http_an_answer_in_another_session_is_ignored() -> None:
    async with an_asgi_endpoint() as (installation, endpoint):
        callers = [
            AsgiCaller(installation, endpoint, is_modern=False, capabilities={"elicitation": BOTH}) for _ in range(2)
        ]
        for caller in callers:
            await caller.open()
        other, mine = callers  # what asks is the newest link
        streams = [caller.listen() for caller in callers]
        line, call, waiting = await an_asked_caller(mine, installation.backend)
        [request] = requests_in(line)
        await other.answer(request["id"], action="accept", content={"name": "Eve"})
        refused = await other.call("respond_to_elicitation", request_id=request["id"], action="decline")
        assert refused["structuredContent"]["error"]["code"] == "ERR_REQUEST_NOT_FOUND"
        await settle()
        assert not waiting.done()
        assert [requests_in(stream) for stream in streams] == [[], []]
        await mine.answer(request["id"], action="accept", content=JO)
        assert (await waiting)["content"] == JO
        call.reply(**DONE)
        await line.served()
        for stream in streams:
            stream.hang_up()
            await stream.served()


async def test_over_http_a_dismissal_faster_than_a_person_reads_leaves_the_question_to_the_tools(
    caller: AsgiCaller,
) -> None:
    line, _, waiting = await an_asked_caller(caller, caller.backend)
    [request] = requests_in(line)
    await caller.answer(request["id"], action="cancel")
    assert "proxy_task" in (await line.served()).message["result"]["structuredContent"]
    again = caller.start("execute_tool", server="one", tool="slow")
    elicit(caller.backend, origin=(await caller.backend.next_asked()).origin)
    assert "proxy_task" in (await again.served()).message["result"]["structuredContent"]
    assert (waiting.done(), len(caller.session.questions.open())) == (False, 2)


async def test_a_closed_connection_leaves_its_native_question_to_the_tools(caller: AsgiCaller) -> None:
    session = caller.session
    line, _, waiting = await an_asked_caller(caller, caller.backend)
    assert session.questions.native is not None
    [question] = session.questions.open(QuestionKind.ELICITATION)
    assert session.questions.native.is_asked(question)
    for connection in caller.connections():
        await connection.leave()
    assert not session.questions.native.is_asked(question)
    assert not waiting.done()
    session.questions.answer_elicitation(question.request_id, "accept", JO)
    assert (await waiting)["content"] == JO
    await line.served()

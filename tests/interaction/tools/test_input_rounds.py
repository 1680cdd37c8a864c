"""Callers of 2026-07-28 with elicitation support: the result is a question, and the resent call continues."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.console.rows import detail
from emceepee.sessions.session import Session
from emceepee.state.attendance import READING_SECONDS
from emceepee.state.notice_options import NoticeOptions
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import FakeClock, settle
from support.in_process.asgi_caller import AsgiCaller, an_asgi_caller, an_asgi_endpoint
from support.in_process.stdio_client import a_stdio_client
from support.sessions.asking import NAME_FORM, elicit, sample, task_id

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}
JO: JsonObject = {"name": "Jo"}
BOTH: JsonObject = {"form": {}, "url": {}}
LINK: JsonObject = {"mode": "url", "url": "https://example.org/x", "elicitationId": "e1", "requestedSchema": None}
Post = Callable[[JsonObject], Awaitable[JsonObject]]
Call = asyncio.Task[JsonObject]


class ModernClient:
    """A caller over either transport: its messages, and what is behind emceepee."""

    def __init__(self, post: Post, server: str, backend: ScriptedBackend, session: Session, clock: FakeClock) -> None:
        self._post, self.server, self.backend, self.session, self.clock = post, server, backend, session, clock

    def start(self, tool: str = "execute_tool", *, with_: JsonObject | None = None, **arguments: Any) -> Call:
        """`with_` stands beside the name and the arguments."""
        if tool == "execute_tool":
            arguments = {"server": self.server, "tool": "slow"} | arguments

        async def answer() -> JsonObject:
            async with asyncio.timeout(5):
                return await self._post({"name": tool, "arguments": arguments} | (with_ or {}))

        return asyncio.create_task(answer())

    async def call(self, tool: str, **arguments: Any) -> JsonObject:
        return dict((await self.start(tool, **arguments))["result"])

    async def value(self, tool: str, **arguments: Any) -> JsonObject:
        return dict((await self.call(tool, **arguments))["structuredContent"])

    async def asked(self, **question: Any) -> tuple[Asked, Call, JsonObject]:
        """A call whose server asks: its end at the server, what the server waits for, and the result that asks."""
        call = self.start()
        at_server = await self.backend.next_asked()
        waiting = elicit(self.backend, origin=at_server.origin, **question)
        return at_server, waiting, (await call)["result"]

    @property
    def sent(self) -> int:
        """How often the server was called."""
        return sum(method == "tools/call" for method, _ in self.backend.seen)


@asynccontextmanager
async def over_stdio(**capabilities: Any) -> AsyncIterator[ModernClient]:
    async with a_stdio_client() as client:
        await client.open("2026-07-28", **capabilities)
        waiting: dict[int, asyncio.Future[JsonObject]] = {}

        async def read() -> None:
            while True:
                message = await client.next()
                waiting[message["id"]].set_result(message)

        async def post(params: JsonObject) -> JsonObject:
            key = len(waiting)
            waiting[key] = asyncio.get_running_loop().create_future()
            await client.ask("tools/call", key, **params)
            return await waiting[key]

        reading = asyncio.create_task(read())
        try:
            yield ModernClient(post, "demo", client.backend, client.scene.session, client.scene.clock)
        finally:
            reading.cancel()


@asynccontextmanager
async def over_http(**capabilities: Any) -> AsyncIterator[ModernClient]:
    async with an_asgi_caller(is_modern=True, **capabilities) as caller:
        yield of_http(caller)


def of_http(caller: AsgiCaller) -> ModernClient:
    async def post(params: JsonObject) -> JsonObject:
        return (await caller.post("tools/call", params).served()).message

    return ModernClient(post, "one", caller.backend, caller.session, caller.clock)


TRANSPORTS = pytest.mark.parametrize("over", [over_stdio, over_http])


@pytest.fixture(params=[over_stdio, over_http])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[ModernClient]:
    async with request.param(elicitation=BOTH) as made:
        yield made


def again(result: JsonObject, *answers: JsonObject) -> JsonObject:
    """Return the params that a client adds when it sends the call again."""
    responses = dict(zip(result["inputRequests"], answers, strict=False))
    return {"requestState": result["requestState"], "inputResponses": responses}


ACCEPT: JsonObject = {"action": "accept", "content": JO}


async def test_a_question_is_the_result_and_the_resent_call_gets_the_result_of_the_server(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked(_meta={"k": 1})
    [question_id] = [question.request_id for question in client.session.questions.open()]
    form = {"mode": "form", "message": f"[{client.server}] Your name?", "requestedSchema": NAME_FORM}
    assert result["resultType"] == "input_required"
    assert result["inputRequests"] == {question_id: {"method": "elicitation/create", "params": form}}
    assert set(result) == {"resultType", "inputRequests", "requestState", "_meta"}
    call = client.start(with_=again(result, ACCEPT))
    assert await waiting == ACCEPT
    at_server.reply(**DONE)
    final = (await call)["result"]
    assert (final["resultType"], final["content"][0]) == ("complete", DONE["content"][0])
    assert client.sent == 1


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_decline_is_passed_on_to_the_server_unchanged(client: ModernClient, action: str) -> None:
    at_server, waiting, result = await client.asked()
    await client.clock.advance(READING_SECONDS)
    call = client.start(with_=again(result, {"action": action}))
    assert await waiting == {"action": action}
    at_server.reply(**DONE)
    assert (await call)["result"]["content"][0] == DONE["content"][0]


async def test_a_url_question_to_a_2026_07_28_caller_has_no_id(client: ModernClient) -> None:
    _, waiting, result = await client.asked(**LINK)
    [request] = result["inputRequests"].values()
    assert request["params"] == {"mode": "url", "message": f"[{client.server}] Your name?", "url": LINK["url"]}
    client.start(with_=again(result, {"action": "accept"}))
    assert await waiting == {"action": "accept"}


async def test_a_call_that_is_resent_twice_runs_once(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    calls = [client.start(with_=again(result, ACCEPT)) for _ in range(2)]
    await waiting
    at_server.reply(**DONE)
    calls.append(client.start(with_=again(result, {"action": "decline"})))
    for call in calls:
        assert (await call)["result"]["content"][0] == DONE["content"][0]
    assert client.sent == 1


async def test_a_server_may_ask_in_several_rounds(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    for name in ("Jo", "Al", "Cy"):
        call = client.start(with_=again(result, {"action": "accept", "content": {"name": name}}))
        assert (await waiting)["content"] == {"name": name}
        waiting = elicit(client.backend, f"And after {name}?", origin=at_server.origin)
        result = (await call)["result"]
        [request] = result["inputRequests"].values()
        assert request["params"]["message"] == f"[{client.server}] And after {name}?"
    assert client.sent == 1


async def test_an_unanswered_question_is_asked_again_and_unknown_answers_are_ignored(client: ModernClient) -> None:
    call = client.start()
    at_server = await client.backend.next_asked()
    waiting = [elicit(client.backend, message, origin=at_server.origin) for message in ("One?", "Two?")]
    first = (await call)["result"]
    assert len(first["inputRequests"]) == 2
    given = again(first, ACCEPT)
    given["inputResponses"]["stranger"] = ACCEPT
    second = (await client.start(with_=given))["result"]
    assert await waiting[0] == ACCEPT
    assert list(second["inputRequests"]) == list(first["inputRequests"])[1:]
    last = client.start(with_=again(second, ACCEPT))
    assert await waiting[1] == ACCEPT
    at_server.reply(**DONE)
    assert (await last)["result"]["content"][0] == DONE["content"][0]


async def test_if_the_call_is_slow_after_the_answer_it_is_reported_as_a_task(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    call = client.start(with_=again(result, ACCEPT))
    await waiting
    await settle()
    await client.clock.advance(51)
    told = (await call)["result"]
    at_server.reply(**DONE)
    done = await client.call("get_task_result", task_id=task_id(told))
    assert done["content"][0] == DONE["content"][0]


async def test_a_call_that_is_never_resent_is_a_task_whose_question_tools_can_answer(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    [question] = (await client.value("get_elicitations"))["requests"]
    assert list(result["inputRequests"]) == [question["requestId"]]
    [task] = (await client.value("list_tasks"))["tasks"]
    await client.call("respond_to_elicitation", request_id=question["requestId"], action="accept", content=JO)
    assert await waiting == ACCEPT
    at_server.reply(**DONE)
    done = await client.call("get_task_result", task_id=task["taskId"])
    assert done["content"][0] == DONE["content"][0]
    late = (await client.start(with_=again(result, {"action": "decline"})))["result"]
    assert late["content"][0] == DONE["content"][0]


async def test_an_invalid_answer_leaves_the_question_to_the_tools(client: ModernClient) -> None:
    _, waiting, result = await client.asked()
    wrong = {"action": "accept", "content": {"name": 5}}
    told = (await client.start(with_=again(result, wrong)))["result"]
    text = told["content"][0]["text"]
    assert "does not fit the form" in text
    assert "respond_to_elicitation" in text
    assert not waiting.done()
    assert len(client.session.questions.open()) == 1


async def test_a_failure_of_the_server_is_the_result_of_the_call(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    call = client.start(with_=again(result, ACCEPT))
    await waiting
    at_server.refuse(-32000, "no table")
    error = (await call)["result"]
    assert (error["isError"], "no table" in error["content"][0]["text"]) == (True, True)


async def test_a_resent_call_whose_task_was_deleted_is_not_sent_to_the_server(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    call = client.start(with_=again(result, ACCEPT))
    await waiting
    at_server.reply(**DONE)
    await call
    await client.clock.advance(301)
    late = (await client.start(with_=again(result, ACCEPT)))["result"]
    assert late["structuredContent"]["error"]["code"] == "ERR_TASK_NOT_FOUND"
    assert client.sent == 1


# Foreign values are refused, and nothing runs.


@pytest.mark.parametrize("what", ["changed", "cut", "of another call", "without state", "no text", "arguments"])
async def test_a_request_state_of_another_call_is_rejected(client: ModernClient, what: str) -> None:
    _, waiting, result = await client.asked()
    given, arguments = again(result, ACCEPT), dict[str, Any]()
    state = given["requestState"]
    match what:
        case "changed":
            given["requestState"] = state[:-1] + ("0" if state[-1] != "0" else "1")
        case "cut":
            given["requestState"] = state.partition(".")[0]
        case "of another call":
            _, _, other = await client.asked()
            given["requestState"] = other["requestState"].partition(".")[0] + "." + state.partition(".")[2]
        case "without state":
            del given["requestState"]
        case "no text":
            given["requestState"] = 5
        case "arguments":
            arguments = {"args": {"more": 1}}
    sent = client.sent
    refused = await client.start(with_=given, **arguments)
    assert refused["error"]["code"] == -32602
    await settle()
    assert (waiting.done(), client.sent) == (False, sent)


async def test_a_request_state_of_another_session_is_rejected() -> None:
    async with an_asgi_endpoint() as (installation, endpoint):
        callers = [
            AsgiCaller(installation, endpoint, is_modern=True, capabilities={"elicitation": BOTH}, session_name=name)
            for name in ("theirs", "mine")
        ]
        for caller in callers:
            await caller.open()
        theirs, mine = map(of_http, callers)
        _, waiting, result = await mine.asked()
        refused = await theirs.start(with_=again(result, ACCEPT))
        assert refused["error"]["code"] == -32602
        assert (await theirs.value("get_elicitations"))["requests"] == []
        await settle()
        assert (waiting.done(), mine.sent) == (False, 1)


# Who is not asked in this way.


@TRANSPORTS
@pytest.mark.parametrize(
    ("capabilities", "question"),
    [({}, {}), ({"elicitation": {}}, LINK), ({"elicitation": {"url": {}}}, {}), ({"elicitation": []}, {})],
)
async def test_a_question_type_that_the_caller_does_not_support_makes_the_call_a_task(
    over: Any, capabilities: JsonObject, question: JsonObject
) -> None:
    async with over(**capabilities) as client:
        _, _, result = await client.asked(**question)
        assert result["resultType"] == "complete"
        assert "proxy_task" in result["structuredContent"]


async def test_an_operator_can_disable_native_questions(client: ModernClient) -> None:
    client.session.notice_options = NoticeOptions(asks_natively=False)
    _, _, result = await client.asked()
    assert "proxy_task" in result["structuredContent"]


async def test_a_caller_that_delegates_its_questions_is_not_asked(client: ModernClient) -> None:
    call = client.start(on_question="wait")
    at_server = await client.backend.next_asked()
    elicit(client.backend, origin=at_server.origin)
    await settle()
    await client.clock.advance(51)
    assert "proxy_task" in (await call)["result"]["structuredContent"]


async def test_sampling_requests_reach_callers_only_through_tools(client: ModernClient) -> None:
    call = client.start()
    at_server = await client.backend.next_asked()
    sample(client.backend, origin=at_server.origin)
    assert "proxy_task" in (await call)["result"]["structuredContent"]


async def test_answers_to_a_tool_that_asks_nothing_are_ignored(client: ModernClient) -> None:
    listed = await client.start("list_timers", with_={"requestState": "x", "inputResponses": {}})
    assert listed["result"]["structuredContent"]["timers"] == []


# Resources and prompts ask in the same way.


@pytest.mark.parametrize(
    ("tool", "method", "arguments", "result"),
    [
        ("read_resource", "resources/read", {"uri": "x://y"}, {"contents": [{"uri": "x://y", "text": "T"}]}),
        ("get_prompt", "prompts/get", {"name": "p"}, {"messages": []}),
    ],
)
async def test_resource_reads_and_prompt_requests_ask_in_the_same_way(
    client: ModernClient, tool: str, method: str, arguments: JsonObject, result: JsonObject
) -> None:
    call = client.start(tool, server=client.server, **arguments)
    at_server = await client.backend.next_asked(method)
    waiting = elicit(client.backend, origin=at_server.origin)
    asking = (await call)["result"]
    call = client.start(tool, server=client.server, **arguments, with_=again(asking, ACCEPT))
    assert await waiting == ACCEPT
    at_server.reply(**result)
    final = (await call)["result"]["structuredContent"]
    assert {key: final[key] for key in result} == result
    assert sum(seen == method for seen, _ in client.backend.seen) == 1


async def test_answers_are_passed_on_and_never_shown_again(
    client: ModernClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    at_server, waiting, result = await client.asked()
    said: list[Any] = []
    for name in (["s3cret-that-does-not-fit"], "s3cret-answer"):
        call = client.start(with_=again(result, {"action": "accept", "content": {"name": name}}))
        await settle()
        said += [call.result()] if call.done() else []
    assert (await waiting)["content"] == {"name": "s3cret-answer"}
    at_server.reply(**DONE)
    said.append(await call)
    tools = ("list_tasks", "get_elicitations", "get_logs", "get_notifications")
    said += [await client.call(tool) for tool in tools]
    said += [detail(span, client.session) for span in client.session.journal.since(0)]
    logged = "\n".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    assert "s3cret" not in json.dumps(said, default=str) + logged


# Lost and cancelled.


async def test_a_call_whose_second_round_is_cut_off_continues_as_its_task() -> None:
    async with an_asgi_caller(is_modern=True, elicitation=BOTH) as caller:
        client = of_http(caller)
        at_server, waiting, result = await client.asked()
        arguments = {"server": "one", "tool": "slow"}
        line = caller.post("tools/call", {"name": "execute_tool", "arguments": arguments} | again(result, ACCEPT))
        assert await waiting == ACCEPT
        await settle()
        await caller.clock.advance(0.6)  # from then on it is noticed
        line.hang_up()
        await settle()
        assert caller.session.open_calls == 0  # nobody waits for nobody
        await line.served()
        at_server.reply(**DONE)
        [task] = (await client.value("list_tasks", include_completed=True))["tasks"]
        done = await client.call("get_task_result", task_id=task["taskId"])
        assert done["content"][0] == DONE["content"][0]


async def test_canceling_the_second_round_cancels_the_call() -> None:
    async with a_stdio_client() as client:
        await client.open("2026-07-28", elicitation=BOTH)
        await client.call("execute_tool", 1, server="demo", tool="slow")
        at_server = await client.backend.next_asked()
        waiting = elicit(client.backend, origin=at_server.origin)
        result = (await client.next())["result"]
        call = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "slow"}}
        await client.ask("tools/call", 2, **call, **again(result, ACCEPT))
        await waiting
        await client.tell("notifications/cancelled", requestId=2)
        await settle()
        [task] = client.scene.session.tasks.all()
        assert (str(task.status), client.backend.cancelled) == ("cancelled", [at_server])


# Nobody is there: headless agents declare elicitation and dismiss every question at once.


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("seconds", [0.0, 0.052, 0.9])
async def test_a_dismissal_faster_than_a_person_reads_leaves_the_question_to_the_tools(
    client: ModernClient, action: str, seconds: float
) -> None:
    at_server, waiting, result = await client.asked()
    [question_id] = result["inputRequests"]
    await client.clock.advance(seconds)
    reply = (await client.start(with_=again(result, {"action": action})))["result"]
    words = f"The client dismissed this after {seconds * 1000:.0f} ms, before anyone can have read it"
    assert words in reply["content"][0]["text"]
    assert words in reply["structuredContent"]["next"]
    [open_one] = (await client.value("get_elicitations"))["requests"]
    assert (open_one["requestId"], waiting.done()) == (question_id, False)
    await client.call("respond_to_elicitation", request_id=question_id, action="accept", content=JO)
    assert await waiting == ACCEPT
    at_server.reply(**DONE)
    done = await client.call("get_task_result", task_id=task_id(reply))
    assert (done["content"][0], client.sent) == (DONE["content"][0], 1)


async def test_a_client_without_a_person_is_not_asked_again_and_receives_the_reason_once(client: ModernClient) -> None:
    _, _, result = await client.asked()
    [question_id] = result["inputRequests"]
    await client.start(with_=again(result, {"action": "cancel"}))
    await client.call("respond_to_elicitation", request_id=question_id, action="accept", content=JO)
    _, waiting, second = await client.asked()
    assert "proxy_task" in second["structuredContent"]
    assert "The client dismissed" not in second["content"][0]["text"]
    assert not waiting.done()


async def test_a_person_who_declines_two_questions_at_human_speed_is_respected_twice(client: ModernClient) -> None:
    for _ in range(2):
        at_server, waiting, result = await client.asked()
        await client.clock.advance(1.2)
        call = client.start(with_=again(result, {"action": "decline"}))
        assert await waiting == {"action": "decline"}
        at_server.reply(**DONE)
        assert (await call)["result"]["content"][0] == DONE["content"][0]


async def test_a_person_who_has_accepted_a_question_may_dismiss_the_next_at_once(client: ModernClient) -> None:
    at_server, waiting, result = await client.asked()
    call = client.start(with_=again(result, ACCEPT))
    await waiting
    at_server.reply(**DONE)
    await call
    _, waiting, result = await client.asked()
    client.start(with_=again(result, {"action": "decline"}))
    assert await waiting == {"action": "decline"}


async def test_an_operator_can_make_every_dismissal_count(client: ModernClient) -> None:
    """This is for clients whose program decides instead of a person."""
    client.session.notice_options = NoticeOptions(trusts_dismissals=True)
    for _ in range(2):
        at_server, waiting, result = await client.asked()
        call = client.start(with_=again(result, {"action": "decline"}))
        assert await waiting == {"action": "decline"}
        at_server.reply(**DONE)
        await call


async def test_dismissals_of_one_client_do_not_affect_another_client_in_the_same_session() -> None:
    """The window of a person and a headless run of the same version differ in their user agents."""
    async with an_asgi_caller(is_modern=True, elicitation=BOTH) as caller:
        client = of_http(caller)
        _, _, result = await client.asked()
        await client.start(with_=again(result, {"action": "cancel"}))
        call = {"name": "execute_tool", "arguments": {"server": "one", "tool": "slow"}}
        asked = caller.post("tools/call", call, **{"user-agent": "agent/1 (cli)"})
        elicit(caller.backend, origin=(await caller.backend.next_asked()).origin)
        assert (await asked.served()).message["result"]["resultType"] == "input_required"

"""Slow calls, questions and subscriptions through a real emceepee process, with real servers behind it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from support.callers.emceepee_process import BOUND, EmceepeeProcess, emceepee
from support.server_programs.asking_servers import asking_as_before, everything, modern
from support.server_programs.real_servers import fastmcp_of_both_eras
from support.sessions.asking import events_in, notices, task_id

EVENTS = "emceepee://events"
ERAS = ["2025-11-25", "2026-07-28"]


@pytest.fixture(scope="module", params=["stdio", "streamableHttp"])
def everything_server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with everything(request.param) as server:
        yield server


@pytest.fixture(scope="module", params=["stdio", "http"])
def modern_server(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with modern(request.param) as server:
        yield server


@pytest.fixture
async def proxy() -> AsyncIterator[EmceepeeProcess]:
    async with emceepee("--log-level", "error") as running:
        yield running


async def connected(proxy: EmceepeeProcess, server: dict[str, Any], era: str = "2025-11-25") -> None:
    await proxy.initialize(era)
    await proxy.value("add_server", name="one", **server)


async def run(proxy: EmceepeeProcess, tool: str, **arguments: Any) -> dict[str, Any]:
    """The whole reply to a call of the server's tool."""
    return await proxy.call("execute_tool", server="one", tool=tool, args=arguments)


async def result_of(proxy: EmceepeeProcess, promotion: dict[str, Any]) -> dict[str, Any]:
    return await proxy.call("get_task_result", task_id=task_id(promotion))


def words(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


# The protocol's own example server.


async def test_a_long_operation_becomes_a_task_with_progress_and_a_result(
    proxy: EmceepeeProcess, everything_server: dict[str, Any]
) -> None:
    await connected(proxy, everything_server)
    promotion = await proxy.call(
        "execute_tool",
        server="one",
        tool="trigger-long-running-operation",
        args={"duration": 2, "steps": 4},
        timeout_ms=100,
    )
    assert "task_created" in [event["type"] for event in events_in(promotion)]
    early = await proxy.call("get_task_result", task_id=task_id(promotion), timeout_ms=1000)
    assert early["structuredContent"]["error"]["code"] == "TOOL_ERR_TIMEOUT"
    progress = (await proxy.value("get_task", task_id=task_id(promotion)))["task"]["progress"]
    assert (progress["total"], 1 <= progress["progress"] <= 4) == (4, True)
    result = await result_of(proxy, promotion)
    assert "Long running operation completed" in words(result)
    assert "task_completed" not in [event["type"] for event in events_in(result)]  # the result itself tells that


async def test_a_form_is_answered_through_the_tools(proxy: EmceepeeProcess, everything_server: dict[str, Any]) -> None:
    await connected(proxy, everything_server)
    promotion = await run(proxy, "trigger-elicitation-request")
    [waiting] = notices(promotion)["pending_client_action"]["elicitations"]
    request_id = waiting["requestId"]
    [question] = (await proxy.value("get_elicitations", server="one"))["requests"]
    assert (question["requestId"], question["mode"], question["requestedSchema"]["required"]) == (
        request_id,
        "form",
        ["name"],
    )
    wrong = await proxy.call(
        "respond_to_elicitation", request_id=request_id, action="accept", content={"name": "Jo", "integer": 1000}
    )
    assert wrong["structuredContent"]["error"]["details"]["problems"] == [
        {"field": "integer", "code": "maximum", "message": "must be at most 100"}
    ]
    content = {"name": "Jo", "birthdate": "2000-02-29", "titledMultipleSelectEnum": ["fish-2"]}
    answered = await proxy.call("respond_to_elicitation", request_id=request_id, action="accept", content=content)
    assert answered["structuredContent"] == {"responded": request_id, "action": "accept"}
    said = words(await result_of(proxy, promotion))
    assert "- Name: Jo" in said
    assert "- Birthdate: 2000-02-29" in said
    assert "- Favorite Integer: 42" in said


async def test_a_url_question_is_answered_through_the_tools(
    proxy: EmceepeeProcess, everything_server: dict[str, Any]
) -> None:
    await connected(proxy, everything_server)
    promotion = await run(proxy, "trigger-url-elicitation", url="https://example.org/login", elicitationId="e1")
    [question] = (await proxy.value("get_elicitations"))["requests"]
    assert (question["mode"], question["url"], question["elicitationId"]) == ("url", "https://example.org/login", "e1")
    await proxy.value("respond_to_elicitation", request_id=question["requestId"], action="decline")
    assert "User declined to open the URL" in words(await result_of(proxy, promotion))


async def test_a_url_that_a_call_needs_is_named_and_becomes_a_question(
    proxy: EmceepeeProcess, everything_server: dict[str, Any]
) -> None:
    await connected(proxy, everything_server)
    refused = await run(proxy, "trigger-url-elicitation", url="https://example.org", elicitationId="e1", errorPath=True)
    [question] = (await proxy.value("get_elicitations"))["requests"]
    assert question["mode"] == "url"
    assert question["url"].startswith("https://")
    assert question["url"] in refused["structuredContent"]["error"]["message"]


async def test_a_sampling_request_is_answered_through_the_tools(
    proxy: EmceepeeProcess, everything_server: dict[str, Any]
) -> None:
    await connected(proxy, everything_server)
    promotion = await run(proxy, "trigger-sampling-request", prompt="A word?", maxTokens=5)
    [wish] = (await proxy.value("get_sampling_requests"))["requests"]
    assert "A word?" in json.dumps(wish["messages"])
    await proxy.value(
        "respond_to_sampling", request_id=wish["requestId"], role="assistant", content="Fjord", model="test-model"
    )
    said = words(await result_of(proxy, promotion))
    assert "Fjord" in said
    assert "test-model" in said


async def test_a_waiting_caller_gets_its_result_after_another_request_answers_the_question(
    proxy: EmceepeeProcess, everything_server: dict[str, Any]
) -> None:
    await connected(proxy, everything_server)
    arguments = {"server": "one", "tool": "trigger-elicitation-request", "on_question": "wait"}
    call = asyncio.create_task(proxy.call("execute_tool", **arguments))
    async with asyncio.timeout(BOUND):
        while not (waiting := (await proxy.value("await_activity"))["pending_client"]["elicitations"]):
            pass  # something else happened
    await proxy.value("respond_to_elicitation", request_id=waiting[0]["requestId"], action="decline")
    assert "User declined" in words(await call)


# A server of the 2026-07-28 era.


async def asked(proxy: EmceepeeProcess) -> list[dict[str, Any]]:
    return list((await proxy.value("get_elicitations"))["requests"])


async def answer(proxy: EmceepeeProcess, message: str, **content: str) -> None:
    """Answer the question with that message as soon as it is asked."""
    async with asyncio.timeout(BOUND):
        while not (found := [item for item in await asked(proxy) if item["message"] == message]):
            await proxy.value("await_activity")
    request_id = found[0]["requestId"]
    await proxy.value("respond_to_elicitation", request_id=request_id, action="accept", content=content)


@pytest.mark.parametrize("era", ERAS)
async def test_a_tool_of_2026_07_28_asks_once_and_continues_with_the_answer(
    proxy: EmceepeeProcess, modern_server: dict[str, Any], era: str
) -> None:
    await connected(proxy, modern_server, era)
    [server] = (await proxy.value("list_servers"))["servers"]
    assert server["protocolVersion"] == "2026-07-28"
    promotion = await run(proxy, "ask_once", n=1)
    await answer(proxy, "Who are you?", name="Jo")
    assert json.loads((await result_of(proxy, promotion))["content"][0]["text"]) == {
        "answers": {"who": {"name": "Jo"}},
        "state": "once",
        "arguments": {"n": 1},
    }


async def test_a_tool_of_2026_07_28_asks_in_two_rounds(proxy: EmceepeeProcess, modern_server: dict[str, Any]) -> None:
    await connected(proxy, modern_server)
    promotion = await run(proxy, "ask_twice")
    await answer(proxy, "Which city?", city="Oslo")
    await answer(proxy, "Which street?", street="Storgata")
    assert json.loads((await result_of(proxy, promotion))["content"][0]["text"]) == {
        "city": {"city": "Oslo"},
        "street": {"street": "Storgata"},
    }


async def test_a_tool_of_2026_07_28_asks_three_questions_at_once(
    proxy: EmceepeeProcess, modern_server: dict[str, Any]
) -> None:
    await connected(proxy, modern_server)
    promotion = await run(proxy, "ask_three")
    pending = notices(await proxy.call("list_timers"))["pending_client_action"]
    assert (len(pending["elicitations"]), len(pending["sampling_requests"])) == (2, 1)
    await answer(proxy, "Where to?", place="Bergen")
    request_id = pending["sampling_requests"][0]["requestId"]
    await proxy.value("respond_to_sampling", request_id=request_id, role="assistant", content="Rain.", model="m")
    await answer(proxy, "From where?", place="Oslo")
    assert json.loads((await result_of(proxy, promotion))["content"][0]["text"]) == {
        "from": {"place": "Oslo"},
        "poem": "Rain.",
        "to": {"place": "Bergen"},
    }


async def test_a_tool_of_2026_07_28_that_only_requests_a_retry_answers_directly(
    proxy: EmceepeeProcess, modern_server: dict[str, Any]
) -> None:
    await connected(proxy, modern_server)
    assert json.loads((await run(proxy, "try_again"))["content"][0]["text"]) == {"tried": 3}


# emceepee's own resources.


@pytest.mark.parametrize("era", ERAS)
async def test_the_diagrams_are_available_as_a_protocol_resource(proxy: EmceepeeProcess, era: str) -> None:
    await proxy.initialize(era)
    listed = (await proxy.request("resources/list", {}))["result"]["resources"]
    assert [entry["uri"] for entry in listed] == ["emceepee://diagrams", EVENTS, "emceepee://metrics"]
    read = (await proxy.request("resources/read", {"uri": "emceepee://diagrams"}))["result"]["contents"][0]
    assert read["mimeType"] == "application/json"
    assert "proxy_task_states" in [item["name"] for item in json.loads(read["text"])["diagrams"]]
    refused = await proxy.request("resources/read", {"uri": "emceepee://nothing"})
    assert "emceepee://diagrams" in refused["error"]["message"]


async def test_a_subscriber_of_the_handshake_era_is_notified_of_events(proxy: EmceepeeProcess) -> None:
    await proxy.initialize()
    assert (await proxy.request("resources/subscribe", {"uri": EVENTS}))["result"] == {}
    await proxy.value("set_timer", duration_ms=1, message="tea")
    news = await proxy.next_heard()
    assert (news["method"], news["params"]) == ("notifications/resources/updated", {"uri": EVENTS})
    assert [event["type"] for event in events_in(await proxy.call("list_timers"))] == ["timer_expired"]
    assert (await proxy.request("resources/unsubscribe", {"uri": EVENTS}))["result"] == {}
    await proxy.value("set_timer", duration_ms=1, message="more")
    assert (await proxy.value("await_activity"))["events"][0]["events"][0]["data"]["message"] == "more"
    assert len(proxy.heard) == 1
    refused = await proxy.request("resources/subscribe", {"uri": "file:///x"})
    assert EVENTS in refused["error"]["message"]


async def test_a_subscriber_of_the_2026_07_28_era_is_notified_of_events(proxy: EmceepeeProcess) -> None:
    await proxy.initialize("2026-07-28")
    wanted = {"notifications": {"resourceSubscriptions": [EVENTS]}}
    listening = asyncio.create_task(proxy.request("subscriptions/listen", wanted, key="listen"))
    acknowledged = await proxy.next_heard()
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"]["resourceSubscriptions"] == [EVENTS]
    await proxy.value("set_timer", duration_ms=1, message="tea")
    news = await proxy.next_heard()
    assert (news["method"], news["params"]["uri"]) == ("notifications/resources/updated", EVENTS)
    assert news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen"
    assert [event["type"] for event in events_in(await proxy.call("list_timers"))] == ["timer_expired"]
    proxy.send_line(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"listen"}}')
    await proxy.value("set_timer", duration_ms=1, message="more")
    assert (await proxy.value("await_activity"))["events"][0]["events"][0]["data"]["message"] == "more"
    assert len(proxy.heard) == 2
    listening.cancel()


# A server of both eras that can ask in one of them.


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_that_can_ask_only_in_the_handshake_era_is_connected_in_that_era(
    proxy: EmceepeeProcess, transport: str
) -> None:
    async def version() -> str:
        return str((await proxy.value("list_servers"))["servers"][0]["protocolVersion"])

    with asking_as_before(transport) as server:
        await connected(proxy, server)
        assert await version() == "2026-07-28"
        error = (await run(proxy, "ask"))["structuredContent"]["error"]
        assert "call again. Any effects of the interrupted call remain" in error["message"]
        assert "no back-channel" in error["details"]["error"]["message"]
        promotion = await run(proxy, "ask")
        (question,) = (await proxy.value("get_elicitations"))["requests"]
        answer = {"request_id": question["requestId"], "action": "accept", "content": {"name": "Ann"}}
        await proxy.value("respond_to_elicitation", **answer)
        assert words(await result_of(proxy, promotion)).startswith("accept")
        assert await version() == "2025-11-25"


async def test_a_server_that_needs_both_eras_is_called_in_the_era_of_each_tool(proxy: EmceepeeProcess) -> None:
    with fastmcp_of_both_eras() as port:
        await connected(proxy, {"url": f"http://127.0.0.1:{port}/mcp"})
        refused = (await run(proxy, "ask"))["structuredContent"]["error"]
        assert "call again. Any effects of the interrupted call remain" in refused["message"]
        for _ in range(2):
            assert words(await run(proxy, "dig", name="gold")) == "dug gold"
            promotion = await run(proxy, "ask")
            (question,) = (await proxy.value("get_elicitations"))["requests"]
            answer = {"request_id": question["requestId"], "action": "accept", "content": {"value": "Ann"}}
            await proxy.value("respond_to_elicitation", **answer)
            assert words(await result_of(proxy, promotion)) == "accept Ann"
        assert (await proxy.value("list_servers"))["servers"][0]["protocolVersion"] == "2026-07-28"

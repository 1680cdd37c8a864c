"""The Python SDK client with an elicitation callback uses a real emceepee and calls no tool to answer."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import aiohttp
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from support.callers.http_process import http_process
from support.system.authorization_server import an_authorization_server

BOUND = 30.0
ANSWER = {"guests": 4, "time": "19:30", "window": True}
ENVIRONMENT = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
DEMO = {"name": "demo", "command": sys.executable, "args": ["-m", "emceepee.demo"], "env": ENVIRONMENT}
EVERYWHERE = pytest.mark.parametrize(
    ("transport", "mode"),
    [(transport, mode) for transport in ("stdio", "http") for mode in ("legacy", "2026-07-28")],
)
Elicited = types.ElicitRequestFormParams | types.ElicitRequestURLParams
Person = Callable[[Elicited], Awaitable[types.ElicitResult]]


@asynccontextmanager
async def a_client(transport: str, mode: str, person: Person | None, *options: str) -> AsyncIterator[Client]:
    """Every question goes to the `person`."""

    async def elicit(context: Any, params: Elicited) -> types.ElicitResult:
        assert person is not None
        return await person(params)

    callback = None if person is None else elicit
    options = ("--log-level", "warn", *options)
    if transport == "stdio":
        place = StdioServerParameters(command=sys.executable, args=["-m", "emceepee", *options], env=ENVIRONMENT)
        async with Client(stdio_client(place), mode=mode, elicitation_callback=callback) as client:
            yield client
        return
    async with (
        http_process(*options) as endpoint,
        Client(endpoint.url, mode=mode, elicitation_callback=callback) as client,
    ):
        yield client


async def call(client: Client, tool: str, /, **arguments: Any) -> types.CallToolResult:
    async with asyncio.timeout(BOUND):
        result = await client.call_tool(tool, arguments)
    assert isinstance(result, types.CallToolResult)
    return result


def first_text(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


@EVERYWHERE
async def test_a_form_is_answered_natively_by_the_python_sdk(transport: str, mode: str) -> None:
    asked: list[Elicited] = []

    async def person(params: Elicited) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content=dict(ANSWER))

    async with a_client(transport, mode, person) as client:
        await call(client, "add_server", **DEMO)
        booked = await call(client, "execute_tool", server="demo", tool="book_table")
        assert "19:30" in first_text(booked)
        [question] = asked
        assert question.message == "[demo] A table at Chez Demo: how many guests, and when?"
        assert isinstance(question, types.ElicitRequestFormParams)
        assert "guests" in question.requested_schema["properties"]
        waiting = await call(client, "get_elicitations")
        assert waiting.structured_content is not None
        assert waiting.structured_content["requests"] == []


@EVERYWHERE
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_agent_without_a_person_answers_with_tools_after_its_client_dismissed_the_question(
    transport: str, mode: str, action: Literal["decline", "cancel"]
) -> None:
    """Codex declines after a millisecond. Claude Code cancels after 10 to 50 ms, as this client does."""
    asked: list[Elicited] = []

    async def nobody(params: Elicited) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action=action)

    async with a_client(transport, mode, nobody) as client:
        await call(client, "add_server", **DEMO)
        for _ in range(2):
            asking = await call(client, "execute_tool", server="demo", tool="book_table")
            assert asking.structured_content is not None
            [question] = asking.structured_content["pending_on_server"]["elicitations_for_server"]
            key, task_id = question["requestId"], asking.structured_content["proxy_task"]["task_id"]
            await call(client, "respond_to_elicitation", request_id=key, action="accept", content=ANSWER)
            assert "19:30" in first_text(await call(client, "get_task_result", task_id=task_id))
        assert len(asked) == 1


@EVERYWHERE
async def test_an_automatic_decline_reaches_the_server_if_the_operator_trusts_it(transport: str, mode: str) -> None:
    async def program(params: Elicited) -> types.ElicitResult:
        return types.ElicitResult(action="decline")

    async with a_client(transport, mode, program, "--native-elicitation", "always") as client:
        await call(client, "add_server", **DEMO)
        result = await call(client, "execute_tool", server="demo", tool="book_table")
        assert "proxy_task" not in (result.structured_content or {})
        assert "no table" in first_text(result).lower()


@EVERYWHERE
@pytest.mark.parametrize("is_able", [True, False])
async def test_a_client_without_native_questions_answers_with_tools(transport: str, mode: str, is_able: bool) -> None:
    async def person(params: Elicited) -> types.ElicitResult:
        raise AssertionError("nobody was to be asked")

    options = ("--native-elicitation", "never") if is_able else ()
    async with a_client(transport, mode, person if is_able else None, *options) as client:
        await call(client, "add_server", **DEMO)
        asking = await call(client, "execute_tool", server="demo", tool="book_table")
        assert asking.structured_content is not None
        [question] = asking.structured_content["pending_on_server"]["elicitations_for_server"]
        await call(client, "respond_to_elicitation", request_id=question["requestId"], action="accept", content=ANSWER)
        booked = await call(client, "get_task_result", task_id=asking.structured_content["proxy_task"]["task_id"])
        assert "19:30" in first_text(booked)


async def status(client: Client) -> str:
    """Of the only server."""
    listed = (await call(client, "list_servers")).structured_content
    assert listed is not None
    return str(listed["servers"][0]["status"])


@EVERYWHERE
async def test_a_login_question_reaches_the_person_and_the_call_continues_afterwards(transport: str, mode: str) -> None:
    asked: list[Elicited] = []

    async def person(params: Elicited) -> types.ElicitResult:
        asked.append(params)
        assert isinstance(params, types.ElicitRequestURLParams)
        if len(asked) == 1 and mode == "legacy":
            return types.ElicitResult(action="decline")  # when the server is added; it is asked again when it is used
        async with aiohttp.ClientSession() as browser, browser.get(params.url) as page:
            assert page.status == 200
        return types.ElicitResult(action="accept")

    options = ("--native-elicitation", "always")  # the test decides faster than a person
    async with an_authorization_server() as server, a_client(transport, mode, person, *options) as client:
        added = await call(client, "add_server", name="tracker", url=server.resource)
        assert added.structured_content is not None
        assert added.structured_content["server"]["status"] == "authorizing"
        if mode == "legacy":
            async with asyncio.timeout(BOUND):
                while await status(client) == "authorizing":  # until the answer has arrived there
                    pass
            assert len(asked) == 1
            await call(client, "reconnect_server", name="tracker")
        echoed = await call(client, "execute_tool", server="tracker", tool="echo", args={})
        assert first_text(echoed) == "echo"
        assert len(server.calls) == 1
        assert all("[tracker] tracker asks you to log in at 127.0.0.1:" in question.message for question in asked)

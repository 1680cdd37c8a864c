from dataclasses import replace
from typing import Any

import pytest

from emceepee.server.dispatch import BadCall, Tools
from emceepee.sessions.session import Session
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.another_session import another_session
from support.sessions.catalogue import CATALOGUE
from support.sessions.request_contexts import call_tool
from support.sessions.scene import a_scene


@pytest.mark.parametrize(
    ("params", "word"),
    [
        (None, "params.name must be a string"),
        ({}, "params.name must be a string"),
        ({"name": 5}, "params.name must be a string"),
        ({"name": None}, "params.name must be a string"),
        ({"name": "list_tool"}, "did you mean list_tools"),
        ({"name": "zzzzzz"}, "tools/list shows them; backends' tools: execute_tool"),
        ({"name": "list_servers", "arguments": []}, "params.arguments must be an object"),
        ({"name": "list_servers", "arguments": "x"}, "params.arguments must be an object"),
    ],
)
async def test_a_call_without_a_tool_name_is_a_protocol_error(params: JsonObject | None, word: str) -> None:
    async with a_scene() as scene:
        with pytest.raises(BadCall) as caught:
            await call_tool(params, scene.session)
    assert word in str(caught.value)
    assert caught.value.code == -32602


async def test_a_long_tool_name_is_truncated_in_the_error() -> None:
    async with a_scene() as scene:
        with pytest.raises(BadCall) as caught:
            await call_tool({"name": "x" * 10_000}, scene.session)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": {}}])
async def test_tool_arguments_are_optional(arguments: JsonObject) -> None:
    async with a_scene() as scene:
        result = await call_tool({"name": "list_servers", **arguments}, scene.session)
    assert result["structuredContent"] == {"servers": []}


async def test_invalid_tool_arguments_are_a_tool_error() -> None:
    async with a_scene() as scene:
        result = await call_tool({"name": "remove_server"}, scene.session)
    assert result["isError"] is True
    assert result["structuredContent"]["error"]["code"] == "ERR_INVALID_ARGUMENTS"
    assert result["content"] == [
        {"type": "text", "text": "remove_server cannot be called like this: name: is missing."}
    ]


async def test_an_internal_error_in_a_tool_returns_a_reply_without_details(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(params: Any, session: Session, caller: RequestContext) -> JsonObject:
        raise ZeroDivisionError("a secret detail")

    tools = Tools([replace(CATALOGUE["list_servers"], run=broken)])
    async with a_scene() as scene:
        result = await tools.call({"name": "list_servers"}, RequestContext(session=scene.session))
    error = result["structuredContent"]["error"]
    assert error["message"] == "list_servers failed inside emceepee; its log says more."
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == ["tool_failed"]


async def test_the_first_call_wakes_the_session() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene, another_session(scene) as session:
        await settle()
        assert str(session.connection("demo").state.status) == "not_connected"
        await call_tool({"name": "list_servers"}, session)
        await settle()
        assert session.connection("demo").is_connected


async def test_a_reconnect_works_as_the_very_first_call() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene, another_session(scene) as session:
        result = await call_tool({"name": "reconnect_server", "arguments": {"name": "demo"}}, session)
        assert result["structuredContent"]["server"]["status"] == "connected"


async def test_an_argument_under_an_alias_reaches_the_server_and_the_journal() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", name="demo", tool="echo", arguments='{"text": "hello"}')
        asked = await scene.backends["demo"].next_asked()
        assert asked.params == {"name": "echo", "arguments": {"text": "hello"}}
        asked.reply(content=[])
        await call
        [span] = [span for span in scene.session.journal.since(0) if span.name == "echo"]
        assert (span.server, span.arguments) == ("demo", {"text": "hello"})


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("respond_to_elicitation", {"requestId": "r", "action": "accept", "content": '{"pin": "s3cret"}'}),
        ("respond_to_elicitation", {"requestId": "r", "action": "accept", "Content": {"pin": "s3cret"}}),
        ("respond_to_sampling", {"requestId": "r", "role": "assistant", "content": "s3cret", "model": "m"}),
        ("execute_tool", {"server": "emcepee", "tool": "respond_to_elicitation", "args": {"content": "s3cret"}}),
        ("execute_tool", {"name": "emceepee", "tool": "respond_to_elicitation", "arguments": {"Content": "s3cret"}}),
        ("codemode_execute", {"Code": "mcp.tool('respond_to_elicitation', 's3cret')"}),
        ("codemode_execute", {"code": ["s3cret"]}),
        ("add_server", {"server": "x", "command": "y", "arguments": ["s3cret"]}),
        ("add_server", {"name": "x", "url": "http://h", "header": {"X": "s3cret"}, "headers": "s3cret"}),
    ],
)
async def test_private_arguments_stay_masked_under_any_alias(tool: str, arguments: JsonObject) -> None:
    async with a_scene() as scene:
        result = await scene.call(tool, **arguments)
        [span] = scene.session.journal.since(0)
    assert "s3cret" not in repr((span.arguments, span.result, result))

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.state.limits import Limits
from emceepee.state.tool_filter import ToolFilter
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.request_contexts import asking_for_progress
from support.sessions.scene import a_scene, scripted_spec


def backend_with(*tools: JsonObject) -> ScriptedBackend:
    backend = ScriptedBackend()
    backend.answers["tools/list"] = lambda _: {"tools": list(tools)}
    return backend


async def names(scene: Any, **arguments: Any) -> list[str]:
    listed = await scene.value("list_tools", detail="names", **arguments)
    return [f"{tool['server']}.{tool['name']}" for tool in listed["tools"]]


async def test_tools_are_listed_unchanged_with_the_name_of_their_backend() -> None:
    odd: JsonObject = {"name": "x", "inputSchema": {"$ref": "#/a"}, "annotations": None, "_meta": {"k": [1]}, "zz": 1}
    async with a_scene(demo=backend_with(odd)) as scene:
        assert await scene.value("list_tools") == {"tools": [{"server": "demo", **odd}]}


async def test_tools_are_found_by_unanchored_patterns_on_server_and_tool() -> None:
    github, files = ScriptedBackend(tools=["read_page", "write_page"]), ScriptedBackend(tools=["read", "list"])
    async with a_scene(github=github, files=files) as scene:
        assert await names(scene, tool="read") == ["github.read_page", "files.read"]
        assert await names(scene, server="^git") == ["github.read_page", "github.write_page"]
        assert await names(scene, server="files", tool="^list$") == ["files.list"]
        assert await names(scene, server="nothing") == []


async def test_schemas_over_the_size_limit_become_summaries_unless_requested() -> None:
    large: list[JsonObject] = [
        {"name": name, "description": name * 9, "inputSchema": {"x": "y" * 20_000}} for name in ("a", "b")
    ]
    async with a_scene(demo=backend_with(*large)) as scene:
        listed = await scene.value("list_tools")
        assert [tool["summary"] for tool in listed["tools"]] == ["a" * 9, "b" * 9]
        assert ('tool="^name$"' in listed["note"], "40" in listed["note"]) == (True, True)
        whole = [{"server": "demo", **tool} for tool in large]
        assert await scene.value("list_tools", tool="^a$") == {"tools": whole[:1]}
        assert await scene.value("list_tools", detail="full") == {"tools": whole}
        first = await scene.value("list_tools", limit=1)
        assert first["tools"] == whole[:1]
        assert (await scene.value("list_tools", limit=1, cursor=first["nextCursor"]))["tools"] == whole[1:]
    async with a_scene(demo=backend_with({**large[0], "inputSchema": {"x": "y" * 99_000}})) as scene:
        assert "summary" not in (await scene.value("list_tools"))["tools"][0]


async def test_a_summary_has_one_short_line_per_tool() -> None:
    tools: list[JsonObject] = [
        {"name": "a", "description": "Does\n  a   thing.", "inputSchema": {}},
        {"name": "b", "title": "Bee"},
        {"name": "c", "description": "x" * 500},
        {"name": "d", "description": None},
    ]
    async with a_scene(demo=backend_with(*tools)) as scene:
        listed = (await scene.value("list_tools", detail="summary"))["tools"]
    assert [tool["summary"] for tool in listed] == ["Does a thing.", "Bee", "x" * 119 + "…", ""]
    assert [set(tool) for tool in listed] == [{"server", "name", "summary"}] * 4


async def test_a_long_tool_list_is_split_into_pages() -> None:
    async with a_scene(demo=ScriptedBackend(tools=list("abcde"))) as scene:
        first = await scene.value("list_tools", detail="names", limit=2)
        assert [tool["name"] for tool in first["tools"]] == ["a", "b"]
        rest = await scene.value("list_tools", detail="names", cursor=first["nextCursor"])
        assert [tool["name"] for tool in rest["tools"]] == ["c", "d", "e"]
        assert "nextCursor" not in rest


async def test_an_invalid_pattern_is_rejected_with_its_position() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        error = await scene.error("list_tools", tool="a(b")
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert error["details"] == {"argument": "tool", "position": 1}
        assert (await scene.error("list_tools", server="["))["details"] == {"argument": "server", "position": 0}


async def test_a_pattern_with_exponential_backtracking_returns_at_once() -> None:
    async with a_scene(demo=ScriptedBackend(tools=["a" * 50_000 + "!"])) as scene, asyncio.timeout(2):
        assert await names(scene, tool="(a+)+$") == []


async def test_one_failing_server_never_hides_the_others() -> None:
    bad = ScriptedBackend()
    bad.refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
    mute = ScriptedBackend()
    del mute.answers["tools/list"]
    limits = Limits(list_patience_seconds=0.05)
    async with a_scene(bad=bad, mute=mute, good=ScriptedBackend(tools=["x"]), limits=limits) as scene:
        listed = await scene.value("list_tools", detail="names")
        assert listed["tools"] == [{"server": "good", "name": "x"}]
        assert [error["server"] for error in listed["errors"]] == ["bad", "mute"]


LOSSLESS: list[JsonObject] = [
    {"content": []},
    {"content": [{"type": "hologram", "depth": None, "nested": {"a": [None, {}]}}, {"type": "text", "text": "x"}]},
    {"content": [{"type": "text", "text": "no"}], "isError": True, "_meta": {"k": None}, "unknown": [1, {"a": None}]},
    {"content": [], "structuredContent": None, "isError": None},
    {"structuredContent": {"n": 12345678901234567890123, "f": 1.5}, "content": [{"type": "image", "data": "AA=="}]},
    {},
    {"toolResult": "of an older version"},
]


@pytest.mark.parametrize("result", LOSSLESS)
async def test_the_result_of_a_backend_is_returned_unchanged(result: JsonObject) -> None:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: result
    async with a_scene(demo=backend) as scene:
        assert await scene.quiet().call("execute_tool", server="demo", tool="echo") == result


async def test_arguments_reach_the_backend_unchanged() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: {"content": []}
    args = {"a": None, "b": {"c": [1, 2.5, "x"]}, "server": "y"}
    async with a_scene(demo=backend) as scene:
        await scene.call("execute_tool", server="demo", tool="echo", args=args)
        await scene.call("execute_tool", server="demo", tool="echo")
    calls = [params for method, params in backend.seen if method == "tools/call"]
    assert calls == [{"name": "echo", "arguments": args}, {"name": "echo", "arguments": {}}]


async def test_the_error_for_an_unknown_server_suggests_a_similar_name() -> None:
    async with a_scene(github=ScriptedBackend()) as scene:
        error = await scene.error("execute_tool", server="gihub", tool="x")
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
        assert error["details"]["near"] == ["github"]


@pytest.mark.parametrize("by", ["error", "result"])
async def test_the_error_for_an_unknown_tool_suggests_a_similar_name_and_quotes_the_server(by: str) -> None:
    answers: dict[str, JsonObject] = {
        "error": {"code": -32602, "message": "Unknown tool", "data": {"tool": "ecko"}},
        "result": {"isError": True, "content": [{"type": "text", "text": "Unknown tool"}], "own": 1},
    }

    def refuse(_: JsonObject) -> JsonObject:
        if by == "error":
            raise RpcError(answers["error"])
        return answers["result"]

    backend = ScriptedBackend(tools=["echo", "add"])
    backend.answers["tools/call"] = refuse
    async with a_scene(demo=backend) as scene:
        error = await scene.error("execute_tool", server="demo", tool="ecko")
        assert error["code"] == "TOOL_ERR_NOT_FOUND"
        assert error["details"] == {"server": "demo", "tool": "ecko", "near": ["echo"], by: answers[by]}
        assert "Unknown tool" in error["message"]


async def test_a_tool_that_the_server_does_not_list_can_be_called() -> None:
    backend = ScriptedBackend(tools=[])
    backend.answers["tools/call"] = lambda _: {"content": []}
    async with a_scene(demo=backend) as scene:
        assert await scene.quiet().call("execute_tool", server="demo", tool="hidden") == {"content": []}


async def test_a_backend_error_for_a_known_tool_is_passed_on() -> None:
    def refuse(_: JsonObject) -> JsonObject:
        raise RpcError({"code": -32602, "message": "bad argument", "data": {"x": 1}})

    backend = ScriptedBackend()
    backend.answers["tools/call"] = refuse
    async with a_scene(demo=backend) as scene:
        error = await scene.error("execute_tool", server="demo", tool="echo")
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert error["details"]["error"] == {"code": -32602, "message": "bad argument", "data": {"x": 1}}


async def test_a_call_to_a_disconnected_server_explains_what_to_do() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        scene.backends["demo"].refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
        scene.backends["demo"].link.break_off("exited with code 1")
        call = scene.start("execute_tool", server="demo", tool="echo")
        async with asyncio.timeout(5):
            result = await call
        assert result["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"


async def test_forbidden_tools_are_neither_listed_nor_called() -> None:
    backend = ScriptedBackend(tools=["read", "write", "read_secret"])
    backend.answers["tools/call"] = lambda _: {"content": []}
    spec = replace(scripted_spec("demo"), tools=ToolFilter(("read*",), ("*secret",)))
    async with a_scene(specs=[spec], demo=backend) as scene:
        assert await names(scene) == ["demo.read"]
        assert await scene.call("execute_tool", server="demo", tool="read") == {"content": []}
        for tool in ("write", "read_secret", "not_even_there"):
            error = await scene.error("execute_tool", server="demo", tool=tool)
            assert error["code"] == "ERR_NOT_ALLOWED"
        assert [params["name"] for method, params in backend.seen if method == "tools/call"] == ["read"]


async def test_a_forbidden_tool_is_never_suggested() -> None:
    def refuse(_: JsonObject) -> JsonObject:
        raise RpcError({"code": -32602, "message": "Unknown tool"})

    backend = ScriptedBackend(tools=["read", "delete_all"])
    backend.answers["tools/call"] = refuse
    spec = replace(scripted_spec("demo"), tools=ToolFilter((), ("delete_all",)))
    async with a_scene(specs=[spec], demo=backend) as scene:
        error = await scene.error("execute_tool", server="demo", tool="delete_al")
        assert "delete_all" not in error["message"]


async def test_progress_is_forwarded_to_a_caller_that_requests_it() -> None:
    heard: list[JsonObject] = []
    async with a_scene(demo=ScriptedBackend()) as scene:
        backend = scene.backends["demo"]
        call = scene.start("execute_tool", caller=asking_for_progress(heard.append), server="demo", tool="slow")
        asked = await backend.next_asked()
        backend.link.listener.handle_notification(
            "notifications/progress", {"progressToken": 1, "progress": 1}, asked.origin
        )
        asked.reply(content=[])
        async with asyncio.timeout(5):
            await call
    assert heard == [{"progress": 1}]

"""Scripts that run to their end: their calls, results, and error messages."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.state.tool_filter import ToolFilter
from emceepee.wire.json_types import JsonObject
from support.backends.catalog_backend import text_result
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.replies import own_part
from support.sessions.scene import Scene, a_scene, scripted_spec
from support.sessions.scripts import failure_of, issue_tracker, result_of, run
from support.waiting import eventually


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with a_scene(tracker=issue_tracker()) as scene:
        yield scene


# What comes back.


async def test_the_last_expression_is_the_result_of_a_script_and_its_printed_text_is_in_the_logs(scene: Scene) -> None:
    value = await run(scene, "print('one')\nmcp.log('two', 2)\n[n * n for n in range(4)]")
    assert value == {
        "success": True,
        "result": [0, 1, 4, 9],
        "logs": ["one", "two 2"],
        "stats": {"durationMs": 0, "mcpCalls": 0},
    }


async def test_a_return_statement_outside_of_a_function_gives_the_result_of_a_script(scene: Scene) -> None:
    assert await result_of(scene, "if True:\n    return 5\nreturn 6") == 5


async def test_values_that_json_does_not_support_are_returned_as_text(scene: Scene) -> None:
    code = "import datetime\n({1}, b'ab', datetime.date(2026, 1, 2), float('inf'), {1: (2, None)})"
    assert await result_of(scene, code) == [[1], "YWI=", "2026-01-02", None, {"1": [2, None]}]


async def test_a_call_in_a_script_returns_structured_content_or_text_without_its_wrapper(scene: Scene) -> None:
    code = (
        "[await mcp.call_tool('tracker', 'create-issue', {'title': 'x'}), await mcp.call_tool('tracker', 'read_text')]"
    )
    assert await result_of(scene, code) == [{"tool": "create-issue", "arguments": {"title": "x"}}, "plain words"]


async def test_content_other_than_text_is_returned_beside_the_text() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: {"content": [{"type": "text", "text": "see"}, image]}
    async with a_scene(painter=backend) as scene:
        assert await result_of(scene, "await mcp.call_tool('painter', 'paint')") == ["see", image]


async def test_scripts_read_resources_and_prompts_as_text() -> None:
    backend = ScriptedBackend()
    backend.answers["resources/list"] = lambda _: {"resources": [{"uri": "a:b", "name": "b"}]}
    backend.answers["resources/read"] = lambda _: {"contents": [{"uri": "a:b", "text": "words"}]}
    backend.answers["prompts/list"] = lambda _: {"prompts": [{"name": "greet"}]}
    backend.answers["prompts/get"] = lambda _: {
        "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}]
    }
    code = """
names = [item["uri"] for item in await mcp.list_resources("library")]
text = await mcp.read_resource("library", names[0])
prompts = [item["name"] for item in await mcp.list_prompts()]
said = await mcp.get_prompt("library", prompts[0], {})
(names, text, prompts, said, await mcp.list_resource_templates())
"""
    async with a_scene(library=backend) as scene:
        assert await result_of(scene, code) == [
            ["a:b"],
            "words",
            ["greet"],
            [{"role": "user", "content": "Say hello."}],
            [],
        ]


async def test_every_script_method_has_a_camel_case_alias(scene: Scene) -> None:
    code = "[len(await mcp.listServers()), len(await mcp.listTools()), await mcp.callTool('tracker', 'read_text')]"
    assert await result_of(scene, code) == [1, 3, "plain words"]


async def test_scripts_can_call_the_other_tools_of_emceepee_but_not_codemode_execute(scene: Scene) -> None:
    assert await result_of(scene, 'await mcp.tool("set_timer", {"duration_ms": 5000, "message": "tea"})')
    assert len(scene.session.timers.all(include_inactive=False)) == 1
    error = await failure_of(scene, 'await mcp.tool("codemode_execute", {"code": "1"})')
    assert error["message"] == "mcp.tool: a script cannot start another one"
    error = await failure_of(scene, 'await mcp.tool("set_timr")')
    assert "Did you mean set_timer" in error["message"]


async def test_scripts_can_call_the_tools_of_emceepee_like_tools_of_a_server(scene: Scene) -> None:
    code = 'await mcp.call_tool("emceepee", "set_timer", {"duration_ms": 5000, "message": "tea"})'
    assert (await result_of(scene, code))["message"] == "tea"
    error = await failure_of(scene, 'await mcp.call_tool("emceepee", "codemode_execute", {"code": "1"})')
    assert error["message"] == "mcp.call_tool: a script cannot start another one"


# Side by side.


async def test_gathered_calls_reach_the_server_concurrently() -> None:
    backend = ScriptedBackend()
    async with a_scene(slow=backend) as scene:
        code = "await asyncio.gather(*[mcp.call_tool('slow', 'echo', {'n': n}) for n in range(5)])"
        call = scene.start("codemode_execute", code=code)
        asked = [await backend.next_asked() for _ in range(5)]
        for one in reversed(asked):
            one.reply(**text_result(str(one.params["arguments"]["n"])))
        value = own_part((await call)["structuredContent"])
    assert (value["result"], value["stats"]["mcpCalls"]) == (["0", "1", "2", "3", "4"], 5)


async def test_a_script_can_catch_a_failure_among_gathered_calls(scene: Scene) -> None:
    code = """
async def close(number):
    try:
        return await mcp.call_tool("tracker", "close-issue", {"number": number})
    except RuntimeError as error:
        return str(error).split(".")[0]
await asyncio.gather(close(1), mcp.call_tool("tracker", "read_text"))
"""
    assert await result_of(scene, code) == ["tracker", "plain words"]


# Typed modules.


async def test_a_server_is_a_module_whose_functions_are_its_tools(scene: Scene) -> None:
    code = "from servers import tracker\nawait tracker.create_issue(title='t', from_='me', labels=['a'], priority=None)"
    assert await result_of(scene, code) == {
        "tool": "create-issue",
        "arguments": {"title": "t", "from": "me", "labels": ["a"]},
    }


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("tracker.create_issue(title=3)", "Expected `str`"),
        ("tracker.create_issue()", "`title`"),
        ("tracker.create_issue(title='t', heading='u')", "heading"),
        ("tracker.create_issue(title='t', priority='urgent')", "Literal"),
        ("tracker.delete_all()", "delete_all"),
    ],
)
async def test_an_invalid_typed_call_is_reported_with_its_line_before_anything_runs(
    scene: Scene, call: str, words: str
) -> None:
    code = f"from servers import tracker\nawait tracker.read_text()\nawait {call}"
    backend = scene.backends["tracker"]
    error = await failure_of(scene, code)
    assert (error["name"], error["line"], words in error["message"]) == ("TypeError", 3, True), error
    assert [method for method, _ in backend.seen if method == "tools/call"] == []


async def test_a_forgotten_await_is_added(scene: Scene) -> None:
    code = "from servers import tracker\ntracker.read_text()\nx = tracker.read_text()\nx"
    assert await result_of(scene, code) == "plain words"
    calls = [method for method, _ in scene.backends["tracker"].seen if method == "tools/call"]
    assert len(calls) == 2


async def test_the_error_for_an_unawaited_result_names_the_missing_await(scene: Scene) -> None:
    error = await failure_of(scene, "x = mcp.call_tool('tracker', 'read_text')\nx['a']")
    assert (error["name"], error["line"]) == ("TypeError", 2)
    assert "write await before each" in error["message"]


@pytest.mark.parametrize("name", ["time", "json", "re", "os", "sys", "class", "list", "mcp", "math"])
async def test_a_server_named_like_a_python_module_is_a_module_with_an_underscore(name: str) -> None:
    module = f"{name}_"
    named: dict[str, Any] = {name: issue_tracker()}
    async with a_scene(tracker=issue_tracker(), **named) as scene:
        code = f"from servers import tracker, {module}\n(await tracker.read_text(), await {module}.read_text())"
        assert await result_of(scene, code) == ["plain words"] * 2
        found = (await scene.value("codemode_search", query="read text", server=name))["results"][0]
        assert (found["signature"], found["server"], found["module"]) == (f"{module}.read_text()", name, module)


async def test_the_plain_name_stays_that_of_the_python_module_and_importing_it_explains_the_server_name() -> None:
    async with a_scene(math=issue_tracker(), tracker=issue_tracker()) as scene:
        code = "import math\nfrom servers import tracker\n(math.floor(2.5), await tracker.read_text())"
        assert await result_of(scene, code) == [2, "plain words"]
        error = await failure_of(scene, "from servers import math\nawait math.read_text()")
    assert error["line"] == 1
    assert error["message"].endswith("The module of the server math is math_: from servers import math_")


async def test_importing_an_unknown_server_fails(scene: Scene) -> None:
    error = await failure_of(scene, "from servers import trackr\n1")
    assert (error["line"], "trackr" in error["message"]) == (1, True)


async def test_importing_a_disabled_server_names_the_remedy(scene: Scene) -> None:
    scene.session.servers._registry.set_disabled([scripted_spec("off-line")])
    error = await failure_of(scene, "from servers import off_line\n1")
    assert error["line"] == 1
    assert error["message"].endswith('Remove "disabled" from its entry in the configuration file to enable it.')
    assert "disabled" not in (await failure_of(scene, "from servers import other\noff_line = 1"))["message"]


async def test_importing_a_server_whose_tools_cannot_be_listed_names_the_server() -> None:
    backend = ScriptedBackend()
    backend.refuses = LinkError(LinkFailure.CLOSED, "nobody is there")
    async with a_scene(tracker=backend) as scene:
        error = await failure_of(scene, "from servers import tracker\n1")
    assert (error["name"], 'server "tracker" cannot be listed' in error["message"]) == ("ImportError", True)


# Errors.


async def test_a_script_error_shows_the_exception_its_message_and_its_line(scene: Scene) -> None:
    error = await failure_of(scene, "def half(n):\n    return 1 / n\n\nhalf(0)")
    assert error == {"name": "ZeroDivisionError", "message": "division by zero", "line": 2}


async def test_a_syntax_error_in_a_script_shows_its_line(scene: Scene) -> None:
    error = await failure_of(scene, "x = 1\ny = (")
    assert (error["name"], error["line"]) == ("SyntaxError", 2)


async def test_a_failing_tool_raises_an_exception_that_lists_its_parameters(scene: Scene) -> None:
    error = await failure_of(scene, "await mcp.call_tool('tracker', 'close-issue', {'number': 7})")
    assert error == {
        "name": "RuntimeError",
        "message": "tracker.close-issue: no issue 7 Parameters: number: int",
        "line": 1,
    }


async def test_a_wrong_server_or_argument_in_a_script_raises_the_error_of_the_tool(scene: Scene) -> None:
    error = await failure_of(scene, "await mcp.call_tool('trackr', 'read_text')")
    assert (error["name"], "Did you mean tracker?" in error["message"]) == ("LookupError", True)
    error = await failure_of(scene, "await mcp.tool('set_timer', {'duration_ms': 0, 'message': 'x'})")
    assert (error["name"], "Parameters: duration_ms: int" in error["message"]) == ("ValueError", True)


async def test_codemode_execute_requires_either_code_or_a_task_and_rejects_both(scene: Scene) -> None:
    for arguments in ({}, {"code": "1", "task_id": "2"}, {"code": ""}, {"code": "1", "timeout": 301}):
        error = await scene.error("codemode_execute", **arguments)
        assert error["code"] == "ERR_INVALID_ARGUMENTS", arguments


# Through the same session.


async def test_scripts_cannot_call_forbidden_tools() -> None:
    spec = replace(scripted_spec("tracker"), tools=ToolFilter(denied=("read_*",)))
    async with a_scene(specs=[spec], tracker=issue_tracker()) as scene:
        error = await failure_of(scene, "await mcp.call_tool('tracker', 'read_text')")
        assert (error["name"], "does not allow" in error["message"]) == ("PermissionError", True)
        error = await failure_of(scene, "from servers import tracker\nawait tracker.read_text()")
        assert error["name"] == "TypeError"


async def test_calls_of_a_script_are_nested_in_its_row_of_the_waterfall(scene: Scene) -> None:
    await result_of(scene, "await mcp.call_tool('tracker', 'read_text')\nawait mcp.list_servers()")
    outer, *inner = scene.session.journal.since(0)
    assert [(span.name, span.parent) for span in inner] == [
        ("read_text", outer.span_id),
        ("list_servers", outer.span_id),
    ]
    assert [str(span.status) for span in (outer, *inner)] == ["success"] * 3


async def test_canceling_a_script_cancels_its_calls() -> None:
    backend = ScriptedBackend()
    async with a_scene(slow=backend) as scene:
        call = scene.start("codemode_execute", code="await mcp.call_tool('slow', 'echo')")
        await backend.next_asked()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await eventually(lambda: bool(backend.cancelled), what="the call is cancelled")
        assert len(scene.session.calls) == 0


async def test_scripts_are_private_to_their_session() -> None:
    async with a_scene(tracker=issue_tracker()) as one, a_scene(tracker=issue_tracker()) as other:
        assert await result_of(one, "hidden = 'secret'\nhidden") == "secret"
        assert "hidden" in (await failure_of(other, "hidden"))["message"]
        assert "hidden" in (await failure_of(one, "hidden"))["message"]


# Lists.


LISTS = {
    "list_tools": ("tools/list", "tools", "name", "tool"),
    "list_resources": ("resources/list", "resources", "uri", "a:b"),
    "list_resource_templates": ("resources/templates/list", "resourceTemplates", "uriTemplate", "a:{b}"),
    "list_prompts": ("prompts/list", "prompts", "name", "prompt"),
}


def long_list(method: str, key: str, name: str, start: str, count: int, pad: int) -> ScriptedBackend:
    """A server with many entries of some kind, each with a long description."""
    backend = ScriptedBackend()
    entries: list[JsonObject] = [
        {"name": "n", name: f"{start}{number}", "description": "d" * pad} for number in range(count)
    ]
    if key == "tools":
        entries = [{"name": f"{start}{number}", "description": "d" * pad, "inputSchema": {}} for number in range(count)]
    backend.answers[method] = lambda _: {key: entries}
    return backend


@pytest.mark.parametrize("listing", LISTS)
async def test_a_list_in_a_script_has_all_entries(listing: str) -> None:
    method, key, name, start = LISTS[listing]
    async with a_scene(many=long_list(method, key, name, start, count=1000, pad=300)) as scene:
        code = f"found = [item['{name}'] for item in await mcp.{listing}() if item['server'] == 'many']\nfound"
        value = await run(scene, code)
    assert value["result"] == [f"{start}{number}" for number in range(1000)]
    assert value["logs"] == []


@pytest.mark.parametrize("listing", LISTS)
async def test_a_list_that_is_too_large_for_a_script_is_truncated_with_a_log_line(listing: str) -> None:
    method, key, name, start = LISTS[listing]
    async with a_scene(many=long_list(method, key, name, start, count=5000, pad=1000)) as scene:
        value = await run(scene, f"len(await mcp.{listing}())")
    assert 1000 < value["result"] < 2100
    (note,) = value["logs"]
    assert note.startswith(f"mcp.{listing}: {value['result']} of 500")
    assert "as much as a script is given" in note


async def test_a_server_that_is_missing_in_a_list_is_named_in_the_script_log() -> None:
    backend = ScriptedBackend()
    backend.refuses = LinkError(LinkFailure.CLOSED, "nobody is there")
    async with a_scene(gone=backend, tracker=issue_tracker()) as scene:
        value = await run(scene, "len(await mcp.list_tools())")
    assert value["result"] == 3
    (note,) = value["logs"]
    assert note.startswith("mcp.list_tools: gone is missing: ")

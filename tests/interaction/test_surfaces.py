"""A surface decides which tools are listed and which calls replies name. It never forbids a call."""

import json
import re

import pytest

from emceepee.state.limits import Limits
from emceepee.surface import Surface, is_listed, use_surface
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.callers.emceepee_process import MODERN_META
from support.callers.http_process import HELLO
from support.in_process.http_endpoint import EndpointClient, an_endpoint_client
from support.sessions.asking import a_call, a_task, elicit, sample
from support.sessions.catalogue import CATALOGUE
from support.sessions.scene import Scene, a_scene

SMALL = pytest.mark.parametrize("surface", [Surface.LITE, Surface.CODEMODE])
LITE = {
    *("codemode_search", "execute_tool", "list_servers", "add_server", "read_resource"),
    *("await_activity", "get_task_result", "respond_to_elicitation"),
}
_WRAPPED = re.compile(r'execute_tool\(server="emceepee", tool="\w+"|mcp\.tool\("\w+"')


def unoffered(text: str, surface: Surface) -> set[str]:
    """The tools that a text names as if they could be called, and that the surface does not list."""
    bare = _WRAPPED.sub("", text)
    return {name for name in CATALOGUE if not is_listed(name, surface) and re.search(rf"\b{name}\b", bare)}


def words(result: JsonObject) -> str:
    return json.dumps(result, ensure_ascii=False).replace('\\"', '"').replace('\\\\"', '"')


async def listed(client: EndpointClient, *, query: str = "", is_modern: bool = False, **headers: str) -> set[str]:
    params: JsonObject = {}
    if is_modern:
        params = {"_meta": MODERN_META}
        headers |= {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/list"}
    else:
        headers["mcp_session_id"] = await client.join(query=query, **headers)
    answered = await client.ask("POST", body=client.message("tools/list", params), query=query, **headers)
    return {tool["name"] for tool in json.loads(answered.body)["result"]["tools"]}


@pytest.mark.parametrize("is_modern", [False, True], ids=["handshake", "2026-07-28"])
async def test_a_caller_chooses_its_surface_by_address_or_header(is_modern: bool) -> None:
    async with an_endpoint_client() as client:
        assert await listed(client, is_modern=is_modern) == set(CATALOGUE)
        by_address = await listed(client, query="session=s&surface=lite", is_modern=is_modern)
        by_header = await listed(client, is_modern=is_modern, emceepee_surface="lite")
        assert by_address == by_header == LITE & set(CATALOGUE)


async def test_an_unknown_surface_is_an_error_that_lists_the_valid_ones() -> None:
    async with an_endpoint_client() as client:
        body = client.message("initialize", HELLO)
        for answered in (
            await client.ask("POST", body=body, query="surface=huge"),
            await client.ask("POST", body=body, emceepee_surface="huge"),
        ):
            assert answered.status == 400
            assert "no surface is called 'huge'; there are full, lite, codemode" in answered.body.decode()


async def test_instructions_match_the_surface() -> None:
    async with an_endpoint_client() as client:
        for surface in Surface:
            answered = await client.ask("POST", body=client.message("initialize", HELLO), query=f"surface={surface}")
            text = json.loads(answered.body)["result"]["instructions"]
            assert unoffered(text, surface) == set()
            assert len(text) < 1200


async def test_unlisted_tools_can_be_called() -> None:
    async with an_endpoint_client() as client:
        connection = await client.join(query="surface=codemode")
        assert await client.value(connection, "list_timers") == {"timers": []}


async def test_execute_tool_reaches_the_own_tools_of_emceepee() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        timer = await scene.value("set_timer", duration_ms=1000, message="x")
        for args in ({"timer_id": timer["timerId"]}, json.dumps({"timer_id": timer["timerId"]})):
            result = await scene.call("execute_tool", server="emceepee", tool="get_timer", args=args)
            assert result["structuredContent"]["timerId"] == timer["timerId"]
        error = await scene.error("execute_tool", server="emceepee", tool="get_timer", args={})
        assert error["message"] == "get_timer cannot be called like this: timer_id: is missing."


@SMALL
async def test_errors_name_only_calls_that_the_surface_offers(surface: Surface) -> None:
    use_surface(surface)
    async with a_scene(limits=Limits(timers_per_session=0), one=ScriptedBackend()) as scene:
        failing: list[tuple[str, JsonObject]] = [
            ("execute_tool", {"server": "two", "tool": "x"}),
            ("get_task", {"task_id": "x"}),
            ("get_timer", {"timer_id": "x"}),
            ("set_timer", {"duration_ms": 5, "message": "m"}),
            ("respond_to_elicitation", {"request_id": "x", "action": "decline"}),
            ("respond_to_sampling", {"request_id": "x", "role": "user", "content": "c", "model": "m"}),
            ("add_server", {"name": "one", "url": "http://other.test/mcp"}),
            ("list_servers", {"session": 5}),
        ]
        for tool, arguments in failing:
            result = await scene.call(tool, **arguments)
            assert result["isError"], result
            assert unoffered(words(result).replace(f"{tool} cannot be called", ""), surface) == set(), result


@SMALL
async def test_a_promotion_with_questions_names_only_calls_that_the_surface_offers(surface: Surface) -> None:
    use_surface(surface)
    async with a_scene(one=ScriptedBackend()) as scene:
        result = await _promotion_with_questions(scene)
        assert unoffered(words(result), surface) == set(), result
        report = await scene.call("list_timers")
        assert unoffered(words(report), surface) == set(), report


async def _promotion_with_questions(scene: Scene) -> JsonObject:
    """More than a reply shows, and with more words."""
    await a_task(scene)
    call, _ = await a_call(scene)
    form = {"type": "object", "properties": {f"field{number}": {"type": "string"} for number in range(300)}}
    for number in range(7):
        elicit(scene.backends["one"], f"m{number}", requestedSchema=form)
        sample(scene.backends["one"], "text " * 1000)
    return await call

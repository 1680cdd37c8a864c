import asyncio
from typing import Any

import pytest

from emceepee.backends.spec import BackendSpec, HttpTarget, UnusableTarget
from emceepee.futures import let_others_run
from emceepee.search.signatures import DASH
from emceepee.state.limits import Limits
from emceepee.state.tool_filter import ToolFilter
from emceepee.tools.search_tools import codemode_search
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import Scene, a_scene

CREATE: JsonObject = {
    "name": "create_issue",
    "description": "Open a new issue. Needs a token.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}, "body": {}}, "required": ["title"]},
}
DELETE: JsonObject = {"name": "delete_branch", "description": "Remove a branch", "inputSchema": {"type": "object"}}
NOTES: JsonObject = {"uri": "file:///notes", "name": "notes", "description": "The notes"}


def a_backend(*tools: JsonObject) -> ScriptedBackend:
    backend = ScriptedBackend()
    backend.answers["tools/list"] = lambda _: {"tools": list(tools)}
    return backend


async def names(scene: Scene, query: str, **arguments: Any) -> list[str]:
    found = await scene.value("codemode_search", query=query, **arguments)
    return [entry["name"] for entry in found["results"]]


def has_search(scene: Scene) -> bool:
    return scene.session._search is not None or scene.session.shapes is not None


async def test_search_finds_a_tool_by_other_words_and_shows_it_as_a_signature() -> None:
    async with a_scene(github=a_backend(CREATE, DELETE), other=a_backend(DELETE)) as scene:
        assert await scene.value("codemode_search", query="report a bug", limit=1) == {
            "results": [
                {
                    "server": "github",
                    "name": "create_issue",
                    "signature": f"github.create_issue(title, body?) {DASH} Open a new issue.",
                }
            ]
        }


async def test_search_returns_schemas_on_request() -> None:
    async with a_scene(github=a_backend(CREATE)) as scene:
        found = await scene.value("codemode_search", query="issue", includeSchemas=True)
        assert found["results"][0]["inputSchema"] == CREATE["inputSchema"]


async def test_search_covers_all_types_of_entries_alone_or_together() -> None:
    backend = a_backend({"name": "read_notes"})
    backend.answers["resources/list"] = lambda _: {"resources": [NOTES]}
    backend.answers["resources/templates/list"] = lambda _: {"resourceTemplates": [{"uriTemplate": "notes://{day}"}]}
    backend.answers["prompts/list"] = lambda _: {"prompts": [{"name": "notes", "arguments": [{"name": "day"}]}]}
    spec = BackendSpec(name="one", target=HttpTarget(url="http://one.test/mcp"), description="Keeps notes")
    async with a_scene(specs=[spec], one=backend) as scene:
        assert await names(scene, "notes", type="tools") == ["read_notes"]
        assert set(await names(scene, "notes", type="resources")) == {"file:///notes", "notes://{day}"}
        assert await names(scene, "notes", type="prompts") == ["notes"]
        assert await names(scene, "notes", type="servers") == ["one"]
        found = await scene.value("codemode_search", query="notes", type="all")
        types = {entry["type"] for entry in found["results"]}
        assert types == {"tool", "resource", "resourceTemplate", "prompt", "server"}


async def test_search_hides_tools_that_the_session_may_not_call() -> None:
    spec = BackendSpec(
        name="github", target=HttpTarget(url="http://github.test/mcp"), tools=ToolFilter(denied=("delete_*",))
    )
    async with a_scene(specs=[spec], github=a_backend(CREATE, DELETE)) as scene:
        assert await names(scene, "delete branch") == []
        assert await names(scene, "/delete/") == []
        assert await names(scene, "create issue") == ["create_issue"]


async def test_search_can_be_limited_to_one_server() -> None:
    async with a_scene(one=a_backend(CREATE), two=a_backend(CREATE)) as scene:
        found = await scene.value("codemode_search", query="issue", server="two")
        assert [entry["server"] for entry in found["results"]] == ["two"]
        error = await scene.error("codemode_search", query="issue", server="three")
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_search_matches_a_regular_expression_against_names() -> None:
    async with a_scene(github=a_backend(CREATE, DELETE)) as scene:
        for query in ("/^github\\.del/", "github.del.*", "branch$", "/branch|nothing/"):
            assert await names(scene, query) == ["delete_branch"], query
        error = await scene.error("codemode_search", query="/(/")
        assert error["code"] == "ERR_INVALID_ARGUMENTS"


async def test_search_covers_the_current_entries_of_servers_that_change_connect_and_disconnect() -> None:
    one = a_backend(CREATE)
    async with a_scene(one=one, two=a_backend(DELETE)) as scene:
        assert await names(scene, "issue") == ["create_issue"]
        index = scene.session.search().index
        before = index.writes
        one.answers["tools/list"] = lambda _: {"tools": [CREATE, {"name": "list_pulls"}]}
        one.link.listener.handle_notification("notifications/tools/list_changed", {}, None)
        assert await names(scene, "pulls") == ["list_pulls"]
        assert index.writes - before == 1, "the others were not written again"
        await scene.value("remove_server", name="two")
        assert await names(scene, "delete branch") == []
        assert index.writes - before == 2


async def test_a_second_search_sends_no_requests_and_writes_nothing() -> None:
    one = a_backend(CREATE)
    async with a_scene(one=one) as scene:
        await names(scene, "issue")
        before = scene.session.search().index.writes, len(one.seen)
        await names(scene, "issue")
        assert (scene.session.search().index.writes, len(one.seen)) == before


async def test_entries_of_a_disconnected_server_are_still_found_and_the_server_is_named() -> None:
    one = a_backend(CREATE)
    async with a_scene(one=one, two=a_backend(DELETE)) as scene:
        await names(scene, "issue")
        one.opens = asyncio.get_running_loop().create_future()
        one.link.break_off("gone")
        searching = scene.start("codemode_search", query="issue")
        await scene.clock.advance(Limits().list_patience_seconds)
        async with asyncio.timeout(5):
            found = (await searching)["structuredContent"]
        assert [entry["name"] for entry in found["results"]] == ["create_issue"]
        assert [error["server"] for error in found["errors"]] == ["one"]


async def test_search_names_up_to_ten_unreachable_servers_and_counts_the_others() -> None:
    broken = [BackendSpec(name=f"s{n:02}", target=UnusableTarget(label="", reason="a mistake")) for n in range(13)]
    async with a_scene(specs=broken) as scene:
        found = await scene.value("codemode_search", query="issue")
        assert [error["server"] for error in found["errors"]] == [f"s{n:02}" for n in range(10)]
        assert "3 more servers could not be queried; list_servers shows the reasons." in found["note"]


async def test_a_session_that_never_searches_has_no_search_index_and_a_sleeping_one_drops_it() -> None:
    async with a_scene(one=a_backend(CREATE)) as scene:
        await scene.value("list_tools")
        assert not has_search(scene)
        await names(scene, "issue")
        assert has_search(scene)
        await scene.session.sleep()
        assert not has_search(scene)
        assert await names(scene, "issue") == ["create_issue"]


async def test_concurrent_searches_build_one_index() -> None:
    many = [{"name": f"issue_{number}"} for number in range(100)]
    async with a_scene(one=a_backend(*many)) as scene:
        found = await asyncio.gather(*(scene.value("codemode_search", query="issue") for _ in range(5)))
        assert all(answer == found[0] for answer in found)
        assert scene.session.search().index.writes == 100


async def test_closing_a_session_during_a_search_leaves_no_resources_behind() -> None:
    many = [{"name": f"issue_{number}"} for number in range(1000)]
    async with a_scene(one=a_backend(*many)) as scene:
        searching = scene.start("codemode_search", query="issue")
        search = scene.session.search()
        for _ in range(1000):
            if len(search.index):
                break
            await let_others_run()
        assert 0 < len(search.index) < 1000
        scene.session._end_search()
        async with asyncio.timeout(5):
            await asyncio.gather(searching, return_exceptions=True)
        with pytest.raises(Exception, match="closed"):
            search.index.search("issue", ())


async def test_search_shows_the_shape_of_tool_results_that_the_session_received() -> None:
    one = a_backend(CREATE)
    one.answers["tools/call"] = lambda _: {"content": [], "structuredContent": {"number": 5, "url": "x"}}
    async with a_scene(one=one) as scene:
        await names(scene, "issue")
        await scene.call("execute_tool", server="one", tool="create_issue", args={"title": "x"})
        found = await scene.value("codemode_search", query="issue")
        expected = f"one.create_issue(title, body?) → {{number: int, url: str}} {DASH} Open a new issue."
        assert found["results"][0]["signature"] == expected


async def test_a_search_reply_is_bounded_and_explains_how_to_get_the_rest() -> None:
    many = [{"name": f"issue_{number}", "description": "word " * 100} for number in range(60)]
    async with a_scene(limits=Limits(search_bytes=2000), one=a_backend(*many)) as scene:
        found = await scene.value("codemode_search", query="issue", limit=50)
        assert len(encode(found)) <= 2000
        assert 0 < len(found["results"]) < 50
        assert "not shown" in found["note"]
    async with a_scene(one=a_backend(*many)) as scene:
        found = await scene.value("codemode_search", query="issue", limit=5)
        assert found["note"].startswith("55 less relevant results are not shown: raise limit (at most 50)")


async def test_a_search_reply_omits_schemas_before_it_omits_results() -> None:
    huge = CREATE | {"inputSchema": {"type": "object", "properties": {"x": {"description": "y" * 5000}}}}
    async with a_scene(limits=Limits(search_bytes=2000), one=a_backend(huge)) as scene:
        found = await scene.value("codemode_search", query="issue", includeSchemas=True)
        assert [sorted(entry) for entry in found["results"]] == [["name", "server", "signature"]]
        assert "1 schemas did not fit" in found["note"]


async def test_search_counts_the_entries_over_its_limit() -> None:
    many = [{"name": f"issue_{number}"} for number in range(10)]
    async with a_scene(limits=Limits(searched_entries=4), one=a_backend(*many), two=a_backend(CREATE)) as scene:
        found = await scene.value("codemode_search", query="issue")
        assert len(found["results"]) == 4
        assert "7 entries are over the size limit of the search" in found["note"]


async def test_an_empty_search_result_suggests_what_to_try() -> None:
    async with a_scene(one=a_backend(CREATE)) as scene:
        found = await scene.value("codemode_search", query="zzzzqqq")
        assert (found["results"], "try other words" in found["note"]) == ([], True)


async def test_hostile_entries_break_neither_the_search_nor_the_reply() -> None:
    hostile: list[Any] = [
        {"name": 'a"; DROP TABLE entries; --', "description": "\x00\x1b[2J\u202e" + "poison " * 100_000},
        {"name": None, "inputSchema": 5},
        {"name": "deep", "inputSchema": {"properties": {"x": {"properties": [1, 2]}}}, "title": ["x"]},
        {"name": "\ud800 lone", "description": "half a letter"},
        *(5, "x", None),
    ]
    async with a_scene(one=a_backend(*hostile, CREATE)) as scene:
        assert await names(scene, "create issue") == ["create_issue"]
        found = await scene.value("codemode_search", query="poison")
        assert all(entry["signature"].isprintable() for entry in found["results"])
        assert len(encode(found)) < Limits().search_bytes


def test_the_search_tool_uses_little_of_the_context() -> None:
    assert len(codemode_search.description.encode()) < 500
    assert len(encode({"d": codemode_search.description, "s": codemode_search.input_schema})) < 900

"""Tags of servers filter every list with a tag argument."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from emceepee.surface import Surface
from emceepee.tools.catalogue import TOOLS
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import Scene, a_scene, scripted_spec

TAGS = {"tracker": ("work",), "mail": ("work", "slow"), "music": ("home",), "plain": ()}


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    def a_backend(name: str) -> ScriptedBackend:
        return ScriptedBackend(tools=[f"find_{name}", "find_all"])

    specs = [replace(scripted_spec(name), tags=tags) for name, tags in TAGS.items()]
    async with a_scene(
        specs=specs,
        tracker=a_backend("tracker"),
        mail=a_backend("mail"),
        music=a_backend("music"),
        plain=a_backend("plain"),
    ) as scene:
        yield scene.quiet()


async def test_servers_are_listed_by_their_tag(scene: Scene) -> None:
    listed = await scene.value("list_servers", tag="work")
    assert [server["name"] for server in listed["servers"]] == ["tracker", "mail"]
    assert len((await scene.value("list_servers"))["servers"]) == len(TAGS)


async def test_tools_are_listed_by_the_tag_of_their_server(scene: Scene) -> None:
    listed = await scene.value("list_tools", tag="work", server="mail|music", detail="names")
    assert listed["tools"] == [{"server": "mail", "name": "find_mail"}, {"server": "mail", "name": "find_all"}]


@pytest.mark.parametrize("query", ["find", "/find_/"])
async def test_a_search_with_a_tag_covers_only_servers_with_that_tag(scene: Scene, query: str) -> None:
    found = await scene.value("codemode_search", query=query, tag="work", limit=50)
    assert {entry["server"] for entry in found["results"]} == {"tracker", "mail"}
    assert len(found["results"]) == 4
    both = await scene.value("codemode_search", query=query, tag="work", server="mail")
    assert {entry["server"] for entry in both["results"]} == {"mail"}


@pytest.mark.parametrize(
    ("tool", "arguments"), [("list_servers", {}), ("list_tools", {}), ("codemode_search", {"query": "find"})]
)
async def test_an_unknown_tag_is_rejected_with_similar_tags(scene: Scene, tool: str, arguments: dict[str, str]) -> None:
    error = await scene.error(tool, tag="wrk", **arguments)
    assert error["code"] == "ERR_INVALID_ARGUMENTS"
    assert error["message"] == 'tag: no server has the tag "wrk". Did you mean work?'
    other = await scene.error(tool, tag="zzz", **arguments)
    assert "There are: home, slow, work." in other["message"]


async def test_the_error_for_a_tag_mentions_that_no_server_has_tags() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        assert "None has tags" in (await scene.error("list_servers", tag="work"))["message"]


@pytest.mark.parametrize("name", ["list_servers", "list_tools", "codemode_search"])
def test_the_tag_argument_costs_no_context(name: str) -> None:
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    assert "tag" in tool.input_schema["properties"]
    assert "tag" not in tool.listing(Surface.FULL)[1]["properties"]

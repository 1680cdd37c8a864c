import asyncio

import pytest

from emceepee.backends.link import RpcError
from emceepee.backends.links import subscriptions
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import a_scene

RESOURCE: JsonObject = {"uri": "file:///a", "name": "a", "size": None, "zz": {"x": 1}}
TEMPLATE: JsonObject = {"uriTemplate": "file:///{x}", "name": "t"}


def a_backend() -> ScriptedBackend:
    backend = ScriptedBackend()
    backend.answers["resources/list"] = lambda _: {"resources": [RESOURCE]}
    backend.answers["resources/templates/list"] = lambda _: {"resourceTemplates": [TEMPLATE]}
    return backend


async def test_resources_and_templates_are_listed_unchanged() -> None:
    async with a_scene(a=a_backend(), b=a_backend()) as scene:
        assert await scene.value("list_resources", server="a") == {"resources": [{"server": "a", **RESOURCE}]}
        assert await scene.value("list_resource_templates") == {
            "resourceTemplates": [{"server": "a", **TEMPLATE}, {"server": "b", **TEMPLATE}]
        }


@pytest.mark.parametrize("tool", ["list_resources", "list_resource_templates", "list_prompts"])
async def test_the_server_argument_of_a_resource_list_is_a_name_and_not_a_pattern(tool: str) -> None:
    async with a_scene(github=a_backend()) as scene:
        error = await scene.error(tool, server="git.*")
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_a_long_list_of_resources_is_split_into_pages() -> None:
    async with a_scene(a=a_backend(), b=a_backend()) as scene:
        first = await scene.value("list_resources", limit=1)
        second = await scene.value("list_resources", limit=1, cursor=first["nextCursor"])
        assert [entry["server"] for entry in first["resources"] + second["resources"]] == ["a", "b"]


async def test_a_backend_whose_resource_list_fails_is_named() -> None:
    def refuse(_: JsonObject) -> JsonObject:
        raise RpcError({"code": -5, "message": "no"})

    bad = a_backend()
    bad.answers["resources/list"] = refuse
    async with a_scene(bad=bad, good=a_backend()) as scene:
        listed = await scene.value("list_resources")
        assert {entry["server"] for entry in listed["resources"]} == {"good", "emceepee"}
        assert [error["server"] for error in listed["errors"]] == ["bad"]


async def test_a_resource_is_returned_with_text_blobs_and_unknown_keys_intact() -> None:
    result: JsonObject = {
        "contents": [{"uri": "a", "text": "x"}, {"uri": "b", "blob": "AA==", "zz": None}],
        "_meta": {},
    }
    backend = a_backend()
    backend.answers["resources/read"] = lambda _: result
    async with a_scene(demo=backend) as scene:
        assert await scene.value("read_resource", server="demo", uri="file:///a") == result
    assert ("resources/read", {"uri": "file:///a"}) in backend.seen


async def test_a_missing_resource_is_an_error_of_the_backend() -> None:
    async with a_scene(demo=a_backend()) as scene:
        reading = scene.start("read_resource", server="demo", uri="file:///x")
        (await scene.backends["demo"].next_asked("resources/read")).refuse(-32002, "Resource not found")
        async with asyncio.timeout(5):
            result = await reading
        error = result["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "-32002: Resource not found" in error["message"]


async def test_reading_a_resource_requires_a_uri() -> None:
    async with a_scene(demo=a_backend()) as scene:
        assert (await scene.error("read_resource", server="demo", uri=""))["code"] == "ERR_INVALID_ARGUMENTS"


async def test_the_number_of_resource_subscriptions_per_server_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "SUBSCRIPTIONS_PER_SERVER", 2)
    backend = ScriptedBackend()
    backend.answers |= {"resources/subscribe": lambda _: {}, "resources/unsubscribe": lambda _: {}}
    async with a_scene(one=backend) as scene:
        for uri in ("a://1", "a://2", "a://2"):
            await scene.value("subscribe_resource", server="one", uri=uri)
        error = await scene.error("subscribe_resource", server="one", uri="a://3")
        assert (error["code"], "2 resources" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        await scene.value("unsubscribe_resource", server="one", uri="a://1")
        await scene.value("subscribe_resource", server="one", uri="a://3")
        error = await scene.error("subscribe_resource", server="one", uri="a" * 8193)
        assert error["code"] == "ERR_INVALID_ARGUMENTS"

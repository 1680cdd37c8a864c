"""The resources of emceepee itself, read like those of any server."""

import json

import pytest

from emceepee.tools.request_context import RequestContext
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.asking import hush
from support.sessions.replies import own_part
from support.sessions.scene import a_scene

REQUIRED = {
    "proxy_task_states",
    "pending_elicitation_states",
    "pending_sampling_states",
    "tool_call_lifecycle",
    "entity_relationships",
}


async def test_emceepee_provides_the_diagrams_as_a_resource_of_its_own() -> None:
    async with a_scene() as scene:
        [content] = (await scene.value("read_resource", server="emceepee", uri="emceepee://diagrams"))["contents"]
        assert (content["uri"], content["mimeType"]) == ("emceepee://diagrams", "application/json")
        drawn = {diagram["name"]: diagram for diagram in json.loads(content["text"])["diagrams"]}
        assert set(drawn) >= REQUIRED
        assert all(set(diagram) == {"name", "description", "mermaid"} for diagram in drawn.values())
        assert drawn["proxy_task_states"]["mermaid"].startswith("stateDiagram-v2\n    [*] --> working")
        assert drawn["entity_relationships"]["mermaid"].startswith("flowchart")


async def test_the_own_resources_of_emceepee_can_be_listed() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        listed = (await scene.value("list_resources", server="emceepee"))["resources"]
        assert [(entry["server"], entry["uri"]) for entry in listed] == [
            ("emceepee", "emceepee://diagrams"),
            ("emceepee", "emceepee://events"),
            ("emceepee", "emceepee://metrics"),
        ]


async def test_the_resources_of_emceepee_follow_those_of_the_servers_in_the_list() -> None:
    one = ScriptedBackend()
    one.answers["resources/list"] = lambda _: {"resources": [{"uri": "a:b", "name": "b"}]}
    async with a_scene(one=one) as scene:
        listed = (await scene.value("list_resources"))["resources"]
        assert [entry["uri"] for entry in listed] == [
            "a:b",
            *(f"emceepee://{name}" for name in ("diagrams", "events", "metrics")),
        ]
        assert [entry["uri"] for entry in (await scene.value("list_resources", server="one"))["resources"]] == ["a:b"]


async def test_the_resources_of_emceepee_can_be_subscribed_to_and_only_events_change() -> None:
    followed: list[bool] = []
    caller = RequestContext(follow_events=followed.append)
    async with a_scene() as scene:
        for uri in ("emceepee://diagrams", "emceepee://events"):
            subscribed = await scene.call("subscribe_resource", caller=caller, server="emceepee", uri=uri)
            assert subscribed["structuredContent"] == {"subscribed": uri}
        left = await scene.call("unsubscribe_resource", caller=caller, server="emceepee", uri="emceepee://events")
        assert (left["structuredContent"], followed) == ({"unsubscribed": "emceepee://events"}, [True, False])
        unheard = await scene.value("subscribe_resource", server="emceepee", uri="emceepee://events")
        assert "subscriptions/listen" in unheard["note"]
        error = await scene.error("subscribe_resource", server="emceepee", uri="emceepee://nothing")
        assert error["code"] == "ERR_INVALID_ARGUMENTS"


async def test_reading_the_events_resource_delivers_no_event() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await hush(scene)
        await scene.value("read_resource", server="emceepee", uri="emceepee://events")
        scene.backends["one"].link.listener.handle_notification("notifications/tick", {}, None)
        reply = await scene.call("read_resource", server="emceepee", uri="emceepee://events")
        assert "notification" not in json.dumps(own_part(reply["structuredContent"]))


@pytest.mark.parametrize("uri", ["emceepee://nothing", "file:///etc/passwd", "emceepee://diagrams/"])
async def test_reading_an_unknown_resource_of_emceepee_is_an_error_that_lists_the_valid_ones(uri: str) -> None:
    async with a_scene() as scene:
        error = await scene.error("read_resource", server="emceepee", uri=uri)
        assert (error["code"], "emceepee://diagrams" in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)

"""Lists are requested once, cached while they are certainly valid, and never shown after a change."""

import asyncio

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene

CHANGED = "notifications/tools/list_changed"
LISTEN = "subscriptions/listen"


def offer(backend: ScriptedBackend, *names: str, **more: object) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    backend.answers["tools/list"] = lambda _: {"tools": tools, **more}


def asked_for(backend: ScriptedBackend) -> int:
    return [method for method, _ in backend.seen].count("tools/list")


async def names(scene: Scene) -> list[str]:
    return [tool["name"] for tool in (await scene.value("list_tools", detail="names"))["tools"]]


def tools(*offered: str) -> JsonObject:
    return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in offered]}


async def test_concurrent_readers_of_a_list_cause_one_request_and_later_ones_none() -> None:
    backend = ScriptedBackend()
    del backend.answers["tools/list"]
    async with a_scene(one=backend) as scene:
        asking = [scene.start("list_tools") for _ in range(20)]
        (await backend.next_asked("tools/list")).reply(**tools("a"))
        assert {len(reply["structuredContent"]["tools"]) for reply in await asyncio.gather(*asking)} == {1}
        assert await names(scene) == ["a"]
        assert asked_for(backend) == 1


async def test_a_reader_that_cancels_does_not_affect_the_other_readers_of_a_list() -> None:
    backend = ScriptedBackend()
    del backend.answers["tools/list"]
    async with a_scene(one=backend) as scene:
        first, second = scene.start("list_tools"), scene.start("list_tools")
        asked = await backend.next_asked("tools/list")
        first.cancel()
        await settle()
        asked.reply(**tools("a"))
        assert len((await second)["structuredContent"]["tools"]) == 1


async def test_a_cached_list_is_never_stale_after_a_list_changed_notification() -> None:
    backend = ScriptedBackend()
    offer(backend, "old")
    async with a_scene(one=backend) as scene:
        assert await names(scene) == ["old"]
        offer(backend, "new")
        assert await names(scene) == ["old"]
        backend.link.listener.handle_notification(CHANGED, {}, None)
        assert await names(scene) == ["new"]


async def test_a_list_that_changed_during_its_request_is_not_cached() -> None:
    backend = ScriptedBackend()
    del backend.answers["tools/list"]
    async with a_scene(one=backend) as scene:
        early = scene.start("list_tools")
        old = await backend.next_asked("tools/list")
        backend.link.listener.handle_notification(CHANGED, {}, None)
        late = scene.start("list_tools", detail="names")
        new = await backend.next_asked("tools/list")
        new.reply(**tools("new"))
        assert [tool["name"] for tool in (await late)["structuredContent"]["tools"]] == ["new"]
        old.reply(**tools("old"))
        await early
        assert await names(scene) == ["new"]


async def test_a_list_of_2026_07_28_is_cached_for_its_time_to_live() -> None:
    backend = ScriptedBackend(modern=True)
    backend.facts.capabilities["tools"] = {}
    offer(backend, "old", ttlMs=5000)
    async with a_scene(one=backend) as scene:
        assert await names(scene) == ["old"]
        offer(backend, "new", ttlMs=5000)
        await scene.clock.advance(4.9)
        assert await names(scene) == ["old"]
        await scene.clock.advance(0.1)
        assert await names(scene) == ["new"]


async def test_a_list_of_2026_07_28_without_a_time_to_live_is_cached_only_while_changes_are_subscribed() -> None:
    backend = ScriptedBackend(modern=True)
    offer(backend, "one")
    async with a_scene(one=backend) as scene:
        await names(scene)
        listen = await backend.next_asked(LISTEN)
        backend.link.acknowledge(listen)
        await settle()
        await names(scene)
        kept = asked_for(backend)
        assert await names(scene) == ["one"]
        assert asked_for(backend) == kept
        listen.fail(LinkError(LinkFailure.UNREACHABLE, "the stream was cut"))
        await scene.clock.advance(0.1)
        await backend.next_asked(LISTEN)
        offer(backend, "two")
        assert await names(scene) == ["two"]


async def test_a_list_of_2026_07_28_without_change_notifications_is_requested_each_time() -> None:
    """Subscriptions to other lists of the same server prove nothing about this one."""
    backend = ScriptedBackend(modern=True)
    backend.facts.capabilities["tools"] = {}
    offer(backend, "one")
    async with a_scene(one=backend) as scene:
        await names(scene)
        backend.link.acknowledge(await backend.next_asked(LISTEN))
        await settle()
        await names(scene)
        offer(backend, "two")
        assert await names(scene) == ["two"]


async def test_a_failed_list_is_an_error_of_its_server_only_and_is_requested_again() -> None:
    good, bad = ScriptedBackend(), ScriptedBackend()
    offer(good, "a")

    def broken(_: JsonObject) -> JsonObject:
        raise LinkError(LinkFailure.PROTOCOL, "not a list")

    bad.answers["tools/list"] = broken
    async with a_scene(good=good, bad=bad) as scene:
        reply = await scene.value("list_tools")
        assert [tool["server"] for tool in reply["tools"]] == ["good"]
        assert [error["server"] for error in reply["errors"]] == ["bad"]
        offer(bad, "b")
        assert sorted(await names(scene)) == ["a", "b"]


async def test_a_list_is_requested_again_if_its_connection_broke() -> None:
    backend = ScriptedBackend()
    del backend.answers["tools/list"]
    async with a_scene(one=backend) as scene:
        listing = scene.start("list_tools", detail="names")
        (await backend.next_asked("tools/list")).fail(LinkError(LinkFailure.UNREACHABLE, "the connection was reset"))
        (await backend.next_asked("tools/list")).reply(**tools("a"))
        assert [tool["name"] for tool in (await listing)["structuredContent"]["tools"]] == ["a"]

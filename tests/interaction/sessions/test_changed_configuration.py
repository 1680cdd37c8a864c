"""The operator's configuration changes while a session has calls in flight."""

import asyncio
from dataclasses import replace

from emceepee.sessions.servers.server_changes import ServerChanges
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene, scripted_spec


async def apply(scene: Scene, changes: ServerChanges) -> None:
    await scene.parts.registry.apply(changes)
    await settle()


async def test_a_configuration_change_leaves_calls_to_unchanged_servers_running() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend(), three=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", server="one", tool="echo", timeout_ms=60_000)
        asked = await scene.backends["one"].next_asked()
        changed = replace(scripted_spec("three"), timeout=7.0)
        await apply(scene, ServerChanges(removed=("two",), changed=(changed,)))
        asked.reply(content=[{"type": "text", "text": "still here"}])
        assert (await call)["content"][0]["text"] == "still here"
        assert [len(scene.backends[name].links) for name in ("one", "two", "three")] == [1, 1, 2]


async def test_removing_a_server_from_the_configuration_ends_its_calls_and_raises_an_event() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        scene.quiet()
        call = scene.start("execute_tool", server="one", tool="slow", timeout_ms=60_000)
        await scene.backends["one"].next_asked()
        await apply(scene, ServerChanges(removed=("one",)))
        error = (await call)["structuredContent"]["error"]
        assert (error["code"], error["message"]) == ("TOOL_ERR_SERVER_DISCONNECTED", 'Server "one" was removed.')
        assert scene.backends["one"].link.closed.done()
        assert (await scene.error("execute_tool", server="one", tool="slow"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_a_changed_server_is_reconnected_with_the_settings_that_callers_made() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        backend = scene.backends["one"]
        await scene.value("set_log_level", server="one", level="debug")
        call = scene.start("execute_tool", server="one", tool="slow", timeout_ms=60_000)
        await backend.next_asked()
        await apply(scene, ServerChanges(changed=(replace(scripted_spec("one"), timeout=7.0),)))
        error = (await call)["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert "was changed during the call" in error["message"]
        assert (len(backend.links), backend.links[0].closed.done(), scene.status("one")) == (2, True, "connected")
        assert scene.session.connection("one").spec.timeout == 7.0
        assert backend.seen[-1] == ("logging/setLevel", {"level": "debug"})


async def test_callers_are_notified_that_a_changed_server_disconnected_and_reconnected() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        scene.quiet()
        await apply(scene, ServerChanges(changed=(replace(scripted_spec("one"), timeout=7.0),)))
        assert scene.event_types() == ["server_disconnected", "server_connected"]


async def test_a_changed_server_is_opened_only_after_its_old_link_is_closed() -> None:
    """The old process may hold a resource that the next one needs, such as a port or a lock."""
    async with a_scene(one=ScriptedBackend()) as scene:
        backend = scene.backends["one"]
        closes = backend.closes = asyncio.get_running_loop().create_future()
        applying = asyncio.ensure_future(
            apply(scene, ServerChanges(changed=(replace(scripted_spec("one"), timeout=7.0),)))
        )
        await settle()
        assert len(backend.links) == 1
        backend.closes = None
        closes.set_result(None)
        await asyncio.wait_for(applying, 5)
        assert (len(backend.links), scene.status("one")) == (2, "connected")


async def test_a_changed_description_keeps_the_link_and_is_shown_from_then_on() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await apply(scene, ServerChanges(reworded=(replace(scripted_spec("one"), description="the first"),)))
        (server,) = (await scene.value("list_servers"))["servers"]
        assert (server["description"], len(scene.backends["one"].links)) == ("the first", 1)


async def test_a_new_server_is_connected_at_once_in_an_awake_session() -> None:
    one, two = ScriptedBackend(), ScriptedBackend()
    async with a_scene(specs=[scripted_spec("one")], one=one, two=two) as scene:
        scene.quiet()
        await apply(scene, ServerChanges(added=(scripted_spec("two"),)))
        assert scene.status("two") == "connected"
        assert scene.event_types() == ["server_added", "server_connected"]


async def test_a_new_server_stays_disconnected_until_the_session_is_used() -> None:
    async with a_scene(specs=[], is_awake=False, one=ScriptedBackend()) as scene:
        await apply(scene, ServerChanges(added=(scripted_spec("one"),)))
        assert (scene.status("one"), scene.backends["one"].links) == ("not_connected", [])


async def test_list_servers_reports_that_the_configuration_file_is_invalid() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        assert "configurationProblem" not in await scene.value("list_servers")
        scene.parts.registry.problem = "servers.json: not valid JSON"
        assert (await scene.value("list_servers"))["configurationProblem"] == "servers.json: not valid JSON"

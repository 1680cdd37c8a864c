"""Changes to added servers: new settings, disable, enable, and remove."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.console.server_actions import masked_entry
from emceepee.errors import ExecutionFailed, InvalidArguments, NotAllowed, UnknownBackend
from emceepee.sessions.servers.server_changes import ServerChanges
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.another_session import another_session
from support.sessions.scene import a_scene, scripted_spec

NONE: list[BackendSpec] = []
CHANGED = replace(scripted_spec("demo"), timeout=9.0)


async def test_changed_server_settings_take_effect_in_all_sessions() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        await scene.session.servers.add(scripted_spec("demo"))
        connection = await scene.session.servers.replace(CHANGED)
        assert connection.is_connected
        assert [each.connection("demo").spec.timeout for each in (scene.session, other)] == [9.0, 9.0]
        assert len(backend.links) == 2
        assert backend.links[0].closed.done()


async def test_a_changed_description_leaves_the_connection_unchanged() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        before = await scene.session.servers.add(scripted_spec("demo"))
        assert await scene.session.servers.replace(replace(scripted_spec("demo"), description="Digs")) is before
        assert (before.spec.description, len(backend.links)) == ("Digs", 1)


async def test_settings_that_fail_to_connect_change_nothing() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        await scene.session.servers.add(scripted_spec("demo"))
        backend.refuses = LinkError(LinkFailure.UNREACHABLE, "exited with code 1")
        with pytest.raises(ExecutionFailed, match=r"was not changed, because .*exited with code 1"):
            await scene.session.servers.replace(CHANGED)
        backend.refuses = None
        assert [each.connection("demo").spec.timeout for each in (scene.session, other)] == [None, None]
        await scene.session.connection("demo").ready()
        await scene.session.servers.replace(CHANGED)


async def test_a_canceled_change_has_no_effect_and_frees_the_server_name() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        await scene.session.servers.add(scripted_spec("demo"))
        backend.opens = asyncio.get_running_loop().create_future()
        changing = asyncio.create_task(scene.session.servers.replace(CHANGED))
        await settle()
        with pytest.raises(InvalidArguments, match="in use"):
            await scene.session.servers.replace(replace(CHANGED, timeout=1.0))
        changing.cancel()
        await settle()
        assert changing.cancelled()
        assert scene.session.connection("demo").spec.timeout is None
        backend.opens.set_result(None)
        await scene.session.servers.replace(CHANGED)


@pytest.mark.parametrize("how", ["remove", "disable"])
async def test_removing_a_server_during_the_trial_of_its_new_settings_removes_it(how: str) -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        await scene.session.servers.add(scripted_spec("demo"))
        backend.opens = asyncio.get_running_loop().create_future()
        changing = asyncio.create_task(scene.session.servers.replace(CHANGED))
        await settle()
        removing = asyncio.create_task(getattr(other.servers, how)("demo"))
        await settle()
        backend.refuses = LinkError(LinkFailure.UNREACHABLE, "exited with code 1")
        backend.opens.set_result(None)
        with pytest.raises(ExecutionFailed):
            await changing
        await removing
        assert (scene.session.connections, other.connections) == ([], [])
        assert all(link.closed.done() for link in backend.links)
        assert [spec.name for spec in other.servers.disabled] == (["demo"] if how == "disable" else [])


async def test_a_change_canceled_while_the_old_connection_closes_has_no_effect() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        await scene.session.servers.add(scripted_spec("demo"))
        backend.closes = asyncio.get_running_loop().create_future()
        changing = asyncio.create_task(scene.session.servers.replace(CHANGED))
        await settle()
        changing.cancel()
        await settle()
        backend.closes.set_result(None)
        await settle()
        assert changing.cancelled()
        assert scene.session.connection("demo").spec.timeout is None


@pytest.mark.parametrize("how", ["add", "replace"])
async def test_a_server_that_connects_after_its_session_ended_is_not_kept(how: str) -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        async with another_session(scene) as other:
            if how == "replace":
                await other.servers.add(scripted_spec("demo"))
            backend.opens = asyncio.get_running_loop().create_future()
            connecting = asyncio.create_task(getattr(other.servers, how)(CHANGED))
            await settle()
        backend.opens.set_result(None)
        await asyncio.wait({connecting})
        await settle()
        assert all(link.closed.done() for link in backend.links)


async def test_a_disabled_server_is_gone_until_it_is_enabled_and_can_be_changed_while_disabled() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        await scene.session.servers.add(scripted_spec("demo"))
        await other.servers.disable("demo")
        assert backend.link.closed.done()
        for session in (scene.session, other):
            assert (session.connections, [spec.name for spec in session.servers.disabled]) == ([], ["demo"])
        with pytest.raises(UnknownBackend):
            scene.session.connection("demo")
        await scene.session.servers.enable("demo")
        await other.connection("demo").ready()
        await scene.session.servers.disable("demo")
        assert (await scene.session.servers.replace(CHANGED)).is_connected
        assert (scene.session.servers.disabled, other.connection("demo").spec.timeout) == ([], 9.0)
        await scene.session.servers.disable("demo")
        await scene.session.servers.remove("demo")
        assert (scene.session.servers.disabled, other.connections) == ([], [])


async def test_a_disabled_server_that_fails_to_connect_stays_disabled() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        await scene.session.servers.add(scripted_spec("demo"))
        await scene.session.servers.disable("demo")
        backend.refuses = LinkError(LinkFailure.UNREACHABLE, "exited with code 1")
        with pytest.raises(ExecutionFailed):
            await scene.session.servers.replace(CHANGED)
        assert (scene.session.connections, scene.session.servers.disabled) == ([], [scripted_spec("demo")])


async def test_servers_of_the_operator_and_unknown_servers_cannot_be_changed() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        with pytest.raises(NotAllowed, match="configuration file"):
            await scene.session.servers.replace(CHANGED)
        with pytest.raises(UnknownBackend):
            await scene.session.servers.replace(scripted_spec("other"))
        assert scene.session.servers.is_configured("demo")


async def test_removing_an_added_server_reveals_the_server_of_the_operator_with_the_same_name() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        await scene.session.servers.add(CHANGED)
        await scene.parts.registry.apply(ServerChanges(added=(scripted_spec("demo"),)))
        assert not other.servers.is_configured("demo")
        await other.servers.remove("demo")
        assert [each.connection("demo").spec.timeout for each in (scene.session, other)] == [None, None]
        assert other.servers.is_configured("demo")
        await other.servers.remove("demo")
        assert (scene.session.connections, other.connections) == ([], [])


async def test_enabling_a_server_under_a_name_of_the_operator_leaves_no_connection_of_the_latter_open() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        await scene.session.servers.add(CHANGED)
        await scene.session.servers.disable("demo")
        await scene.parts.registry.apply(ServerChanges(added=(scripted_spec("demo"),)))
        await scene.session.connection("demo").ready()
        await scene.session.servers.enable("demo")
        assert scene.session.connection("demo").spec == CHANGED
        assert all(link.closed.done() for link in backend.links[:2])
        await scene.session.servers.disable("demo")
        assert scene.session.servers.is_configured("demo")
        await scene.session.servers.remove("demo")
        assert (scene.session.servers.disabled, scene.session.servers.is_configured("demo")) == ([], True)


async def test_the_tool_replaces_an_added_server() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        given: dict[str, Any] = {"name": "demo", "url": "http://demo.test/mcp"}
        await scene.call("add_server", **given)
        reply = await scene.call("add_server", **given, timeout_ms=2000, replace=True)
        assert not reply.get("isError"), reply
        assert scene.session.connection("demo").spec.timeout == 2.0


async def test_server_settings_are_shown_without_possible_secrets() -> None:
    target = HttpTarget(url="https://ann:pw@h.example/mcp?key=abc", headers={"X-Tenant": "t1", "Authorization": "b"})
    shown = masked_entry(BackendSpec(name="web", target=target, timeout=1.0))
    assert shown["url"] == "https://***@h.example/mcp?key=***"
    assert (shown["headers"], shown["timeout_ms"]) == ({"X-Tenant": "***", "Authorization": "***"}, 1000)

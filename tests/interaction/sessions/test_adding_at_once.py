"""Concurrent requests to add the same server share one connection, or all get the same error."""

import asyncio

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.errors import EmceepeeError, InvalidArguments
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.figures import record_figure
from support.sessions.another_session import another_session
from support.sessions.scene import a_scene, scripted_spec

NONE: list[BackendSpec] = []
CALLERS = 10


async def test_concurrent_adds_of_the_same_server_share_one_connection() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        adding = [asyncio.create_task(scene.session.servers.add(scripted_spec("demo"))) for _ in range(CALLERS)]
        await settle()
        backend.opens.set_result(None)
        async with asyncio.timeout(5):
            connections = await asyncio.gather(*adding, return_exceptions=True)
        record_figure(f"{sum(not isinstance(each, Exception) for each in connections)} of {CALLERS} succeeded")
        assert set(connections) == {scene.session.connection("demo")}
        assert len(backend.links) == 1


async def test_another_session_of_the_principal_that_adds_the_same_server_shares_the_connection() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene, another_session(scene) as other:
        backend.opens = asyncio.get_running_loop().create_future()
        adding = [asyncio.create_task(session.servers.add(scripted_spec("demo"))) for session in (scene.session, other)]
        await settle()
        backend.opens.set_result(None)
        async with asyncio.timeout(5):
            first, second = await asyncio.gather(*adding)
        assert (first, second) == (scene.session.connection("demo"), other.connection("demo"))
        assert second.is_connected


async def test_if_the_connection_fails_all_concurrent_adds_get_the_same_error_after_one_attempt() -> None:
    backend = ScriptedBackend()
    backend.refuses = LinkError(LinkFailure.UNREACHABLE, "no token")
    async with a_scene(specs=NONE, demo=backend) as scene:
        adding = [asyncio.create_task(scene.session.servers.add(scripted_spec("demo"))) for _ in range(CALLERS)]
        async with asyncio.timeout(5):
            errors = await asyncio.gather(*adding, return_exceptions=True)
        assert len({str(error) for error in errors}) == 1
        told = {(error.code, error.details["server"]) for error in errors if isinstance(error, EmceepeeError)}
        assert told == {("TOOL_ERR_EXECUTION_FAILED", "demo")}
        assert len(backend.dials) == 1


async def test_if_the_first_add_is_canceled_the_next_one_continues() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        first, *others = [asyncio.create_task(scene.session.servers.add(scripted_spec("demo"))) for _ in range(3)]
        await settle()
        first.cancel()
        await settle()
        backend.opens.set_result(None)
        async with asyncio.timeout(5):
            connections = await asyncio.gather(*others)
        assert set(connections) == {scene.session.connection("demo")}
        assert first.cancelled()


async def test_an_add_with_another_configuration_waits_until_a_canceled_add_is_cleaned_up() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        called_off = asyncio.create_task(scene.session.servers.add(scripted_spec("demo")))
        await settle()
        called_off.cancel()
        await asyncio.sleep(0)
        assert not called_off.done()
        backend.opens.set_result(None)
        other = BackendSpec(name="demo", target=HttpTarget(url="http://other.test"))
        assert (await scene.session.servers.add(other)).spec == other
        assert called_off.cancelled()


async def test_an_add_with_another_configuration_under_the_same_name_is_refused_during_the_trial() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        adding = asyncio.create_task(scene.session.servers.add(scripted_spec("demo")))
        await settle()
        other = BackendSpec(name="demo", target=HttpTarget(url="http://other.test"))
        with pytest.raises(InvalidArguments, match='The name "demo" is in use'):
            await scene.session.servers.add(other)
        backend.opens.set_result(None)
        assert (await adding).is_connected

"""Unusable servers of the configuration file: entries with an error, or `disabled`."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from emceepee.backends.spec import BackendSpec, UnusableTarget
from emceepee.sessions.servers.registry import MISTAKE, ServerRegistry
from emceepee.sessions.servers.server_changes import compare_servers
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from support.backends.scripted_backend import ScriptedBackend, ScriptedDialer
from support.fakes.clock import FakeClock, settle
from support.sessions.replies import told_events
from support.sessions.scene import a_scene, scripted_spec
from support.sessions.session_parts import session_parts

WHY = "mcpServers.bad.headers.X: the environment has no variable TOKEN; set it, or write ${TOKEN:-default}"
BAD = BackendSpec(name="bad", target=UnusableTarget(label="https://bad.test/mcp", reason=WHY), tags=("work",))
OFF = BackendSpec(name="off", target=UnusableTarget(label="https://off.test/mcp", reason="disabled"), tags=("slow",))


async def test_a_server_with_a_configuration_error_is_listed_with_the_reason_and_the_others_work() -> None:
    async with a_scene(specs=[scripted_spec("good"), BAD], good=ScriptedBackend()) as scene:
        good, bad = (await scene.value("list_servers"))["servers"]
        assert (good["status"], "lastError" in good) == ("connected", False)
        assert bad == {
            "name": "bad",
            "url": "https://bad.test/mcp",
            "status": "error",
            "connected": False,
            "healthStatus": "unknown",
            "tags": ["work"],
            "lastError": WHY,
        }
        assert (await scene.value("get_server_status", server="bad"))["lastError"] == WHY
        listed = await scene.value("list_tools")
        assert [tool["server"] for tool in listed["tools"]] == ["good", "good"]
        assert [error["server"] for error in listed["errors"]] == ["bad"]
        assert WHY in listed["errors"][0]["message"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_tool", {"server": "bad", "tool": "any"}),
        ("read_resource", {"server": "bad", "uri": "file:///a"}),
        ("get_prompt", {"server": "bad", "name": "any"}),
        ("reconnect_server", {"name": "bad"}),
        ("subscribe_resource", {"server": "bad", "uri": "file:///a"}),
    ],
)
async def test_every_call_to_a_server_with_a_configuration_error_fails_at_once_with_the_fix(
    tool: str, arguments: dict[str, Any]
) -> None:
    async with a_scene(specs=[BAD], bad=ScriptedBackend()) as scene:
        for _ in range(2):
            error = await scene.error(tool, **arguments)
            assert (error["code"], error["details"]["reason"]) == ("TOOL_ERR_SERVER_DISCONNECTED", "configuration")
            assert error["message"].startswith(f'Server "bad" is disabled by a mistake in its configuration: {WHY}. ')
            assert error["message"].endswith(
                "Correct that: emceepee reads the file again when it changes, and environment variables when it starts."
            )
        assert scene.status("bad") == "error"
        assert scene.backends["bad"].dials == []


async def test_the_name_of_a_server_with_a_configuration_error_is_reserved() -> None:
    async with a_scene(specs=[BAD], bad=ScriptedBackend()) as scene:
        error = await scene.error("add_server", name="bad", url="http://bad.test/mcp")
        assert "is in use" in error["message"]


async def test_a_session_that_sleeps_and_wakes_still_reports_why_a_server_is_unusable() -> None:
    async with a_scene(specs=[BAD]) as scene:
        await scene.session.sleep()
        assert (await scene.value("list_servers"))["servers"][0]["lastError"] == WHY


async def test_a_server_in_use_that_gets_a_configuration_error_disconnects_and_reconnects_once_fixed() -> None:
    good = scripted_spec("bad")
    async with a_scene(specs=[good, scripted_spec("other")], bad=ScriptedBackend(), other=ScriptedBackend()) as scene:
        registry = scene.parts.registry
        call = scene.start("execute_tool", server="bad", tool="slow")
        await scene.backends["bad"].next_asked()
        scene.quiet()
        await registry.apply(compare_servers([good], [BAD]))
        reply = await asyncio.wait_for(call, 5)
        message = reply["structuredContent"]["error"]["message"]
        assert "was changed during the call, and has a mistake now" in message
        (event,) = [event for event in told_events(reply) if event["type"] == "server_disconnected"]
        assert event["data"]["reason"] == "its configuration was changed, and has a mistake now"
        assert (scene.status("bad"), scene.status("other")) == ("error", "connected")
        await registry.apply(compare_servers([BAD], [good]))
        await settle()
        assert scene.status("bad") == "connected"
        assert len((await scene.value("list_tools", server="bad"))["tools"]) == 2


async def test_with_several_principals_the_configuration_errors_of_the_operator_are_hidden() -> None:
    registry = ServerRegistry([BAD], operators_are_fixed=True)
    registry.set_disabled([OFF])
    session = Session("01TESTSESSION", "ada", session_parts(registry, ScriptedDialer(), FakeClock(), Limits()))
    await session.open()
    await registry.apply(compare_servers([BAD], [BAD, replace(BAD, name="new")]))
    assert [(found.spec.name, found.state.reason) for found in session.connections] == [
        ("bad", MISTAKE),
        ("new", MISTAKE),
    ]
    assert session.servers.disabled_in_file == []
    await session.close()


# Disabled.


async def test_disabled_servers_are_listed_as_disabled_and_have_no_connection() -> None:
    async with a_scene(specs=[scripted_spec("good")], good=ScriptedBackend()) as scene:
        scene.parts.registry.set_disabled([OFF])
        good, off = (await scene.value("list_servers"))["servers"]
        assert (good["name"], "disabled" in good) == ("good", False)
        assert off == {
            "name": "off",
            "url": "https://off.test/mcp",
            "status": "not_connected",
            "connected": False,
            "healthStatus": "unknown",
            "disabled": True,
            "tags": ["slow"],
        }
        assert [server["name"] for server in (await scene.value("list_servers", tag="slow"))["servers"]] == ["off"]
        assert "errors" not in await scene.value("list_tools")
        error = await scene.error("execute_tool", server="off", tool="any")
        assert (error["code"], error["details"]) == (
            "TOOL_ERR_SERVER_NOT_FOUND",
            {"server": "off", "disabled": True},
        )
        assert error["message"] == (
            'Server "off" is disabled. Remove "disabled" from its entry in the configuration file to enable it.'
        )


async def test_the_name_of_a_disabled_server_is_free_and_an_added_server_is_shown_in_its_place() -> None:
    async with a_scene(specs=[], off=ScriptedBackend()) as scene:
        scene.parts.registry.set_disabled([OFF])
        await scene.value("add_server", name="off", url="http://off.test/mcp")
        (server,) = (await scene.value("list_servers"))["servers"]
        assert (server["status"], "disabled" in server) == ("connected", False)


async def test_an_added_server_that_a_person_disabled_is_listed_with_instructions_for_enabling_it() -> None:
    async with a_scene(specs=[], own=ScriptedBackend()) as scene:
        await scene.value("add_server", name="own", url="http://own.test/mcp")
        await scene.session.servers.disable("own")
        (server,) = (await scene.value("list_servers"))["servers"]
        assert (server["name"], server["disabled"]) == ("own", True)
        error = await scene.error("execute_tool", server="own", tool="any")
        assert "is disabled. A person can enable it in the console" in error["message"]

"""The time that a tool waits before it answers its caller with a task."""

from dataclasses import replace
from typing import Any

import pytest

from emceepee.state.limits import Limits
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.asking import a_task, task_id
from support.sessions.replies import without_help
from support.sessions.request_contexts import asking_for_progress
from support.sessions.scene import Scene, a_scene, scripted_spec

HEARS_OF_PROGRESS = asking_for_progress()
CALLS: list[tuple[str, JsonObject]] = [
    ("execute_tool", {"tool": "slow"}),
    ("read_resource", {"uri": "file:///a"}),
    ("get_prompt", {"name": "p"}),
]


async def waited(scene: Scene, tool: str, caller: RequestContext, seconds: float, /, **arguments: Any) -> JsonObject:
    """The reply, which comes after that long, and not before."""
    call = scene.start(tool, caller=caller, **arguments)
    await scene.clock.advance(seconds - 0.1)
    assert not call.done()
    await scene.clock.advance(0.2)
    assert call.done()
    return call.result()


@pytest.mark.parametrize(("caller", "seconds"), [(RequestContext(), 50), (HEARS_OF_PROGRESS, 120)])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_call_waits_less_for_a_caller_without_progress(
    tool: str, arguments: JsonObject, caller: RequestContext, seconds: float
) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        assert task_id(await waited(scene, tool, caller, seconds, server="one", **arguments))


@pytest.mark.parametrize("caller", [RequestContext(), HEARS_OF_PROGRESS])
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_an_explicit_timeout_applies_with_and_without_progress(
    tool: str, arguments: JsonObject, caller: RequestContext
) -> None:
    specs = [replace(scripted_spec("one"), timeout=300.0)]
    async with a_scene(specs=specs, one=ScriptedBackend()) as scene:
        assert task_id(await waited(scene, tool, caller, 300, server="one", **arguments))
        assert task_id(await waited(scene, tool, caller, 200, server="one", timeout_ms=200_000, **arguments))


@pytest.mark.parametrize(
    ("limits", "quiet", "hearing"),
    [
        (Limits(quiet_call_seconds=20), 20, 120),
        (Limits(call_seconds=7), 7, 7),
        (Limits(call_seconds=7, quiet_call_seconds=9), 7, 7),
    ],
)
async def test_both_default_timeouts_are_configurable_and_the_one_without_progress_is_never_longer(
    limits: Limits, quiet: float, hearing: float
) -> None:
    async with a_scene(limits=limits, one=ScriptedBackend()) as scene:
        for caller, seconds in ((RequestContext(), quiet), (HEARS_OF_PROGRESS, hearing)):
            assert task_id(await waited(scene, "execute_tool", caller, seconds, server="one", tool="slow"))


async def test_get_task_result_without_progress_returns_early_and_reports_that_the_task_continues() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, asked = await a_task(scene)
        reply = await waited(scene, "get_task_result", RequestContext(), 50, task_id=name)
        error = without_help(reply["structuredContent"]["error"])
        assert (error["code"], error["details"]) == ("TOOL_ERR_TIMEOUT", {"taskId": name})
        assert "get_task_result" in error["message"]
        asked.reply(content=[])
        assert not (await scene.call("get_task_result", task_id=name)).get("isError")


async def test_get_task_result_with_progress_waits_as_long_as_the_task_may_run() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, _ = await a_task(scene)
        reply = await waited(scene, "get_task_result", HEARS_OF_PROGRESS, 600, task_id=name)
        assert without_help(reply["structuredContent"]["error"])["details"] == {"taskId": name, "status": "expired"}


async def test_an_explicit_wait_for_a_task_applies_without_progress() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        name, _ = await a_task(scene)
        reply = await waited(scene, "get_task_result", RequestContext(), 90, task_id=name, timeout_ms=90_000)
        assert reply["structuredContent"]["error"]["code"] == "TOOL_ERR_TIMEOUT"


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_no_call_becomes_a_task_during_shutdown(tool: str, arguments: JsonObject) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start(tool, server="one", timeout_ms=1_000, **arguments)
        await scene.clock.advance(0.5)
        scene.session.begin_stop()
        await scene.clock.advance(1)
        assert not call.done()
        scene.session.stop()
        await scene.clock.advance(0)
        assert "emceepee is stopping" in call.result()["structuredContent"]["error"]["message"]
        assert scene.session.tasks.all() == []


async def test_await_activity_is_answered_at_shutdown() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        scene.quiet()
        waiting = scene.start("await_activity", timeout_ms=60_000)
        await scene.clock.advance(1)
        scene.session.stop()
        await scene.clock.advance(0)
        report = waiting.result()["structuredContent"]
        assert (report["triggers"], report["events"]) == ([{"type": "timeout"}], [])

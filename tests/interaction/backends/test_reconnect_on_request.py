"""`reconnect_server` closes a link, and the effects equal those of any other loss."""

import asyncio
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.recorded_events import RecordedEvents
from support.sessions.scene import Scene, a_scene

REASON = "reconnect_server was called"
DOWN = LinkError(LinkFailure.UNREACHABLE, "connection refused", may_have_run=False)


async def a_task_that_asks(scene: Scene, backend: ScriptedBackend) -> "asyncio.Future[Any]":
    """One task at work whose server waits for an answer; the question, as the server has it."""
    waiting = scene.start("execute_tool", server="one", tool="slow", timeout_ms=0)
    asked = await backend.next_asked()
    await scene.clock.advance(0)
    await waiting
    question = asyncio.ensure_future(
        backend.link.listener.handle_request("elicitation/create", {"message": "Sure?"}, asked.origin)
    )
    await settle()
    return question


def reconnected(invalidated: JsonObject, tries: int = 1) -> tuple[str, JsonObject]:
    data = {"name": "one", "attemptsTaken": tries, "kind": "restart", "invalidated": invalidated}
    return "server_reconnected", data


@pytest.mark.parametrize("is_process", [False, True])
async def test_calls_cut_off_by_a_reconnect_request_are_reported_as_disconnected_and_counted(is_process: bool) -> None:
    backend = ScriptedBackend(is_process=is_process)
    async with a_scene(one=backend) as scene:
        question = await a_task_that_asks(scene, backend)
        story = RecordedEvents(scene)
        await scene.value("reconnect_server", name="one")
        with pytest.raises(RpcError, match=REASON):
            await question
        events = story.events()
        kinds = [kind for kind, _ in events]
        stopped = ["process_stopped", "restarted"] if is_process else []
        assert [kind for kind in kinds if kind != "task_failed"] == [
            "server_disconnected",
            "elicitation_expired",
            *stopped,
            "server_reconnected",
        ]
        told = dict(events)
        assert told["server_disconnected"] == {"name": "one", "reason": REASON}
        assert told["elicitation_expired"]["reason"] == "disconnected"
        assert kinds.count("task_failed") == 1
        assert events[-1] == reconnected({"tasks": 1, "pendingRequests": 1})


async def test_a_reconnect_request_that_fails_at_first_is_reported_when_it_succeeds() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        question = await a_task_that_asks(scene, backend)
        story = RecordedEvents(scene)
        backend.refuses = DOWN
        await scene.error("reconnect_server", name="one")
        backend.refuses = None
        await scene.clock.advance(2)
        assert isinstance(question.exception(), RpcError)
        retries = ["server_reconnecting"] * 2
        assert story.of_servers() == ["server_disconnected", *retries, "server_reconnected"]
        assert story.events()[-1] == reconnected({"tasks": 1, "pendingRequests": 1}, tries=2)


async def test_a_reconnect_request_for_a_lost_server_reports_the_lost_calls() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        question = await a_task_that_asks(scene, backend)
        story = RecordedEvents(scene)
        backend.link.break_off("the line went dead")
        await settle()
        assert isinstance(question.exception(), RpcError)
        await scene.value("reconnect_server", name="one")
        assert story.of_servers() == ["server_disconnected", "server_reconnecting", "server_reconnected"]
        assert story.events()[-1] == reconnected({"tasks": 1, "pendingRequests": 1})


async def test_a_reconnect_request_for_a_server_that_never_connected_is_its_first_connection() -> None:
    backend = ScriptedBackend()
    backend.refuses = DOWN
    async with a_scene(one=backend) as scene:
        story = RecordedEvents(scene)
        backend.refuses = None
        await scene.value("reconnect_server", name="one")
        assert story.of_servers() == ["server_connected"]


async def test_only_the_first_reconnection_after_a_loss_reports_it() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        question = await a_task_that_asks(scene, backend)
        await scene.value("reconnect_server", name="one")
        assert isinstance(question.exception(), RpcError)
        story = RecordedEvents(scene)
        await scene.value("reconnect_server", name="one")
        assert story.events()[-1] == reconnected({"tasks": 0, "pendingRequests": 0})

"""The effects of the call runner. state/test_call.py tests its rules."""

import asyncio
from datetime import timedelta

import pytest

from emceepee.errors import EmceepeeError
from emceepee.sessions.call import Call
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene


def a_call(scene: Scene, tool: str = "slow") -> Call:
    return Call(
        connection=scene.session.connection("one"),
        method="tools/call",
        params={"name": tool},
        tool=tool,
        arguments={},
        ttl=timedelta(minutes=1),
    )


async def test_the_repr_of_a_call_shows_its_state() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        calls, call = scene.session.calls, a_call(scene)
        calls.start(call)
        assert repr(call) == "<Call one slow waiting>"
        calls.promote(call)
        assert repr(call) == f"<Call one slow promoted task={call.call_id}>"
        calls.cancel(call)
        assert repr(call) == f"<Call one slow cancelled task={call.call_id}>"


async def test_a_promotion_releases_the_tool_and_the_backend_answer_releases_the_waiter_of_the_task() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        call = a_call(scene)
        scene.session.calls.start(call)
        asked = await backend.next_asked()
        assert (call.released.done(), call.finished) == (False, None)
        scene.session.calls.promote(call)
        assert call.finished is not None
        assert (call.released.done(), call.finished.done()) == (True, False)
        asked.reply(content=[])
        await settle()
        assert call.finished.done()
        assert call.result() == {"content": []}


async def test_an_ordinary_call_creates_no_id_no_task_and_no_second_future() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: {"content": []}
    async with a_scene(one=backend) as scene:
        call = a_call(scene)
        scene.session.calls.start(call)
        assert await scene.session.calls.wait(call, 1) is None
        assert (call.call_id, call.finished, scene.session.tasks.all()) == (None, None, [])


async def test_the_outcome_of_an_unread_reply_is_stored_as_a_finished_task() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: {"content": []}
    async with a_scene(one=backend) as scene:
        calls, call = scene.session.calls, a_call(scene)
        calls.start(call)
        await calls.wait(call, 1)
        calls.store_undelivered(call)
        calls.store_undelivered(call)
        [task] = scene.session.tasks.all()
        assert (task.task_id, str(task.status), task.result) == (call.call_id, "completed", {"content": []})
        assert (await scene.session.tasks.wait_until_finished(task.task_id, 1)) is task


async def test_closing_a_session_ends_its_calls_and_tasks() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        calls, waiting, promoted = scene.session.calls, a_call(scene), a_call(scene)
        calls.start(waiting)
        calls.start(promoted)
        await backend.next_asked()
        calls.promote(promoted)
        waiter = asyncio.create_task(calls.wait(waiting, 100))
        await settle()
    assert (waiter.done(), waiting.state.stage, promoted.state.stage) == (True, "cancelled", "cancelled")
    assert promoted.finished is not None
    assert promoted.finished.done()
    assert [str(task.status) for task in scene.session.tasks.all()] == ["cancelled"]
    assert len(calls) == 0
    with pytest.raises(EmceepeeError, match="was cancelled before it had a result"):
        waiting.result()

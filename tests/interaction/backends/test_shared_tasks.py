"""Tasks of a shared server: messages about a task reach only the session that started it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from emceepee.backends.link import RpcError
from emceepee.backends.tasks.task_messages import RELATED_TASK
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.task_backend import DONE, FORM, INTERVAL, TaskBackend
from support.fakes.clock import settle
from support.sessions.another_session import another_session
from support.sessions.asking import task_id
from support.sessions.scene import Scene, a_scene, scripted_spec

QUIET = Limits(health_check_seconds=0, questions_per_server=1)
PROGRESS: JsonObject = {"progress": 3, "total": 10}


@pytest.fixture(params=[False, True], ids=["2025-11-25", "2026-07-28"])
def backend(request: pytest.FixtureRequest) -> TaskBackend:
    return TaskBackend(modern=request.param)


@pytest.fixture
async def scenes(backend: TaskBackend) -> AsyncIterator[tuple[Scene, Scene]]:
    """Two sessions that have both used it."""
    spec = replace(scripted_spec("one"), is_shared=True)
    backend.resumption = object()
    async with a_scene(limits=QUIET, specs=[spec], one=backend) as first, another_session(first) as session:
        session.wake()
        second = Scene(session, first.clock, first.backends)
        for scene in (first, second):
            await scene.value("list_tools", server="one")
            scene.quiet()
        assert len(backend.links) == 1
        yield first, second


async def begin_task(scene: Scene, backend: TaskBackend) -> str:
    call = scene.start("execute_tool", server="one", tool="required", timeout_ms=0)
    if not backend.facts.is_modern:
        await backend.begin_asked()
    await settle()
    await scene.clock.advance(0)
    name = task_id(await call)
    scene.quiet()
    return name


async def begin_call(scene: Scene, backend: TaskBackend) -> None:
    """One that is under way."""
    backend.answers.pop("tools/call", None)
    scene.start("execute_tool", server="one", tool="forbidden")
    await backend.next_asked()


async def shown(scene: Scene, name: str) -> JsonObject:
    task: JsonObject = (await scene.value("get_task", task_id=name))["task"]
    return task


def report(backend: TaskBackend, call: JsonObject) -> None:
    """Progress of a task, as a server of 2025-11-25 tells it."""
    params = {"progressToken": call["_meta"]["progressToken"], **PROGRESS}
    backend.link.listener.handle_notification("notifications/progress", params, None)


async def test_a_task_status_reaches_its_own_session_while_only_another_session_calls(
    scenes: tuple[Scene, Scene], backend: TaskBackend
) -> None:
    owner, other = scenes
    name = await begin_task(owner, backend)
    await begin_call(other, backend)
    backend.task.message = "halfway"
    backend.push()
    assert (await shown(owner, name))["statusMessage"] == "halfway"
    assert (owner.events(), other.events()) == ([], [])
    assert (await other.value("get_notifications"))["notifications"] == []


async def test_the_status_of_a_task_without_an_owner_is_dropped(
    scenes: tuple[Scene, Scene], backend: TaskBackend
) -> None:
    owner, other = scenes
    name = await begin_task(owner, backend)
    await owner.value("cancel_task", task_id=name)
    await settle()
    for scene in scenes:
        scene.quiet()
    await begin_call(other, backend)
    backend.push()
    assert (owner.events(), other.events()) == ([], [])


@pytest.mark.parametrize("backend", [False], indirect=True, ids=["2025-11-25"])
@pytest.mark.parametrize("is_reconnected", [False, True], ids=["on its link", "on the next link"])
async def test_task_progress_is_stored_on_the_task_while_no_call_runs(
    scenes: tuple[Scene, Scene], backend: TaskBackend, is_reconnected: bool
) -> None:
    owner, _ = scenes
    name = await begin_task(owner, backend)
    if is_reconnected:
        backend.link.break_off("the line was cut")
        await owner.clock.advance(INTERVAL + 2)
        assert len(backend.links) == 2
    report(backend, backend.task.call)
    assert (await shown(owner, name))["progress"] == PROGRESS


@pytest.mark.parametrize("backend", [False], indirect=True, ids=["2025-11-25"])
async def test_a_task_question_beyond_the_limit_is_refused_and_not_sent_to_another_session(
    scenes: tuple[Scene, Scene], backend: TaskBackend
) -> None:
    owner, other = scenes
    await begin_task(owner, backend)
    await begin_call(other, backend)
    assert backend.request(1)
    await settle()
    assert not backend.request(2)
    asked = FORM | {"_meta": {RELATED_TASK: {"taskId": backend.task.task_id}}}
    with pytest.raises(RpcError, match="1 questions from this server are open already"):
        async with asyncio.timeout(5):
            await backend.link.listener.handle_request("elicitation/create", asked, None)
    assert len(owner.session.questions.open()) == 1
    assert other.session.questions.open() == []


async def test_a_task_of_a_shared_server_ends_like_any_other_task(
    scenes: tuple[Scene, Scene], backend: TaskBackend
) -> None:
    owner, _ = scenes
    name = await begin_task(owner, backend)
    backend.task.complete()
    await owner.clock.advance(INTERVAL)
    if not backend.facts.is_modern:
        (await backend.next_asked("tasks/result")).reply(**DONE)
    result = await owner.call("get_task_result", task_id=name)
    assert result["content"][0] == DONE["content"][0]

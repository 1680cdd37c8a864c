"""Calls that a backend runs as its own tasks. Callers notice no difference. The test controls the clock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.tasks.backend_tasks import SLOW_SECONDS
from emceepee.state.limits import Limits
from emceepee.telemetry import spans
from emceepee.telemetry.spans import PhaseKind
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Answer
from support.backends.task_backend import DONE, INTERVAL, TaskBackend
from support.fakes.clock import settle
from support.sessions.asking import hush, open_ids, task_id
from support.sessions.request_contexts import asking_for_progress
from support.sessions.scene import Scene, a_scene

QUIET = Limits(health_check_seconds=0)
ANSWER: JsonObject = {"name": "Ann"}


@pytest.fixture(params=[False, True], ids=["2025-11-25", "2026-07-28"])
async def scene(request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with a_scene(limits=QUIET, one=TaskBackend(modern=request.param)) as made:
        await hush(made)
        yield made


@pytest.fixture
async def earlier() -> AsyncIterator[Scene]:
    async with a_scene(limits=QUIET, one=TaskBackend()) as made:
        await hush(made)
        yield made


@pytest.fixture
async def modern() -> AsyncIterator[Scene]:
    async with a_scene(limits=QUIET, one=TaskBackend(modern=True)) as made:
        await hush(made)
        yield made


def backend_of(scene: Scene) -> TaskBackend:
    backend = scene.backends["one"]
    assert isinstance(backend, TaskBackend)
    return backend


async def begin(scene: Scene, tool: str = "required", **arguments: Any) -> "asyncio.Task[JsonObject]":
    """A call that the backend runs as a task."""
    backend = backend_of(scene)
    call = scene.start("execute_tool", server="one", tool=tool, **arguments)
    if not backend.facts.is_modern:
        await backend.begin_asked()
    await settle()
    return call


async def begin_task(scene: Scene, tool: str = "required", **arguments: Any) -> str:
    """A call that has also become a task here."""
    call = await begin(scene, tool, timeout_ms=0, **arguments)
    await scene.clock.advance(0)
    return task_id(await call)


async def let_it_poll(scene: Scene) -> None:
    await scene.clock.advance(INTERVAL)


async def deliver(scene: Scene, **result: Any) -> None:
    """The backend is done, and emceepee learns of it."""
    backend_of(scene).task.complete(**result)
    await let_it_poll(scene)
    await give_result(scene)


async def give_result(scene: Scene) -> None:
    backend = backend_of(scene)
    if not backend.facts.is_modern:
        (await backend.next_asked("tasks/result")).reply(**(backend.task.result or {}))
    await settle()


async def task_of(scene: Scene, name: str) -> JsonObject:
    found: JsonObject = (await scene.value("get_task", task_id=name))["task"]
    return found


# What the caller sees.


async def test_a_quick_backend_task_is_answered_like_a_plain_call(scene: Scene) -> None:
    call = await begin(scene, args={"deep": True})
    await deliver(scene)
    assert await call == DONE
    assert scene.event_types() == []
    assert backend_of(scene).task.call["arguments"] == {"deep": True}


async def test_a_slow_backend_task_becomes_a_local_task_and_its_call_is_sent_once(scene: Scene) -> None:
    name = await begin_task(scene)
    waiting = scene.start("get_task_result", task_id=name)
    await scene.clock.advance(30)
    await deliver(scene, content=[], odd=1)
    assert (await waiting)["odd"] == 1
    assert backend_of(scene).counted("tools/call") == 1


async def test_the_local_task_shows_the_status_of_the_backend_task(scene: Scene) -> None:
    call = await begin(scene, timeout_ms=1000)
    backend_of(scene).task.message = "half-way"
    await scene.clock.advance(1)
    name = task_id(await call)
    assert (await task_of(scene, name))["statusMessage"] == "half-way"
    backend_of(scene).task.message = "nearly there"
    await let_it_poll(scene)
    assert (await task_of(scene, name))["statusMessage"] == "nearly there"


async def test_a_backend_task_with_a_tool_error_has_a_result(scene: Scene) -> None:
    call = await begin(scene)
    await deliver(scene, content=[{"type": "text", "text": "no spade"}], isError=True)
    result = await call
    assert (result["isError"], result["content"][0]["text"]) == (True, "no spade")


async def test_a_failed_backend_task_fails_the_local_task_with_the_message_of_the_server(scene: Scene) -> None:
    name = await begin_task(scene)
    backend_of(scene).task.status, backend_of(scene).task.message = "cancelled", "closing time"
    await let_it_poll(scene)
    error = await scene.error("get_task_result", task_id=name)
    assert "cancelled the task" in error["message"]
    assert "closing time" in error["message"]


async def test_polls_of_a_backend_task_slow_down_from_quick_to_the_interval_of_the_server(scene: Scene) -> None:
    await begin_task(scene)
    await scene.clock.advance(INTERVAL * 2)
    before = backend_of(scene).counted("tasks/get")
    assert 5 <= before <= 7
    await scene.clock.advance(INTERVAL * 10)
    assert backend_of(scene).counted("tasks/get") == before + 10


async def test_each_task_request_appears_in_the_call_without_a_phase_of_its_own(modern: Scene) -> None:
    backend, seen = backend_of(modern), dict[str, list[spans.Span | None]]()
    for method in ("tasks/get", "tasks/update"):
        backend.answers[method] = noting_spans(seen.setdefault(method, []), backend.answers[method])
    await begin_task(modern)
    backend.task.ask("first")
    await let_it_poll(modern)
    (question,) = await open_ids(modern)
    await modern.value("respond_to_elicitation", request_id=question, action="accept", content=ANSWER)
    await let_it_poll(modern)
    call = next(span for span in modern.session.journal.since(0) if span.name == "required")
    assert set(seen["tasks/get"]) == {call}
    assert seen["tasks/update"] == [call]
    assert [phase.kind for phase in call.phases if phase.kind != PhaseKind.WAITING] == [PhaseKind.CALL] * 2


def noting_spans(seen: list[spans.Span | None], answer: Answer) -> Answer:
    def note(params: JsonObject) -> Any:
        seen.append(spans.current())
        return answer(params)

    return note


# Which calls.


async def test_a_tool_that_requires_tasks_is_called_as_a_task_for_as_long_as_the_call_may_run(earlier: Scene) -> None:
    await begin(earlier, timeout_ms=10_000, task_ttl_ms=60_000)
    call = backend_of(earlier).task.call
    assert call["task"] == {"ttl": (10 + 60 + 60) * 1000}
    assert isinstance(call["_meta"]["progressToken"], str)


@pytest.mark.parametrize("tool", ["optional", "forbidden", "unlisted"])
async def test_a_tool_that_forbids_tasks_is_called_directly(earlier: Scene, tool: str) -> None:
    call = earlier.start("execute_tool", server="one", tool=tool)
    asked = await backend_of(earlier).next_asked()
    assert asked.params == {"name": tool, "arguments": {}}
    asked.reply(**DONE)
    assert await call == DONE


async def test_a_tool_with_optional_tasks_runs_as_a_task_for_a_caller_that_does_not_wait(earlier: Scene) -> None:
    await begin_task(earlier, "optional")
    assert backend_of(earlier).task.call["name"] == "optional"


async def test_a_tool_with_optional_tasks_runs_as_a_task_after_a_slow_call_until_it_is_quick_again(
    earlier: Scene,
) -> None:
    backend = backend_of(earlier)
    call = earlier.start("execute_tool", server="one", tool="optional")
    asked = await backend.next_asked()
    await earlier.clock.advance(SLOW_SECONDS + 1)
    asked.reply(**DONE)
    await call
    call = await begin(earlier, "optional")
    await deliver(earlier)
    await call
    call = earlier.start("execute_tool", server="one", tool="optional")
    assert "task" not in (await backend.next_asked()).params
    call.cancel()


async def test_a_server_without_task_support_never_receives_a_task_request(earlier: Scene) -> None:
    backend = backend_of(earlier)
    del backend.facts.capabilities["tasks"]
    await earlier.session.connection("one").reconnect()
    call = earlier.start("execute_tool", server="one", tool="required")
    asked = await backend.next_asked()
    assert "task" not in asked.params
    asked.reply(**DONE)
    await call


async def test_a_server_may_return_the_result_of_a_task_request_at_once(earlier: Scene) -> None:
    call = earlier.start("execute_tool", server="one", tool="required")
    (await backend_of(earlier).next_asked()).reply(**DONE)
    assert await call == DONE


async def test_a_task_without_an_id_is_an_unusable_answer(modern: Scene) -> None:
    backend_of(modern).answers["tools/call"] = lambda _: {"resultType": "task", "status": "working"}
    error = await modern.error("execute_tool", server="one", tool="required")
    assert "without a usable taskId" in error["message"]


# What a server of 2025-11-25 tells by itself.


async def test_progress_with_the_token_of_the_call_is_matched_after_the_backend_task_started(earlier: Scene) -> None:
    heard: list[JsonObject] = []
    call = await begin(earlier, caller=asking_for_progress(heard.append))
    token = backend_of(earlier).task.call["_meta"]["progressToken"]
    link = backend_of(earlier).link
    link.listener.handle_notification("notifications/progress", {"progressToken": token, "progress": 3}, None)
    link.listener.handle_notification("notifications/progress", {"progressToken": "other", "progress": 9}, None)
    assert heard == [{"progress": 3}]
    await deliver(earlier)
    await call


async def test_a_pushed_task_status_raises_no_event_and_saves_polls(earlier: Scene) -> None:
    name = await begin_task(earlier)
    earlier.quiet()
    backend = backend_of(earlier)
    backend.task.message = "pushed"
    backend.push()
    assert (await task_of(earlier, name))["statusMessage"] == "pushed"
    before = backend.counted("tasks/get")
    await earlier.clock.advance(4)
    assert backend.counted("tasks/get") == before
    backend.task.complete()
    backend.push()
    await give_result(earlier)
    assert earlier.event_types() == ["task_completed"]


async def test_a_status_of_an_unknown_backend_task_is_an_ordinary_notification(earlier: Scene) -> None:
    backend_of(earlier).link.listener.handle_notification("notifications/tasks/status", {"taskId": "x"}, None)
    assert earlier.event_types() == ["notification"]


# Questions.


async def test_a_question_of_a_2025_11_25_task_arrives_by_a_request_for_the_result(earlier: Scene) -> None:
    call = await begin(earlier)
    backend = backend_of(earlier)
    backend.task.status = "input_required"
    await let_it_poll(earlier)
    result = await backend.next_asked("tasks/result")
    backend.request(7)
    name = task_id(await call)
    (question,) = await open_ids(earlier)
    assert (await earlier.value("get_elicitations"))["requests"][0]["taskId"] == name
    await earlier.value("respond_to_elicitation", request_id=question, action="accept", content=ANSWER)
    await settle()
    assert backend.answered == [{"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": ANSWER}}]
    result.reply(**DONE)
    assert (await earlier.call("get_task_result", task_id=name))["content"][0] == DONE["content"][0]


async def test_questions_of_a_2026_07_28_task_are_asked_once_and_answered_one_by_one(modern: Scene) -> None:
    call = await begin(modern)
    backend = backend_of(modern)
    backend.task.ask("first", "second")
    await let_it_poll(modern)
    name = task_id(await call)
    one, two = await open_ids(modern)
    await modern.value("respond_to_elicitation", request_id=two, action="decline")
    await let_it_poll(modern)
    assert await open_ids(modern) == [one]
    await modern.value("respond_to_elicitation", request_id=one, action="accept", content=ANSWER)
    await let_it_poll(modern)
    assert backend.task.answers == {"first": {"action": "accept", "content": ANSWER}, "second": {"action": "decline"}}
    await deliver(modern)
    assert (await task_of(modern, name))["status"] == "completed"


async def test_a_question_that_the_backend_task_no_longer_lists_is_withdrawn(modern: Scene) -> None:
    await begin_task(modern)
    task = backend_of(modern).task
    task.ask("first")
    await let_it_poll(modern)
    assert len(await open_ids(modern)) == 1
    task.status, task.questions = "working", {}
    await let_it_poll(modern)
    assert [(kind, data.get("reason")) for kind, data in modern.events()] == [("elicitation_expired", "withdrawn")]
    assert await open_ids(modern) == []


async def test_a_2026_07_28_task_with_an_unanswerable_question_is_canceled_and_fails(
    modern: Scene,
) -> None:
    name = await begin_task(modern)
    task = backend_of(modern).task
    task.ask("first")
    task.questions["first"] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    await let_it_poll(modern)
    (question,) = await open_ids(modern, "sampling_requests")
    await modern.value("cancel_sampling_request", request_id=question)
    await settle()
    assert task.status == "cancelled"
    assert "got no answer" in (await modern.error("get_task_result", task_id=name))["message"]


async def test_a_question_of_a_backend_task_outlives_its_connection(scene: Scene) -> None:
    name = await begin_task(scene)
    backend = backend_of(scene)
    if backend.facts.is_modern:
        backend.task.ask("first")
        await let_it_poll(scene)
    else:
        backend.request(7)
    (question,) = await open_ids(scene)
    backend.link.break_off("cut")
    await scene.clock.advance(5)
    assert await open_ids(scene) == [question]
    await scene.value("respond_to_elicitation", request_id=question, action="accept", content=ANSWER)
    await settle()
    given = {"action": "accept", "content": ANSWER}
    if backend.facts.is_modern:
        assert backend.task.answers == {"first": given}
    else:
        assert backend.answered == [{"jsonrpc": "2.0", "id": 7, "result": given}]
    assert (await task_of(scene, name))["status"] == "working"


async def test_an_answer_during_a_disconnect_is_delivered_after_the_reconnect(modern: Scene) -> None:
    await begin_task(modern)
    backend = backend_of(modern)
    backend.task.ask("first")
    await let_it_poll(modern)
    (question,) = await open_ids(modern)
    backend.opens = asyncio.get_running_loop().create_future()
    backend.link.break_off("cut")
    await modern.clock.advance(5)
    await modern.value("respond_to_elicitation", request_id=question, action="decline")
    assert backend.task.answers == {}
    backend.opens.set_result(None)
    await modern.clock.advance(5)
    assert backend.task.answers == {"first": {"action": "decline"}}


async def test_a_question_that_is_resent_after_a_cut_is_not_asked_twice(earlier: Scene) -> None:
    await begin_task(earlier)
    backend_of(earlier).request(7)
    backend_of(earlier).request(7)
    assert len(await open_ids(earlier)) == 1


async def test_questions_of_a_backend_task_count_against_the_limits_of_its_link(earlier: Scene) -> None:
    await begin_task(earlier)
    taken = [backend_of(earlier).request(key) for key in range(QUIET.questions_per_server + 1)]
    assert taken == [True] * QUIET.questions_per_server + [False]


# Endings.


async def test_canceling_the_local_task_cancels_the_backend_task_by_its_id(scene: Scene) -> None:
    name = await begin_task(scene)
    await scene.value("cancel_task", task_id=name)
    await settle()
    backend = backend_of(scene)
    assert backend.task.status == "cancelled"
    assert "notifications/cancelled" not in [method for method, _ in backend.seen]
    polls = backend.counted("tasks/get")
    await scene.clock.advance(60)
    assert backend.counted("tasks/get") == polls


async def test_a_local_task_that_expires_cancels_its_backend_task(scene: Scene) -> None:
    name = await begin_task(scene, task_ttl_ms=2000)
    await scene.clock.advance(3)
    assert backend_of(scene).task.status == "cancelled"
    assert (await task_of(scene, name))["status"] == "expired"


async def test_a_call_canceled_before_its_backend_task_started_cancels_that_task(earlier: Scene) -> None:
    backend = backend_of(earlier)
    call = earlier.start("execute_tool", server="one", tool="required")
    asked = await backend.next_asked()
    call.cancel()
    await settle()
    task = backend.begin(asked.params)
    asked.reply(task={"taskId": task.task_id, "status": "working"})
    await settle()
    assert task.status == "cancelled"


async def test_removing_a_server_cancels_its_backend_tasks(scene: Scene) -> None:
    name = await begin_task(scene)
    task = backend_of(scene).task
    async with asyncio.timeout(5):
        await scene.session.servers.on_server_removed("one")
    assert task.status == "cancelled"
    assert (await task_of(scene, name))["status"] == "failed"


# Lost connections.


async def test_a_backend_task_continues_after_a_lost_connection(scene: Scene) -> None:
    name = await begin_task(scene)
    backend_of(scene).link.break_off("cut")
    await scene.clock.advance(20)
    reconnected = next(data for kind, data in scene.events() if kind == "server_reconnected")
    assert reconnected["invalidated"] == {"tasks": 0, "pendingRequests": 0}
    assert (await task_of(scene, name))["status"] == "working"
    await deliver(scene)
    assert (await task_of(scene, name))["status"] == "completed"


async def test_a_waiting_call_of_a_backend_task_continues_after_a_lost_connection(scene: Scene) -> None:
    call = await begin(scene)
    backend_of(scene).link.break_off("cut")
    await scene.clock.advance(5)
    await deliver(scene)
    assert (await call)["content"][0] == DONE["content"][0]


async def test_a_lost_result_of_a_backend_task_is_fetched_again(earlier: Scene) -> None:
    name = await begin_task(earlier)
    backend = backend_of(earlier)
    backend.task.complete()
    await let_it_poll(earlier)
    await backend.next_asked("tasks/result")
    backend.link.break_off("cut")
    await earlier.clock.advance(5)
    await give_result(earlier)
    assert (await task_of(earlier, name))["status"] == "completed"


async def test_a_restarted_server_that_forgot_a_backend_task_fails_the_local_task_with_the_reason(
    scene: Scene,
) -> None:
    name = await begin_task(scene)
    backend_of(scene).link.break_off("restarted")
    backend_of(scene).forget()
    await scene.clock.advance(5)
    error = await scene.error("get_task_result", task_id=name)
    assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
    assert "no longer recognizes the task" in error["message"]
    assert (error["details"]["reason"], error["details"]["mayHaveRun"]) == ("task_forgotten", True)


async def test_a_server_that_reconnects_in_the_other_era_has_lost_its_tasks(modern: Scene) -> None:
    name = await begin_task(modern, task_ttl_ms=60_000)
    backend_of(modern).facts.is_modern = False
    backend_of(modern).link.break_off("restarted")
    await modern.clock.advance(70)
    assert (await task_of(modern, name))["status"] == "expired"


@pytest.mark.parametrize("is_modern", [False, True])
async def test_a_backend_task_of_a_stdio_server_ends_with_the_process(is_modern: bool) -> None:
    async with a_scene(limits=QUIET, one=TaskBackend(modern=is_modern, is_process=True)) as scene:
        name = await begin_task(scene)
        backend_of(scene).link.crash()
        await settle()
        error = await scene.error("get_task_result", task_id=name)
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert "exited with code 1" in error["message"]
        assert error["details"]["mayHaveRun"] is True

"""A session learns its tasks from its requests, and forgets them when they end."""

import asyncio
from contextlib import suppress

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.tasks.own_tasks import MOST_TASKS, PROGRESS, OwnTasks
from emceepee.backends.tasks.task_messages import LONGEST_TASK_ID, RELATED_TASK, STATUS_CHANGED
from emceepee.wire.json_types import JsonObject


async def ask(tasks: OwnTasks, method: str, params: JsonObject, answer: JsonObject | BaseException) -> None:
    async def asking() -> JsonObject:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    await tasks.learn(method, params, asking())


def call(token: str = "p1") -> JsonObject:
    """Return a call that asks for a task of 2025-11-25."""
    return {"name": "dig", "task": {"ttl": 1}, "_meta": {"progressToken": token}}


def knows(tasks: OwnTasks, task_id: str, token: str | None = None) -> tuple[bool, bool]:
    """Return whether the task is known by its id, and by its progress token."""
    by_id = tasks.are_meant(STATUS_CHANGED, {"taskId": task_id})
    assert by_id is tasks.are_meant("elicitation/create", {"_meta": {RELATED_TASK: {"taskId": task_id}}})
    return by_id, tasks.are_meant(PROGRESS, {"progressToken": token})


async def test_a_task_belongs_to_its_session_from_its_creation_to_its_end() -> None:
    tasks = OwnTasks()
    await ask(tasks, "tools/call", call(), {"task": {"taskId": "t1"}})
    await ask(tasks, "tasks/get", {"taskId": "t1"}, {"status": "working"})
    assert knows(tasks, "t1", "p1") == (True, True)
    await ask(tasks, "tasks/get", {"taskId": "t1"}, {"status": "completed"})
    assert (knows(tasks, "t1", "p1"), len(tasks)) == ((False, False), 0)


async def test_a_task_of_2026_07_28_belongs_to_its_session_by_its_id() -> None:
    tasks = OwnTasks()
    await ask(tasks, "tools/call", {"name": "dig"}, {"resultType": "task", "taskId": "t1"})
    assert knows(tasks, "t1") == (True, False)


@pytest.mark.parametrize("answer", [{}, RpcError({"code": 1, "message": "it failed"})], ids=["result", "error"])
@pytest.mark.parametrize("method", ["tasks/result", "tasks/cancel"])
async def test_a_task_is_forgotten_after_its_result_or_cancellation(method: str, answer: JsonObject | RpcError) -> None:
    tasks = OwnTasks()
    await ask(tasks, "tools/call", call(), {"task": {"taskId": "t1"}})
    with suppress(RpcError):
        await ask(tasks, method, {"taskId": "t1"}, answer)
    assert knows(tasks, "t1", "p1") == (False, False)


async def test_a_lost_response_does_not_end_a_task() -> None:
    tasks = OwnTasks()
    await ask(tasks, "tools/call", call(), {"task": {"taskId": "t1"}})
    with pytest.raises(LinkError):
        await ask(tasks, "tasks/result", {"taskId": "t1"}, LinkError(LinkFailure.CLOSED, "gone"))
    assert knows(tasks, "t1", "p1") == (True, True)


async def test_a_task_that_began_elsewhere_becomes_known_when_it_is_polled() -> None:
    tasks = OwnTasks()
    await ask(tasks, "tasks/get", {"taskId": "t1"}, {"status": "input_required"})
    assert knows(tasks, "t1") == (True, False)


@pytest.mark.parametrize(
    "answer",
    [
        {"content": []},
        {"task": "t1"},
        {"task": {"taskId": 7}},
        {"task": {"taskId": "x" * (LONGEST_TASK_ID + 1)}},
        RpcError({"code": 1, "message": "no"}),
        LinkError(LinkFailure.CLOSED, "gone"),
        asyncio.CancelledError(),
    ],
    ids=lambda answer: str(answer)[:20],
)
async def test_a_call_that_does_not_become_a_task_leaves_no_record(answer: JsonObject | BaseException) -> None:
    tasks = OwnTasks()
    with suppress(RpcError, LinkError, asyncio.CancelledError):
        await ask(tasks, "tools/call", call(), answer)
    assert (knows(tasks, "t1", "p1"), len(tasks)) == ((False, False), 0)


async def test_a_result_that_only_resembles_a_task_is_not_recorded_as_one() -> None:
    tasks = OwnTasks()
    await ask(tasks, "tools/call", {"name": "dig"}, {"task": {"taskId": "t1"}})
    assert len(tasks) == 0


async def test_the_oldest_tasks_are_forgotten_when_there_are_too_many() -> None:
    tasks = OwnTasks()
    for number in range(MOST_TASKS + 1):
        await ask(tasks, "tools/call", call(f"p{number}"), {"task": {"taskId": f"t{number}"}})
    assert len(tasks) == MOST_TASKS
    assert knows(tasks, "t0", "p0") == (False, False)
    assert knows(tasks, f"t{MOST_TASKS}", f"p{MOST_TASKS}") == (True, True)

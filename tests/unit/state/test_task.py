"""The states of a task, and the data that each transition stores."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from emceepee.state.machine import ForbiddenMove
from emceepee.state.task import TASK, Task, TaskStatus

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
TTL, RETENTION = timedelta(minutes=10), timedelta(minutes=5)
ALLOWED = {
    (TaskStatus.WORKING, TaskStatus.COMPLETED),
    (TaskStatus.WORKING, TaskStatus.FAILED),
    (TaskStatus.WORKING, TaskStatus.CANCELLED),
    (TaskStatus.WORKING, TaskStatus.EXPIRED),
}
VERBS: dict[TaskStatus, Callable[[Task], Task]] = {
    TaskStatus.COMPLETED: lambda task: task.completed({"content": []}, LATER),
    TaskStatus.FAILED: lambda task: task.failed({"message": "broke"}, LATER),
    TaskStatus.CANCELLED: lambda task: task.cancelled(LATER),
    TaskStatus.EXPIRED: lambda task: task.expired(LATER),
}
ENDED = [status for status in TaskStatus if status is not TaskStatus.WORKING]


def a_task(status: TaskStatus = TaskStatus.WORKING) -> Task:
    return Task(
        task_id="t",
        server="one",
        tool="slow",
        method="tools/call",
        arguments={"n": 1},
        created_at=NOW,
        updated_at=NOW,
        ttl=TTL,
        retention=RETENTION,
        status=status,
    )


@pytest.mark.parametrize(("source", "target"), list(product(TaskStatus, TaskStatus)))
def test_a_task_moves_from_working_to_one_of_four_ends_and_nowhere_else(source: TaskStatus, target: TaskStatus) -> None:
    assert TASK.allows(source, target) is ((source, target) in ALLOWED)
    if (source, target) not in ALLOWED:
        with pytest.raises(ForbiddenMove, match=f"{source} does not lead to {target}"):
            TASK.check(source, target)


@pytest.mark.parametrize(("source", "target"), list(product(TaskStatus, VERBS)))
def test_a_task_method_makes_its_move_or_fails_and_changes_nothing(source: TaskStatus, target: TaskStatus) -> None:
    task = a_task(source)
    if (source, target) in ALLOWED:
        moved = VERBS[target](task)
        assert (moved.status, moved.updated_at, moved.has_ended) == (target, LATER, True)
    else:
        with pytest.raises(ForbiddenMove):
            VERBS[target](task)
    assert task == a_task(source)


def test_each_ended_task_keeps_its_result_error_or_message() -> None:
    assert a_task().completed({"content": [], "odd": None}, LATER).result == {"content": [], "odd": None}
    failed = a_task().failed({"code": "X", "message": "broke"}, LATER)
    assert (failed.error, failed.message, failed.result) == ({"code": "X", "message": "broke"}, "broke", None)
    assert a_task().cancelled(LATER).message == "cancelled by the caller"
    assert a_task().expired(LATER).message == "outlived its time to live"


def test_a_working_task_is_due_exactly_at_the_end_of_its_time_to_live() -> None:
    task = a_task()
    assert task.next_deadline == task.expires_at == NOW + TTL
    assert not task.is_due(NOW + TTL - timedelta(microseconds=1))
    assert task.is_due(NOW + TTL)


@pytest.mark.parametrize("status", ENDED)
def test_an_ended_task_is_due_after_the_retention(status: TaskStatus) -> None:
    task = replace(a_task(status), updated_at=LATER)
    assert task.next_deadline == LATER + RETENTION
    assert not task.is_due(LATER + RETENTION - timedelta(microseconds=1))
    assert task.is_due(LATER + RETENTION)


def test_the_repr_of_a_task_shows_its_state() -> None:
    assert repr(a_task()) == "<Task t one slow working>"
    assert repr(a_task().cancelled(LATER)) == "<Task t one slow cancelled>"


def test_task_progress_keeps_its_message_and_does_not_extend_the_time_to_live() -> None:
    task = a_task().with_progress({"progress": 1, "total": 3, "message": "digging"}, LATER)
    assert (task.progress, task.message, task.updated_at) == (
        {"progress": 1, "total": 3, "message": "digging"},
        "digging",
        LATER,
    )
    again = task.with_progress({"progress": 2}, LATER)
    assert (again.progress, again.message, again.expires_at) == ({"progress": 2}, "digging", NOW + TTL)


@pytest.mark.parametrize("status", ENDED)
def test_progress_after_the_end_of_a_task_changes_nothing(status: TaskStatus) -> None:
    task = a_task(status)
    assert task.with_progress({"progress": 9}, LATER) is task

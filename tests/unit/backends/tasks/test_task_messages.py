"""Messages about a task from backends of both eras."""

import pytest

from emceepee.backends.link import LinkError
from emceepee.backends.tasks.task_messages import (
    RELATED_TASK,
    CreatedTask,
    RemoteStatus,
    Snapshot,
    as_created,
    is_created,
    read_created,
    read_snapshot,
    related_task,
    without_related_task,
)
from emceepee.wire.json_types import JsonObject

TIMES: JsonObject = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


def test_the_answer_of_the_handshake_era_has_the_task_inside() -> None:
    said: JsonObject = {
        "task": {"taskId": "t", "status": "working", "statusMessage": "at it", "ttl": 60000, "pollInterval": 1500}
        | TIMES
    }
    created = as_created(said, "token")
    assert isinstance(created, CreatedTask)
    assert (dict(created), created.token) == (said, "token")
    snapshot = Snapshot(status=RemoteStatus.WORKING, message="at it", interval=1.5)
    assert read_created(created, is_modern=False) == ("t", snapshot)


def test_a_backend_that_was_asked_for_a_task_may_return_the_result_itself() -> None:
    result: JsonObject = {"content": []}
    assert as_created(result, "token") is result


def test_the_answer_of_2026_07_28_is_the_task() -> None:
    said: JsonObject = {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "ttlMs": None,
        "pollIntervalMs": 20,
    } | TIMES
    assert is_created(said, "tools/call")
    assert not is_created(said, "prompts/get")
    assert not is_created({"resultType": "complete"}, "tools/call")
    snapshot = Snapshot(status=RemoteStatus.WORKING, interval=0.02)
    assert read_created(CreatedTask(said), is_modern=True) == ("t", snapshot)


@pytest.mark.parametrize("task_id", [None, "", 7, "x" * 1001])
def test_a_task_without_a_usable_id_is_none(task_id: object) -> None:
    with pytest.raises(LinkError, match="taskId"):
        read_created(CreatedTask({"resultType": "task", "taskId": task_id, "status": "working"}), is_modern=True)


def test_in_2026_07_28_the_status_has_the_result_the_error_and_the_questions() -> None:
    question = {"method": "elicitation/create", "params": {"message": "?"}}
    said: JsonObject = {"status": "input_required", "inputRequests": {"k": question, "odd": 7}, "result": {"a": 1}}
    assert read_snapshot(said | {"error": {"code": -1}}, is_modern=True) == Snapshot(
        status=RemoteStatus.INPUT_REQUIRED, questions={"k": question}, result={"a": 1}, error={"code": -1}
    )
    assert read_snapshot(said, is_modern=False) == Snapshot(status=RemoteStatus.INPUT_REQUIRED)


@pytest.mark.parametrize("interval", [0, -1, None, "1", True, float("nan"), float("inf")])
def test_an_interval_that_makes_no_sense_is_none(interval: object) -> None:
    assert read_snapshot({"status": "working", "pollInterval": interval}, is_modern=False).interval is None


def test_a_message_that_is_too_long_is_cut() -> None:
    assert len(read_snapshot({"status": "working", "statusMessage": "x" * 9000}, is_modern=True).message or "") == 1000


def test_a_status_that_nobody_knows_is_not_the_end() -> None:
    assert read_snapshot({"status": "pondering"}, is_modern=True).status is RemoteStatus.WORKING
    with pytest.raises(LinkError, match="how it stands"):
        read_snapshot({"status": ["completed"]}, is_modern=True)


def test_a_message_names_the_task_that_it_is_about() -> None:
    assert related_task({"_meta": {RELATED_TASK: {"taskId": "t"}}}) == "t"
    for odd in ({}, {"_meta": 1}, {"_meta": {RELATED_TASK: 1}}, {"_meta": {RELATED_TASK: {"taskId": 1}}}):
        assert related_task(odd) is None


def test_a_caller_does_not_see_which_task_the_result_came_from() -> None:
    mark = {RELATED_TASK: {"taskId": "t"}}
    assert without_related_task({"content": [], "_meta": mark}) == {"content": []}
    assert without_related_task({"content": [], "_meta": mark | {"x": 1}}) == {"content": [], "_meta": {"x": 1}}
    plain: JsonObject = {"_meta": {"x": 1}}
    assert without_related_task(plain) is plain

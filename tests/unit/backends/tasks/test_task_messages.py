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


def test_a_created_task_of_the_handshake_era_is_nested_in_its_result() -> None:
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


def test_a_created_task_of_2026_07_28_is_the_result_itself() -> None:
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
def test_a_task_without_a_usable_id_is_rejected(task_id: object) -> None:
    with pytest.raises(LinkError, match="taskId"):
        read_created(CreatedTask({"resultType": "task", "taskId": task_id, "status": "working"}), is_modern=True)


def test_in_2026_07_28_the_task_status_contains_result_error_and_questions() -> None:
    question = {"method": "elicitation/create", "params": {"message": "?"}}
    said: JsonObject = {"status": "input_required", "inputRequests": {"k": question, "odd": 7}, "result": {"a": 1}}
    assert read_snapshot(said | {"error": {"code": -1}}, is_modern=True) == Snapshot(
        status=RemoteStatus.INPUT_REQUIRED, questions={"k": question}, result={"a": 1}, error={"code": -1}
    )
    assert read_snapshot(said, is_modern=False) == Snapshot(status=RemoteStatus.INPUT_REQUIRED)


@pytest.mark.parametrize("interval", [0, -1, None, "1", True, float("nan"), float("inf")])
def test_an_invalid_poll_interval_is_ignored(interval: object) -> None:
    assert read_snapshot({"status": "working", "pollInterval": interval}, is_modern=False).interval is None


def test_a_long_task_status_message_is_shortened() -> None:
    assert len(read_snapshot({"status": "working", "statusMessage": "x" * 9000}, is_modern=True).message or "") == 1000


def test_an_unknown_task_status_counts_as_working() -> None:
    assert read_snapshot({"status": "pondering"}, is_modern=True).status is RemoteStatus.WORKING
    with pytest.raises(LinkError, match="without its status"):
        read_snapshot({"status": ["completed"]}, is_modern=True)


def test_a_message_is_matched_to_its_task_by_its_metadata() -> None:
    assert related_task({"_meta": {RELATED_TASK: {"taskId": "t"}}}) == "t"
    for odd in ({}, {"_meta": 1}, {"_meta": {RELATED_TASK: 1}}, {"_meta": {RELATED_TASK: {"taskId": 1}}}):
        assert related_task(odd) is None


def test_a_task_result_is_returned_without_its_task_metadata() -> None:
    mark = {RELATED_TASK: {"taskId": "t"}}
    assert without_related_task({"content": [], "_meta": mark}) == {"content": []}
    assert without_related_task({"content": [], "_meta": mark | {"x": 1}}) == {"content": [], "_meta": {"x": 1}}
    plain: JsonObject = {"_meta": {"x": 1}}
    assert without_related_task(plain) is plain

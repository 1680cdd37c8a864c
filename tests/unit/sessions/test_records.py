"""Encoding and decoding of session records."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emceepee.sessions import records
from emceepee.sessions.records import ServerRecord, SessionProfile, UnreadableRecord
from emceepee.state.events import Event, EventType, OutboxMark
from emceepee.state.question import ElicitationStatus, Question, QuestionKind, SamplingStatus
from emceepee.state.task import Task
from emceepee.state.timer import Timer

NOW = datetime(2026, 11, 16, 20, 5, 38, 123456, tzinfo=UTC)
TASK = Task(
    task_id="01T",
    server="one",
    tool="dig",
    method="tools/call",
    arguments={"deep": {"ly": [1, 2.5, None, "é\ud800"[:1]]}},
    created_at=NOW,
    updated_at=NOW,
    ttl=timedelta(minutes=10),
    retention=timedelta(seconds=0.5),
    progress={"progress": 1},
)
TIMER = Timer(
    timer_id="01M",
    message="tea",
    duration=timedelta(milliseconds=1500),
    repeats=True,
    created_at=NOW,
    expires_at=NOW + timedelta(seconds=3),
    retention=timedelta(minutes=5),
    fire_count=7,
)
PROFILE = SessionProfile(secret="5ec", opened_at=NOW, label="agent 1", connects_on_use=True, was_used=True)
EVENT = Event(event_id="01E", type=EventType.NOTIFICATION, server="one", created_at=NOW, data={"x": [1]}, size=512)
SERVER = ServerRecord(log_level="debug", subscriptions=("file:///a", "file:///b"))


@pytest.mark.parametrize(
    ("write", "read", "value"),
    [
        (records.write_profile, records.read_profile, PROFILE),
        (records.write_event, records.read_event, EVENT),
        (records.write_delivery, records.read_delivery, OutboxMark(7, (2, 5), 3)),
        (records.write_task, records.read_task, TASK),
        (records.write_task, records.read_task, TASK.completed({"content": [], "isError": False}, NOW)),
        (records.write_task, records.read_task, TASK.failed({"code": "x", "message": "no"}, NOW)),
        (records.write_task, records.read_task, TASK.cancelled(NOW)),
        (records.write_timer, records.read_timer, TIMER),
        (records.write_timer, records.read_timer, TIMER.deleted(NOW)),
        (records.write_server, records.read_server, SERVER),
        (records.write_server, records.read_server, ServerRecord()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_record_survives_a_round_trip(
    write: Callable[[Any], bytes], read: Callable[[bytes], Any], value: Any
) -> None:
    assert read(write(value)) == value


@pytest.mark.parametrize("kind", list(QuestionKind))
def test_the_record_of_a_question_contains_only_its_state_and_deadline(kind: QuestionKind) -> None:
    status = ElicitationStatus.PENDING if kind is QuestionKind.ELICITATION else SamplingStatus.PENDING
    question = Question(
        request_id="01Q",
        server="one",
        kind=kind,
        params={"message": "What is your password?"},
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=10),
        status=status,
    )
    written = records.write_question(question)
    assert b"password" not in written
    read = records.read_question(written)
    assert (read.request_id, read.kind, read.status, read.expires_at) == ("01Q", kind, status, question.expires_at)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version":2}', b"{}", b"\xff\xfe"])
def test_a_damaged_or_newer_record_is_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        records.read(data)


def test_event_record_ids_sort_by_number() -> None:
    numbers = [0, 9, 10, 99, 100, 123_456_789]
    assert sorted(map(records.event_record_id, reversed(numbers))) == list(map(records.event_record_id, numbers))

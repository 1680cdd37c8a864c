"""The stored record of a backend task and of its session."""

import pytest

from emceepee.backends.backend_task import BackendTask, OpenQuestion
from emceepee.backends.http.resumption import Resumption
from emceepee.backends.link import FACTS_BYTES, ServerFacts
from emceepee.wire.codec import decode, encode

QUESTION = OpenQuestion(7, "elicitation/create", {"message": "?"})
TASK = BackendTask(task_id="secret-task", is_modern=False, token="t", questions={7: QUESTION})
FACTS = ServerFacts(
    protocol_version="2025-11-25", server_info={"name": "x"}, capabilities={"tasks": {}}, instructions="be kind"
)
SESSION = Resumption("secret-session", FACTS)


def test_a_backend_task_survives_a_round_trip_through_its_record() -> None:
    assert BackendTask.from_record(decode(encode(TASK.to_record()))) == TASK


def test_a_session_resumption_survives_a_round_trip_through_its_record() -> None:
    assert Resumption.from_record(decode(encode(SESSION.to_record()))) == SESSION


def test_the_repr_of_a_backend_task_and_a_resumption_shows_no_secrets() -> None:
    assert repr(TASK) == "<BackendTask 2025-11-25 questions=1>"
    assert repr(SESSION) == "<Resumption 2025-11-25>"


def test_a_stored_task_record_stays_current_while_only_the_status_changes() -> None:
    assert TASK.is_kept_as(BackendTask(task_id="secret-task", is_modern=False, message="x", questions={7: QUESTION}))
    assert not TASK.is_kept_as(BackendTask(task_id="secret-task", is_modern=False))
    assert not TASK.is_kept_as(None)


@pytest.mark.parametrize("damage", [{"instructions": "x" * FACTS_BYTES}, {"serverInfo": 7j}])
def test_a_damaged_resumption_record_raises_an_error(damage: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Resumption.from_record(SESSION.to_record() | damage)

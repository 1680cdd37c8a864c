"""A backend's task as it is kept, and the session that it belongs to."""

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


def test_what_is_kept_of_a_task_is_enough_to_follow_it() -> None:
    assert BackendTask.from_record(decode(encode(TASK.to_record()))) == TASK


def test_what_is_kept_of_a_session_is_enough_to_take_it_up() -> None:
    assert Resumption.from_record(decode(encode(SESSION.to_record()))) == SESSION


def test_neither_shows_its_secrets() -> None:
    assert repr(TASK) == "<BackendTask 2025-11-25 questions=1>"
    assert repr(SESSION) == "<Resumption 2025-11-25>"


def test_a_record_is_as_good_as_long_as_only_the_status_has_changed() -> None:
    assert TASK.is_kept_as(BackendTask(task_id="secret-task", is_modern=False, message="x", questions={7: QUESTION}))
    assert not TASK.is_kept_as(BackendTask(task_id="secret-task", is_modern=False))
    assert not TASK.is_kept_as(None)


@pytest.mark.parametrize("damage", [{"instructions": "x" * FACTS_BYTES}, {"serverInfo": 7j}])
def test_a_record_that_is_damaged_is_an_error(damage: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError)):
        Resumption.from_record(SESSION.to_record() | damage)

"""Whether a person attends a client and reads its questions."""

import pytest

from emceepee.state.attendance import READING_SECONDS, Attendance, after_answer, is_from_person

UNKNOWN, ATTENDED, UNATTENDED = Attendance.UNKNOWN, Attendance.ATTENDED, Attendance.UNATTENDED


@pytest.mark.parametrize(
    ("known", "action", "seconds", "learned"),
    [
        (UNKNOWN, "accept", READING_SECONDS, ATTENDED),
        (UNKNOWN, "accept", READING_SECONDS - 0.001, UNKNOWN),
        (UNKNOWN, "decline", 0.0, UNATTENDED),
        (UNKNOWN, "cancel", READING_SECONDS - 0.001, UNATTENDED),
        (UNKNOWN, "cancel", READING_SECONDS, UNKNOWN),
        (UNKNOWN, "decline", -0.02, UNATTENDED),
        (UNKNOWN, "decline", -3600.0, UNKNOWN),
        (UNKNOWN, "perhaps", 0.0, UNKNOWN),
        (UNKNOWN, None, 0.0, UNKNOWN),
        (ATTENDED, "decline", 0.0, ATTENDED),
        (UNATTENDED, "decline", 5.0, UNATTENDED),
        (UNATTENDED, "accept", 5.0, ATTENDED),
        (UNATTENDED, "accept", 0.0, UNATTENDED),
    ],
)
def test_the_speed_and_action_of_an_answer_show_whether_a_person_attends_a_client(
    known: Attendance, action: object, seconds: float, learned: Attendance
) -> None:
    assert after_answer(known, action, seconds, is_filled_in=False) is learned


@pytest.mark.parametrize("known", list(Attendance))
@pytest.mark.parametrize("seconds", [0.0, READING_SECONDS])
def test_a_completed_form_shows_that_a_person_attends_the_client(known: Attendance, seconds: float) -> None:
    assert after_answer(known, "accept", seconds, is_filled_in=True) is ATTENDED


@pytest.mark.parametrize(("known", "is_counted"), [(UNKNOWN, True), (ATTENDED, True), (UNATTENDED, False)])
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_dismissal_counts_as_a_decision_of_a_person_unless_the_client_is_unattended(
    known: Attendance, action: str, is_counted: bool
) -> None:
    assert is_from_person(known, action) is is_counted


@pytest.mark.parametrize("action", ["accept", "perhaps", None])
def test_any_answer_other_than_a_dismissal_counts_as_from_a_person(action: object) -> None:
    assert is_from_person(UNATTENDED, action)

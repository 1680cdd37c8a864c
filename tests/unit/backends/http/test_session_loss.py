"""What counts as a lost session."""

import pytest

from emceepee.backends.http.session_loss import says_session_lost, status_says_session_lost


@pytest.mark.parametrize(
    ("status", "words", "is_lost"),
    [
        (404, "anything", True),
        (400, "Bad Request: No valid session ID provided", True),
        (400, "Invalid or missing session ID\n", True),
        (400, "Bad Request: No valid session ID provided.", False),
        (400, "your session expired", False),
        (401, "Session not found", False),
        (500, "Session not found", False),
    ],
)
def test_a_status_says_that_a_session_is_lost_only_with_the_exact_words_of_known_servers(
    status: int, words: str, is_lost: bool
) -> None:
    assert status_says_session_lost(status, words) is is_lost


def test_words_that_only_speak_of_a_session_say_nothing() -> None:
    assert says_session_lost("Session not found")
    assert not says_session_lost("browser Session not found")

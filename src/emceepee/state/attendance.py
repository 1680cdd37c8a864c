"""Whether a person reads what a client is asked, as far as its answers tell."""

from enum import StrEnum

# A person needs longer to read a form and to reach a key. Agents without a person dismissed forms after 1 to 52 ms.
READING_SECONDS = 1.0
_DISMISSALS = ("decline", "cancel")


class Attendance(StrEnum):
    """What is known of one client."""

    UNKNOWN = "unknown"
    """It has not answered yet, or only dismissed questions at a person's pace."""
    ATTENDED = "attended"
    """It filled in a form, or accepted a question at a person's pace."""
    UNATTENDED = "unattended"
    """It dismissed a question before a person can have read it."""


def after_answer(known: Attendance, action: object, seconds: float, *, is_filled_in: bool) -> Attendance:
    """Return what is known of a client that answered with this action, so many seconds after it was asked."""
    # Two processes may have timed it: the clock of the one that asked can be a little ahead.
    is_unread = abs(seconds) < READING_SECONDS
    if action == "accept":
        # Codex with full access accepts a form without fields after 1 ms, and declines the next one that has some.
        return known if is_unread and not is_filled_in else Attendance.ATTENDED
    is_unread_dismissal = is_unread and action in _DISMISSALS
    return Attendance.UNATTENDED if is_unread_dismissal and known is Attendance.UNKNOWN else known


def is_persons(known: Attendance, action: object) -> bool:
    """Return whether an answer counts as a person's, given what is known of its client by now.

    A slow dismissal of an unattended client is another one that no person made.
    """
    return action not in _DISMISSALS or known is not Attendance.UNATTENDED

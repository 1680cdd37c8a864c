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
    """It accepted a question. A program without a person has nothing to fill in."""
    UNATTENDED = "unattended"
    """It dismissed a question before a person can have read it."""


def after_answer(known: Attendance, action: object, seconds: float) -> Attendance:
    """Return what is known of a client that answered with this action, so many seconds after it was asked."""
    if action == "accept":
        return Attendance.ATTENDED
    # Two processes may have timed it: the clock of the one that asked can be a little ahead.
    is_unread = action in _DISMISSALS and abs(seconds) < READING_SECONDS
    return Attendance.UNATTENDED if is_unread and known is Attendance.UNKNOWN else known


def is_persons(known: Attendance, action: object) -> bool:
    """Return whether an answer counts as a person's, given what is known of its client by now.

    A slow dismissal of an unattended client is another one that no person made.
    """
    return action not in _DISMISSALS or known is not Attendance.UNATTENDED
